// EASY with k reservations: the first k jobs that have to wait are planned, anew in every pass; of
// the others those start that delay none of them. Without reservations (first-fit and no backfilling
// beside advance reservations) whoever fits now starts.
#include "depth_limited.hpp"

#include <algorithm>

namespace foretime {

std::size_t DepthLimited::depth() const {
  const bool is_easy =
      policy().backfill == Backfill::kEasy || policy().backfill == Backfill::kEasySjbf;
  return is_easy ? static_cast<std::size_t>(policy().depth) : 0;
}

Seconds DepthLimited::next_planned_start() const {
  Seconds next = kNever;
  for (const JobIndex index : reserved_) {
    const Seconds start = planned_start(index);
    if (start > reached()) next = std::min(next, start);
  }
  return next;
}

void DepthLimited::plan(Seconds now, const QueueInOrder& queue, Starts& starts) {
  for (const JobIndex index : reserved_) {
    if (is_planned(index)) break_promise(index);
  }
  reserved_.clear();
  free_ = really_free(now);
  blocked_ = false;
  const bool stops = policy().backfill == Backfill::kNone;
  const bool sorts = policy().backfill == Backfill::kEasySjbf;
  std::vector<Pending> candidates;
  const auto behind = [&] { return blocked_ && reserved_.size() >= depth(); };
  queue.for_each([&](const Least& least) { return behind() && least.processors > free_; },
                 [&](const Pending& entry) {
                   if (!behind()) {
                     start_or_reserve(now, entry, starts);
                   } else if (stops) {
                     return false;
                   } else if (may_start(now, entry)) {
                     if (sorts) {
                       candidates.push_back(entry);
                     } else {
                       start_now(now, entry, starts);
                     }
                   }
                   return true;
                 });
  if (sorts) start_behind(now, candidates, starts);
}

void DepthLimited::start_or_reserve(Seconds now, const Pending& entry, Starts& starts) {
  if (depth() == 0) {
    if (may_start(now, entry)) {
      start_now(now, entry, starts);
    } else {
      blocked_ = true;
    }
    return;
  }
  const Seconds start = earliest(entry.job, now);
  if (start == now && entry.processors <= free_) {
    start_now(now, entry, starts);
  } else {
    blocked_ = true;
    promise(entry.job, start);
    reserved_.push_back(entry.job);
  }
}

// Shortest first.
void DepthLimited::start_behind(Seconds now, std::vector<Pending>& candidates, Starts& starts) {
  std::sort(candidates.begin(), candidates.end(), [this](const Pending& a, const Pending& b) {
    return time(a.job) != time(b.job) ? time(a.job) < time(b.job) : a.rank < b.rank;
  });
  for (const Pending& entry : candidates) {
    if (may_start(now, entry)) start_now(now, entry, starts);
  }
}

bool DepthLimited::may_start(Seconds now, const Pending& entry) const {
  return entry.processors <= free_ && profile().fits(entry.job, now, time(entry.job));
}

void DepthLimited::start_now(Seconds now, const Pending& entry, Starts& starts) {
  promise(entry.job, now);
  free_ -= entry.processors;
  starts.emplace_back(entry.job, blocked_ ? StartedBy::kBackfilled : StartedBy::kHead);
}

}  // namespace foretime
