// What plans are made in: which claims the machine can take, and when.
//
// The families (conservative.cpp, planning.cpp, depth_limited.cpp, first_fit.cpp) know no more of a
// machine than this; slack.cpp tries plans out on a copy of the pool's.
#pragma once

#include <algorithm>
#include <vector>

#include "core/availability_profile.hpp"
#include "core/flat_profile.hpp"
#include "core/types.hpp"

namespace foretime {

// Claims belong to jobs, running or planned, and last from a start to an end.
class PlanProfile {
 public:
  virtual ~PlanProfile() = default;

  virtual void advance(Seconds now) = 0;
  // Never refused: an estimate that grows may claim what is promised to others.
  virtual void claim(JobIndex job, Seconds start, Seconds end) = 0;
  // Gives back a claim, or its end.
  virtual void release(JobIndex job, Seconds start, Seconds end) = 0;
  virtual void claim(const AdvanceReservation& reservation) = 0;
  // Moves a whole claim to an earlier start that earlier_fit() has found.
  virtual void move(JobIndex job, Seconds start, Seconds end, Seconds to_start, Seconds to_end) = 0;

  virtual bool fits(JobIndex job, Seconds start, Seconds duration) const = 0;
  // First start from `from` on; kNever if there is none.
  virtual Seconds earliest_fit(JobIndex job, Seconds from, Seconds duration) const = 0;
  // For a job that holds a claim from `planned` on: first start in [from, before) to which it can
  // move; kNever if there is none. Before `planned` nothing of its own claim is in the way, and
  // from then on it already fits, so only what is free before `planned` counts.
  virtual Seconds earlier_fit(JobIndex job, Seconds from, Seconds before, Seconds planned,
                              Seconds duration) const = 0;
  // No claim lies on more than there is.
  virtual bool holds(Seconds start, Seconds end) const = 0;
  // Nobody who needs more than this fits anywhere in [start, end).
  virtual Processors most_free(Seconds start, Seconds end) const = 0;
  virtual Processors machine() const = 0;
  // The free processors as a step function, to plan in a copy.
  virtual void copy_to(FlatProfile& copy) const = 0;
};

// A flat pool of processors.
class PoolProfile final : public PlanProfile {
 public:
  PoolProfile(Processors machine, Seconds now, const std::vector<Job>& jobs)
      : profile_(machine, now), jobs_(jobs) {}

  void advance(Seconds now) override { profile_.advance(now); }
  void claim(JobIndex job, Seconds start, Seconds end) override {
    profile_.shift(start, end, -processors(job));
  }
  void release(JobIndex job, Seconds start, Seconds end) override {
    profile_.shift(start, end, processors(job));
  }
  void claim(const AdvanceReservation& reservation) override {
    profile_.shift(reservation.start, reservation.end(), -reservation.processors);
  }
  // What both claims cover stays as it is.
  void move(JobIndex job, Seconds start, Seconds end, Seconds to_start, Seconds to_end) override {
    profile_.shift(to_start, std::min(start, to_end), -processors(job));
    profile_.shift(std::max(start, to_end), end, processors(job));
  }
  bool fits(JobIndex job, Seconds start, Seconds duration) const override {
    return profile_.is_free(start, start + duration, processors(job));
  }
  Seconds earliest_fit(JobIndex job, Seconds from, Seconds duration) const override {
    return profile_.earliest_fit(from, duration, processors(job));
  }
  Seconds earlier_fit(JobIndex job, Seconds from, Seconds before, Seconds planned,
                      Seconds duration) const override {
    return profile_.earlier_fit(from, before, planned, duration, processors(job));
  }
  bool holds(Seconds start, Seconds end) const override { return profile_.is_free(start, end, 0); }
  Processors most_free(Seconds start, Seconds end) const override {
    return profile_.max_free(start, end);
  }
  Processors machine() const override { return profile_.capacity(); }
  void copy_to(FlatProfile& copy) const override {
    copy.clear();
    profile_.for_each_step([&](Seconds time, Processors free) { copy.add_step(time, free); });
  }

  const AvailabilityProfile& steps() const { return profile_; }

 private:
  Processors processors(JobIndex job) const {
    return jobs_[static_cast<std::size_t>(job)].processors;
  }

  AvailabilityProfile profile_;
  const std::vector<Job>& jobs_;
};

}  // namespace foretime
