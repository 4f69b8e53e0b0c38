// What a native estimator offers to a learning run: the same as foretime_estimators.estimator.
#pragma once

#include "types.hpp"

namespace foretime {

using UserCode = std::int32_t;
inline constexpr UserCode kNoUser = -1;

// A job as its user wrote it.
struct JobRequest {
  JobIndex index = 0;  // of the workload
  UserCode user = kNoUser;
  Processors processors = 0;
  Seconds requested = 0;
  Seconds submit = 0;
};

// A job that has come to its end.
struct FinishedJob {
  JobRequest request;
  Seconds start = 0;
  Seconds end = 0;
  bool is_evidence = true;  // its ending tells of its runtime (foretime_estimators.endings)
  Seconds runtime() const { return end - start; }
};

// Predicts at submission, learns at completion. Told of starts and ends in the order of time.
class OnlineEstimator {
 public:
  OnlineEstimator() = default;
  OnlineEstimator(const OnlineEstimator&) = delete;
  OnlineEstimator& operator=(const OnlineEstimator&) = delete;
  virtual ~OnlineEstimator() = default;

  // Scheduled time of a job that is submitted now, from 1 to its requested time.
  virtual Seconds predict(const JobRequest& job, Seconds now) = 0;
  virtual void start(const JobRequest& /*job*/, Seconds /*time*/) {}
  virtual void finish(const FinishedJob& job) = 0;
};

}  // namespace foretime
