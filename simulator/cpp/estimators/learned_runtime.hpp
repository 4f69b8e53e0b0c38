// Runtimes learned job by job, as foretime_estimators.estimators.regression.learned_runtime
// (Gaussier 2015, section 4).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "estimators/online_estimator.hpp"
#include "estimators/online_regression.hpp"
#include "estimators/prediction_loss.hpp"
#include "estimators/runtime_features.hpp"

namespace foretime {

class LearnedRuntime final : public OnlineEstimator {
 public:
  // `absolute`: predictions lose their sign. `most_asked`: of how many jobs at most features are
  // remembered until they end.
  LearnedRuntime(const PredictionLoss& loss, const OnlineRegression::Settings& settings,
                 bool absolute, std::size_t most_asked)
      : loss_(loss), regression_(settings), absolute_(absolute), most_asked_(most_asked) {}

  RolePrediction predict(const JobRequest& job, Seconds now) override;
  void start(const JobRequest& job, Seconds time) override { features_.start(job, time); }
  void finish(const FinishedJob& job) override;

  OnlineRegression& regression() { return regression_; }
  const OnlineRegression& regression() const { return regression_; }
  RuntimeFeatures& features() { return features_; }
  const RuntimeFeatures& features() const { return features_; }
  // Jobs asked about that have not ended, in the order of the asking, with their features then.
  std::vector<std::pair<JobIndex, Features>> asked() const;

 private:
  Seconds predicted(const JobRequest& job, const Features& features) const;
  void remember(JobIndex job, const Features& features);
  void forget(JobIndex job);

  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

  PredictionLoss loss_;
  OnlineRegression regression_;
  bool absolute_;
  RuntimeFeatures features_;
  std::size_t most_asked_;
  std::vector<Features> kept_;  // in places that are used again
  std::vector<std::size_t> unused_;
  std::vector<std::size_t> place_;  // in kept_, by job
  std::size_t oldest_ = 0;          // no job before it is kept
};

}  // namespace foretime
