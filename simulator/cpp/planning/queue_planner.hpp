// What planners have in common that go through the engine's own queue: those of nodes and Blue
// Genes, and of the head job of a flat pool.
#pragma once

#include <algorithm>
#include <vector>

#include "planning/planner.hpp"

namespace foretime {

// The engine's, as such a planner sees it.
struct Scheduling {
  const Policy& policy;
  std::vector<Job>& jobs;
  const Availability& availability;
  const Queue& queue;
  const Seconds& now;
  std::vector<JobIndex>& arrived;  // since the last pass
  // While false nothing has changed for the jobs that the last pass left waiting.
  bool& full_pass;
  std::int64_t& active_guards;  // waiting jobs for which the guard has stepped in
  std::int64_t& guard_activations;
  Pass& pass;
};

class QueuePlanner : public Planner {
 protected:
  explicit QueuePlanner(const Scheduling& engine)
      : policy_(engine.policy),
        jobs_(engine.jobs),
        availability_(engine.availability),
        queue_(engine.queue),
        now_(engine.now),
        arrived_(engine.arrived),
        full_pass_(engine.full_pass),
        active_guards_(engine.active_guards),
        guard_activations_(engine.guard_activations),
        pass_(engine.pass) {}

  Job& job(JobIndex index) { return jobs_[static_cast<std::size_t>(index)]; }
  const Job& job(JobIndex index) const { return jobs_[static_cast<std::size_t>(index)]; }
  // The guard steps in for a head job.
  void activate_guard(Job& head) {
    head.guarded = true;
    ++active_guards_;
    ++guard_activations_;
  }

  const Policy& policy_;
  std::vector<Job>& jobs_;
  const Availability& availability_;
  const Queue& queue_;
  const Seconds& now_;
  std::vector<JobIndex>& arrived_;
  bool& full_pass_;
  std::int64_t& active_guards_;
  std::int64_t& guard_activations_;
  Pass& pass_;
};

}  // namespace foretime
