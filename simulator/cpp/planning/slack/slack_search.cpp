#include "planning/slack/slack_search.hpp"

#include <algorithm>

namespace foretime {

namespace {

AvailabilityProfile without(AvailabilityProfile profile, const std::vector<Movable>& movable) {
  for (const Movable& job : movable) {
    profile.shift(job.start, job.start + job.duration, job.processors);
  }
  return profile;
}

}  // namespace

SlackSearch::SlackSearch(const SlackSettings& settings, const AvailabilityProfile& planned,
                         Seconds now, const std::vector<Movable>& movable,
                         const std::vector<std::size_t>& order)
    : settings_(settings),
      planned_(planned),
      staying_(without(planned, movable)),
      profile_(staying_),
      now_(now),
      movable_(movable),
      order_(order),
      by_start_(std::is_sorted(order.begin(), order.end())) {}

void SlackSearch::insert(SlackPlan& best, const Newcomer& newcomer, std::vector<Seconds> slots,
                         bool settled) {
  // Where it fits beside everybody, all come back to where they were: `best` has the earliest such
  // slot.
  if (by_start_ && settled) {
    std::erase_if(slots, [&](Seconds slot) {
      return planned_.is_free(slot, slot + newcomer.duration, newcomer.processors);
    });
  }
  try_slots(best, newcomer, slots);
}

bool SlackSearch::use_gains(SlackPlan& best, std::vector<Seconds> slots) {
  if (by_start_) {
    slots = starts_that_can_move_up();
    if (slots.empty()) return false;
  }
  try_slots(best, {}, slots);
  return true;
}

// Who is put back before the first who can move up alone comes back to where he was. So from one
// such start to the next all slots give the same plan.
std::vector<Seconds> SlackSearch::starts_that_can_move_up() const {
  std::vector<Seconds> starts;
  for (const Movable& job : movable_) {
    if (!starts.empty() && starts.back() == job.start) continue;
    if (planned_.earlier_fit(now_, job.start, job.start, job.duration, job.processors) != kNever) {
      starts.push_back(job.start);
    }
  }
  return starts;
}

void SlackSearch::try_slots(SlackPlan& best, const Newcomer& newcomer,
                            const std::vector<Seconds>& slots) {
  auto staying = movable_.begin();
  for (const Seconds slot : slots) {
    for (; staying != movable_.end() && staying->start < slot; ++staying) {
      const Seconds end = staying->start + staying->duration;
      staying_.shift(staying->start, end, -staying->processors);
      profile_.shift(staying->start, end, -staying->processors);
    }
    if (!staying_.is_free(slot, slot + newcomer.duration, newcomer.processors)) continue;
    try_slot(best, newcomer, slot);
    undo();
  }
}

void SlackSearch::claim(Seconds start, Seconds end, Processors processors) {
  profile_.shift(start, end, -processors);
  tried_.push_back({start, end, processors});
}

// To copy costs as much as to undo some few claims.
void SlackSearch::undo() {
  if (tried_.size() > staying_.size() / 32 + 4) {
    profile_ = staying_;
    tried_.clear();
    return;
  }
  for (; !tried_.empty(); tried_.pop_back()) {
    const Claim& last = tried_.back();
    profile_.shift(last.start, last.end, last.processors);
  }
}

// The newcomer at the slot, and all that were planned for then or later put back.
void SlackSearch::try_slot(SlackPlan& best, const Newcomer& newcomer, Seconds slot) {
  plan_.slot = slot;
  plan_.price =
      newcomer.processors == 0 ? 0.0 : own_price(settings_, slot - now_, newcomer.processors);
  plan_.moves.clear();
  claim(slot, slot + newcomer.duration, newcomer.processors);
  for (const std::size_t place : order_) {
    const Movable& moving = movable_[place];
    if (moving.start < slot) continue;
    const Seconds start = profile_.earliest_fit(now_, moving.duration, moving.processors);
    if (start > std::max(moving.start, moving.latest_start)) return;  // at an infinite price
    claim(start, start + moving.duration, moving.processors);
    if (start == moving.start) continue;
    plan_.price += moving.cost.of(start - moving.start);
    plan_.moves.push_back({moving.job, start});
  }
  if (plan_.is_better_than(best)) std::swap(best, plan_);
}

}  // namespace foretime
