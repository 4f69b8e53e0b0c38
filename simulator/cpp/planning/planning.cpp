// Planning-based scheduling: every job has a planned start, worked out in queue order.
//
// To plan anew gives the same plan as long as the order stays and nobody gives processors back or
// takes more; then only jobs that come last in the queue have to be added.
#include "planning/planning.hpp"

#include <algorithm>

namespace foretime {

void Planning::plan(Seconds now, const QueueInOrder& queue, Starts& starts) {
  const bool gained = gained_from_ < gained_until_;
  bool anew = broken_ || gained || queue.sorted != nullptr || stuck_;
  const std::vector<JobIndex> arrivals = anew ? std::vector<JobIndex>{} : arrivals_in_order(queue);
  if (!arrivals.empty() && any_planned_) {
    anew = queue.queue.entry(arrivals.front(), job(arrivals.front())) < last_;
  }
  if (anew) {
    plan_all(now, queue);
  } else {
    for (const JobIndex index : arrivals) promise(index, earliest(index, now));
  }
  if (!arrivals.empty() && !anew) {
    last_ = queue.queue.entry(arrivals.back(), job(arrivals.back()));
    any_planned_ = true;
  }

  Processors free = really_free(now);
  bool blocked = false;
  next_start_ = kNever;
  stuck_ = false;
  queue.for_each([](const Least&) { return false; },
                 [&](const Pending& entry) {
                   const Seconds start = planned_start(entry.job);
                   if (start == now && entry.processors <= free) {
                     free -= entry.processors;
                     starts.emplace_back(entry.job,
                                         blocked ? StartedBy::kBackfilled : StartedBy::kHead);
                   } else {
                     blocked = true;
                     if (start > now) next_start_ = std::min(next_start_, start);
                     if (start <= now) stuck_ = true;
                   }
                   return true;
                 });
}

void Planning::plan_all(Seconds now, const QueueInOrder& queue) {
  const auto all = [](const Least&) { return false; };
  queue.for_each(all, [&](const Pending& entry) {
    if (is_planned(entry.job)) break_promise(entry.job);
    return true;
  });
  start_adding();
  queue.for_each(all, [&](const Pending& entry) {
    promise(entry.job, earliest_added(entry.job, now));
    last_ = entry;
    any_planned_ = true;
    return true;
  });
}

}  // namespace foretime
