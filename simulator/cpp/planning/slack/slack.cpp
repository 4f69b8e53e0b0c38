// The priority scheduler of Talby and Feitelson 1999, section 4: conservative backfilling in which
// jobs may be delayed by their slack for the sake of others. reference/slack.py is the
// specification.
#include "planning/slack/slack.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace foretime {

// What is due starts before newcomers are placed, and those are placed one by one: one that starts
// at once does so before the next is looked at.
void Slack::plan(Seconds now, const QueueInOrder& queue, Starts& starts) {
  if (goes_on()) {
    if (gained_from_ < gained_until_) settled_ = false;
    keep_possible(now);
    insert(now, newcomers_[next_newcomer_++]);
  } else {
    plan_after_ends(now);
    newcomers_ = arrivals_in_order(queue);
    next_newcomer_ = 0;
    wait(newcomers_);
  }
  start_due(now, starts);
}

void Slack::has_started(JobIndex index, Seconds now) {
  const auto place = static_cast<std::size_t>(index);
  if (start_number_.size() <= place) start_number_.resize(place + 1);
  start_number_[place] = started_++;
  waited_ += now - job(index).submit;
}

// What ended early, or has another estimate, is used before anything new is placed.
void Slack::plan_after_ends(Seconds now) {
  if (gained_from_ < gained_until_) settled_ = false;
  keep_possible(now);
  if (surprised_) use_gains(now);
  surprised_ = false;
}

void Slack::keep_possible(Seconds now) {
  if (is_stuck(now) || (broken_ && !all_hold())) renew(now);
}

// Section 4.7: is to kill the job dearer than to insert one that goes on in its place?
std::optional<OverrunVerdict> Slack::judge_overrun(Seconds now) {
  if (settings_.overruns != Overruns::kExtend || overdue().empty()) return std::nullopt;
  const JobIndex index =
      *std::min_element(overdue().begin(), overdue().end(), [this](JobIndex a, JobIndex b) {
        return start_number_[static_cast<std::size_t>(a)] <
               start_number_[static_cast<std::size_t>(b)];
      });
  plan_after_ends(now);
  const Job& over = job(index);
  const Seconds more = (over.requested + kExtensions - 1) / kExtensions;
  const double priority = slack_priority(described(index), kFirstSchedulerPriority);
  SlackPlan best;
  best.slot = now;
  best.price = profile().fits(index, now, more) ? own_price(settings_, 0, over.processors)
                                                : std::numeric_limits<double>::infinity();
  if (!quota_exceeded(priority)) improve(best, now, priority, {more, over.processors}, true);
  if (best.price >= own_price(settings_, over.requested, over.processors)) {
    return OverrunVerdict{index, 0};
  }
  move(best.moves);
  claim_again(index, now, more);
  if (!best.moves.empty()) compress_all(now);
  return OverrunVerdict{index, more};
}

// As few are killed as must be, those first that are over for longest.
Processors Slack::make_room(Processors needed, Processors free) {
  if (needed <= free || settings_.overruns != Overruns::kKillBlocking) return free;
  std::vector<JobIndex> over = overdue();
  std::erase_if(over, [this](JobIndex index) {
    return std::find(kills_.begin(), kills_.end(), index) != kills_.end();
  });
  Processors all = free;
  for (const JobIndex index : over) all += job(index).processors;
  if (needed > all) return free;
  std::sort(over.begin(), over.end(), [this](JobIndex a, JobIndex b) {
    if (job(a).hard_end() != job(b).hard_end()) return job(a).hard_end() < job(b).hard_end();
    return start_number_[static_cast<std::size_t>(a)] < start_number_[static_cast<std::size_t>(b)];
  });
  for (auto next = over.begin(); needed > free; ++next) {
    kills_.push_back(*next);
    free += job(*next).processors;
  }
  return free;
}

void Slack::insert(Seconds now, JobIndex index) {
  const SlackJob given = described(index);
  const double wait = average_wait(given);
  const double first_priority = slack_priority(given, kFirstSchedulerPriority);
  SlackPlan best;
  best.slot = earliest(index, now);  // as conservative backfilling would have it
  best.price = own_price(settings_, best.slot - now, job(index).processors);
  if (!quota_exceeded(first_priority)) {
    improve(best, now, first_priority, {time(index), job(index).processors});
  }
  move(best.moves);
  promise(index, best.slot);
  if (!best.moves.empty()) compress_all(now);
  note_first_plan(index);

  // "Recalculate": what it is worth to delay it counts from its planned start (section 4.3).
  const Seconds start = planned_start(index);
  if (notes_.size() <= static_cast<std::size_t>(index)) {
    notes_.resize(static_cast<std::size_t>(index) + 1);
  }
  Note& note = notes_[static_cast<std::size_t>(index)];
  note.priority = slack_priority(given, scheduler_priority(start - now, wait));
  note.initial_slack = initial_slack(note.priority, settings_.slack_factor, wait);
  note.latest_start =
      note.initial_slack == kInfiniteSlack ? kInfiniteSlack : start + note.initial_slack;
}

