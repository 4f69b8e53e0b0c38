// Starts at which a job did not fit are none for a job that needs as much for as long either, as long
// as nothing is given back before them.
#pragma once

#include <algorithm>
#include <vector>

#include "plan_profile.hpp"

namespace foretime {

class BarredStarts {
 public:
  void clear() { barred_.clear(); }

  // The first start from `from` on that is not known to be barred.
  Seconds first_start(const PlanProfile& profile, JobIndex job, Processors processors,
                      Seconds duration, Seconds from) const {
    for (const Barred& barred : barred_) {
      if (barred.processors <= processors && barred.duration <= duration && barred.until > from &&
          profile.needs_as_much(job, barred.job)) {
        from = barred.until;
      }
    }
    return from;
  }

  // The job fits nowhere before `until`.
  void bar(const PlanProfile& profile, JobIndex job, Processors processors, Seconds duration,
           Seconds until) {
    std::erase_if(barred_, [&](const Barred& barred) {
      return barred.processors >= processors && barred.duration >= duration &&
             barred.until <= until && profile.needs_as_much(barred.job, job);
    });
    if (barred_.size() < kMost) barred_.push_back({job, processors, duration, until});
  }

 private:
  struct Barred {
    JobIndex job = 0;
    Processors processors = 0;
    Seconds duration = 0;
    Seconds until = 0;
  };
  static constexpr std::size_t kMost = 64;

  std::vector<Barred> barred_;
};

}  // namespace foretime
