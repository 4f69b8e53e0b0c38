// What the scheduler believes of a running job that has outlived its estimate.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/types.hpp"

namespace foretime {

// Tsafrir et al. 2007, as used by Gaussier 2015, section 5.2: each in turn is added to t_sched,
// which is how the published figures come about (their sum is not).
inline constexpr std::array<Seconds, 11> kIncrements = {60,    300,   900,   1800,   3600,  7200,
                                                        18000, 36000, 72000, 180000, 360000};

// Slurm's soft limit: now + (hard end - now) / 2, rounded down, but at least one second ahead.
// Grows with the hard end, so jobs under this rule are expected to end in that order.
inline Seconds slurm_expected_end(Seconds hard_end, Seconds now) {
  if (hard_end <= now) return hard_end;
  return now + std::max<Seconds>(1, (hard_end - now) / 2);
}

// New expected end at `now`, when the estimate has expired (expected_end <= now < hard end): never
// beyond the requested time. job.corrections counts the corrections before this one.
inline Seconds corrected_end(Correction rule, const Job& job, Seconds now) {
  Seconds corrected = job.requested;
  switch (rule) {
    case Correction::kRequested:
      break;
    case Correction::kIncremental: {
      const auto step = static_cast<std::size_t>(job.corrections);
      if (step < kIncrements.size()) corrected = job.drain_time + kIncrements[step];
      break;
    }
    case Correction::kDoubling:
      corrected = 2 * (job.expected_end - job.start);
      break;
    case Correction::kSlurm:
      return slurm_expected_end(job.hard_end(), now);
    case Correction::kPbs:
      // OpenPBS, estimated.soft_walltime: whole multiples of soft_walltime.
      corrected = job.drain_time * (1 + (now - job.start) / job.drain_time);
      break;
  }
  return job.start + std::min(corrected, job.requested);
}

}  // namespace foretime
