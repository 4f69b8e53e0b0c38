// The priorities that order a site's queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planning/slurm/slurm_site.hpp"

namespace foretime {

// priority/basic: each job one below the lowest so far, less its nice value, which lowers nobody
// else (set_job_prio, job_mgr.c).
class SlurmPriorities {
 public:
  void submitted(JobIndex job, const SlurmJob& facts) {
    std::int64_t priority = lowest_ >= 2 ? lowest_ - 1 : 1;
    if (facts.nice <= 0 || priority > facts.nice + 1) priority -= facts.nice;
    const auto place = static_cast<std::size_t>(job);
    if (place >= priority_.size()) priority_.resize(place + 1, 0);
    priority_[place] = std::max<std::int64_t>(priority, 1);
    lowest_ = std::min(lowest_, priority_[place] + facts.nice);
  }
  static Seconds next_tick() { return kNever; }
  std::int64_t priority_of(JobIndex job, std::int32_t /*slurm_partition*/) const {
    return priority_[static_cast<std::size_t>(job)];
  }

 private:
  std::int64_t lowest_ = 0xFFFF0000;
  std::vector<std::int64_t> priority_;
};

}  // namespace foretime
