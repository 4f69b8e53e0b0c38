// EASY with k reservations: the first k jobs that have to wait are planned, anew in every pass; of
// the others those start that delay none of them. Without reservations (first-fit and no
// backfilling beside advance reservations) whoever fits now starts.
#include "planning/depth_limited.hpp"

#include <algorithm>

namespace foretime {

Seconds DepthLimited::next_planned_start() const {
  Seconds next = kNever;
  for (const JobIndex index : reserved_) {
    const Seconds start = planned_start(index);
    if (start > reached()) next = std::min(next, start);
  }
  return next;
}

// As long as nobody ends or is planned anew nothing changes for those who wait, and only who comes
// behind the last reservation has to be looked at.
bool DepthLimited::holds(Seconds now, const QueueInOrder& queue,
                         const std::vector<JobIndex>& arrivals) const {
  if (changed_ || broken_ || gained_from_ < gained_until_ || queue.sorted != nullptr) return false;
  if (!blocked_ || reserved_.size() < depth_ || now >= due_) return false;
  return arrivals.empty() || last_ < queue.queue.entry(arrivals.front(), job(arrivals.front()));
}

void DepthLimited::plan(Seconds now, const QueueInOrder& queue, Starts& starts) {
  const bool stops = policy().backfill == Backfill::kNone;
  const bool sorts = sorts_candidates(policy().backfill);
  const std::vector<JobIndex> arrivals = arrivals_in_order(queue);
  free_ = really_free(now);
  start_adding();
  candidates_.clear();
  const auto consider = [&](const Pending& entry) {
    if (sorts) {
      if (entry.processors <= free_) candidates_.push_back(entry);
    } else if (may_start(now, entry)) {
      start_now(now, entry, starts);
    }
  };
  if (holds(now, queue, arrivals)) {
    if (stops) return;
    for (const JobIndex index : arrivals) consider(queue.queue.entry(index, job(index)));
  } else {
    for (const JobIndex index : reserved_) {
      if (is_planned(index)) break_promise(index);
    }
    reserved_.clear();
    blocked_ = false;
    const auto behind = [&] { return blocked_ && reserved_.size() >= depth_; };
    queue.for_each([&](const Least& least) { return behind() && least.processors > free_; },
                   [&](const Pending& entry) {
                     if (!behind()) {
                       start_or_reserve(now, entry, starts);
                       last_ = entry;
                     } else if (stops) {
                       return false;
                     } else {
                       consider(entry);
                     }
                     return true;
                   });
  }
  if (sorts) start_sorted(now, starts);
  const auto is_stuck = [&](JobIndex index) { return planned_start(index) <= now; };
  due_ = std::any_of(reserved_.begin(), reserved_.end(), is_stuck) ? kLongAgo : next_moment();
}

void DepthLimited::start_or_reserve(Seconds now, const Pending& entry, Starts& starts) {
  if (depth_ == 0) {
    if (may_start(now, entry)) {
      start_now(now, entry, starts);
    } else {
      blocked_ = true;
    }
    return;
  }
  const Seconds start = earliest_added(entry.job, now);
  if (start == now && entry.processors <= free_) {
    start_now(now, entry, starts);
  } else {
    blocked_ = true;
    promise(entry.job, start);
    reserved_.push_back(entry.job);
  }
}

void DepthLimited::start_sorted(Seconds now, Starts& starts) {
  const auto key = [this](JobIndex index) {
    return has_reservations() ? time(index) : candidate_time(policy().backfill, job(index));
  };
  std::sort(candidates_.begin(), candidates_.end(), [&](const Pending& a, const Pending& b) {
    const Seconds key_a = key(a.job);
    const Seconds key_b = key(b.job);
    return key_a != key_b ? key_a < key_b : a.rank < b.rank;
  });
  for (const Pending& entry : candidates_) {
    if (may_start(now, entry)) start_now(now, entry, starts);
  }
}

bool DepthLimited::may_start(Seconds now, const Pending& entry) {
  if (entry.processors > free_) return false;
  const Seconds duration = time(entry.job);
  if (barred_.first_start(entry.processors, duration, now) > now) return false;
  if (profile().fits(entry.job, now, duration)) return true;
  barred_.bar(entry.processors, duration, now + 1);
  return false;
}

void DepthLimited::start_now(Seconds now, const Pending& entry, Starts& starts) {
  promise(entry.job, now);
  free_ -= entry.processors;
  starts.emplace_back(entry.job, blocked_ ? StartedBy::kBackfilled : StartedBy::kHead);
}

}  // namespace foretime
