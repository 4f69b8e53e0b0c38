// First-fit backfilling: nobody holds a reservation, and in queue order whoever fits now starts. No
// estimate has any part in it. (Beside advance reservations it does: depth_limited.cpp.)
#include <algorithm>

#include "engine/engine.hpp"

namespace foretime {

// In queue order, through the queue itself; the front of the queue is known not to fit.
void Engine::first_fit_queue() {
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
  for (const auto& [entry, how] : picked_) start(entry.job, how);
}

// Of those in candidates_, the best first.
void Engine::first_fit_candidates() {
  std::sort(candidates_.rbegin(), candidates_.rend());
  for (const Candidate& candidate : candidates_) {
    if (candidate.entry.processors <= availability_.free()) {
      start(candidate.entry.job, StartedBy::kBackfilled);
    }
  }
}

}  // namespace foretime
