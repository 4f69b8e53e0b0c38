// The mean share of their requests that similar jobs took, as
// foretime_estimators.estimators.expected_runtime.
#pragma once

#include <algorithm>
#include <cmath>

#include "estimators/kind_sums.hpp"
#include "estimators/online_estimator.hpp"

namespace foretime {

class ExpectedRuntime final : public OnlineEstimator {
 public:
  // `shortest`: shorter runtimes count as so long.
  ExpectedRuntime(const KindSums::Ageing& ageing, Seconds shortest)
      : sums_(ageing), shortest_(shortest) {}

  RolePrediction predict(const JobRequest& job, Seconds /*now*/) override {
    const auto means = sums_.mean(job, {1, 1});
    if (!means) return alike(job.requested);
    const auto [share, inverse] = *means;
    return {part(std::sqrt(share / inverse), job), part(share, job), job.requested};
  }

  void finish(const FinishedJob& job) override {
    if (job.evidence == Evidence::kNone) return;
    const auto ran = static_cast<double>(std::max(job.runtime(), shortest_));
    const double share = job.evidence == Evidence::kAtLimit
                             ? 1.0
                             : std::min(1.0, ran / static_cast<double>(job.request.requested));
    sums_.add(job.request, {share, 1.0 / share}, job.end);
  }

  KindSums& sums() { return sums_; }
  const KindSums& sums() const { return sums_; }

 private:
  // Of the request, rounded up.
  static Seconds part(double share, const JobRequest& job) {
    const double seconds = std::ceil(share * static_cast<double>(job.requested));
    if (!(seconds < static_cast<double>(job.requested))) return job.requested;
    return std::max<Seconds>(1, static_cast<Seconds>(seconds));
  }

  KindSums sums_;
  Seconds shortest_;
};

}  // namespace foretime
