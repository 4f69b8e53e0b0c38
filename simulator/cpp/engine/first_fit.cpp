// First-fit backfilling: nobody holds a reservation, and in queue order whoever fits now starts. No
// estimate has any part in it. (Beside advance reservations it does: depth_limited.cpp.)
#include <algorithm>

#include "engine/head_planner.hpp"

namespace foretime {

// In queue order, through the queue itself; the front of the queue is known not to fit.
void HeadPlanner::first_fit_queue(Pass& pass) {
  Processors free = availability_.free();
  picked_.clear();
  for (const auto& block : queue_.blocks()) {
    if (block.summary.processors > free) continue;
    for (const Pending& entry : block) {
      if (entry.processors > free) continue;
      free -= entry.processors;
      picked_.emplace_back(entry, StartedBy::kBackfilled);
    }
  }
  for (const auto& [entry, how] : picked_) pass.start(entry.job, how);
}

// Under XF and WFP.
void HeadPlanner::first_fit_by_score(Pass& pass) {
  Room room{availability_.free()};
  picked_.clear();
  walk_.begin(queue_.by_score(), now_, room);
  while (const ScoredJob* next = room.free > 0 ? walk_.next(room) : nullptr) {
    picked_.emplace_back(pending(*next), StartedBy::kBackfilled);
    room.free -= next->processors;
  }
  for (const auto& [entry, how] : picked_) pass.start(entry.job, how);
}

// Of those in candidates_, the best first.
void HeadPlanner::first_fit_candidates(Pass& pass) {
  std::sort(candidates_.rbegin(), candidates_.rend());
  for (const Candidate& candidate : candidates_) {
    if (candidate.entry.processors <= availability_.free()) {
      pass.start(candidate.entry.job, StartedBy::kBackfilled);
    }
  }
}

}  // namespace foretime
