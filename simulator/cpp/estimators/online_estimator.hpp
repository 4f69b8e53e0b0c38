// What a native estimator offers to a learning run: the same as
// foretime_estimators.estimators.estimator.
#pragma once

#include "core/types.hpp"

namespace foretime {

// Of a name: a user's, a project's, a queue's, an executable's.
using NameCode = std::int32_t;
using UserCode = NameCode;
inline constexpr NameCode kNoName = -1;
inline constexpr UserCode kNoUser = kNoName;

// A job as its user wrote it.
struct JobRequest {
  JobIndex index = 0;  // of the workload
  UserCode user = kNoUser;
  Processors processors = 0;
  Seconds requested = 0;
  Seconds submit = 0;
  NameCode project = kNoName;
  NameCode queue = kNoName;
  NameCode executable = kNoName;
};

// What a job's ending tells (foretime_estimators.jobs.endings): nothing, how long it ran, or that
// it ran as long as it could.
enum class Evidence : std::uint8_t { kNone, kRuntime, kAtLimit };

// A job that has come to its end.
struct FinishedJob {
  JobRequest request;
  Seconds start = 0;
  Seconds end = 0;
  Evidence evidence = Evidence::kRuntime;
  Seconds runtime() const { return end - start; }
};

// Scheduled times of a job, one for each use that a scheduler makes of a runtime.
struct RolePrediction {
  Seconds queue = 0;
  Seconds backfill = 0;
  Seconds drain = 0;
};

inline RolePrediction alike(Seconds time) { return {time, time, time}; }

// Predicts at submission, learns at completion. Told of starts and ends in the order of time.
class OnlineEstimator {
 public:
  OnlineEstimator() = default;
  OnlineEstimator(const OnlineEstimator&) = delete;
  OnlineEstimator& operator=(const OnlineEstimator&) = delete;
  virtual ~OnlineEstimator() = default;

  // Of a job that is submitted now: each from 1 to its requested time.
  virtual RolePrediction predict(const JobRequest& job, Seconds now) = 0;
  virtual void start(const JobRequest& /*job*/, Seconds /*time*/) {}
  virtual void finish(const FinishedJob& job) = 0;
};

}  // namespace foretime