// Section 4.2, remove.
void Slack::use_gains(Seconds now) {
  settled_ = true;
  if (promises().empty()) return;
  const std::vector<Movable> movable = movable_jobs(kDummyPriority);
  const std::vector<std::size_t> order = insertion_order(movable);
  SlackPlan best;
  best.slot = now;
  if (SlackSearch(settings_, planned(), now, movable, order).use_gains(best, slots(now, movable))) {
    move(best.moves);
    compress_all(now);
  }
}

void Slack::improve(SlackPlan& best, Seconds now, double priority, const Newcomer& newcomer,
                    bool at_once) const {
  if (promises().empty()) return;
  const std::vector<Movable> movable = movable_jobs(priority);
  const std::vector<std::size_t> order = insertion_order(movable);
  SlackSearch(settings_, planned(), now, movable, order)
      .insert(best, newcomer, at_once ? std::vector<Seconds>{now} : slots(now, movable), settled_);
}

const AvailabilityProfile& Slack::planned() const {
  return static_cast<const PoolProfile&>(profile()).steps();
}

std::vector<Movable> Slack::movable_jobs(double for_priority) const {
  std::vector<Movable> movable;
  for (const auto& block : promises().blocks()) {
    for (const Promise& promise : block) {
      const Note& noted = note(promise.job);
      const Seconds slack = noted.initial_slack == kInfiniteSlack
                                ? kInfiniteSlack
                                : noted.latest_start - promise.start;
      movable.push_back({promise.job, promise.start, promise.rank, time(promise.job),
                         promise.processors, noted.latest_start, noted.priority,
                         MoveCost(settings_, promise.processors, noted.priority, for_priority,
                                  slack, noted.initial_slack)});
    }
  }
  return movable;
}

// Section 4.6. Whose quota is exceeded comes last.
std::vector<std::size_t> Slack::insertion_order(const std::vector<Movable>& movable) const {
  std::vector<std::size_t> order(movable.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto sort = [&](auto comes_before) {
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const Movable& one = movable[a];
      const Movable& other = movable[b];
      const bool last = quota_exceeded(one.priority);
      if (last != quota_exceeded(other.priority)) return !last;
      if (comes_before(one, other)) return true;
      if (comes_before(other, one)) return false;
      return one.rank < other.rank;
    });
  };
  switch (settings_.insertion_order) {
    case InsertionOrder::kAst:
      sort([](const Movable& a, const Movable& b) { return a.start < b.start; });
      break;
    case InsertionOrder::kAat:
      sort([](const Movable&, const Movable&) { return false; });
      break;
    case InsertionOrder::kDu:
      sort([](const Movable& a, const Movable& b) { return a.work() > b.work(); });
      break;
    case InsertionOrder::kDc:
      sort([](const Movable& a, const Movable& b) {
        return a.cost_of_a_second() > b.cost_of_a_second();
      });
      break;
    case InsertionOrder::kDp:
      sort([](const Movable& a, const Movable& b) { return a.priority > b.priority; });
      break;
  }
  return order;
}

// Now, and when any claim begins or ends.
std::vector<Seconds> Slack::slots(Seconds now, const std::vector<Movable>& movable) const {
  std::vector<Seconds> slots{now};
  add_fixed_times(slots);
  for (const Movable& job : movable) {
    slots.push_back(job.start);
    slots.push_back(job.start + job.duration);
  }
  std::erase_if(slots, [now](Seconds time) { return time < now; });
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

void Slack::move(const std::vector<SlackMove>& moves) {
  for (const SlackMove& move : moves) break_promise(move.job);
  for (const SlackMove& move : moves) promise(move.job, move.start);
}

void Slack::compress_all(Seconds now) {
  gain(now, kNever);
  compress_in_order(now);
  settled_ = true;
}

// The plan is not possible any more, or may not be.
void Slack::renew(Seconds now) {
  std::vector<JobIndex> jobs = promised(false);
  std::stable_partition(jobs.begin(), jobs.end(),
                        [this](JobIndex index) { return !quota_exceeded(note(index).priority); });
  reinsert(now, jobs);
  settled_ = true;
}

SlackJob Slack::described(JobIndex index) const {
  const auto place = static_cast<std::size_t>(index);
  return place < described_.size() ? described_[place] : SlackJob{};
}

double Slack::average_wait(const SlackJob& given) const {
  if (given.average_wait) return *given.average_wait;
  if (settings_.average_wait) return *settings_.average_wait;
  return started_ == 0 ? 0 : static_cast<double>(waited_) / static_cast<double>(started_);
}

}  // namespace foretime
