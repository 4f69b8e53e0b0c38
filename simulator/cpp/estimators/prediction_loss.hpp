// What a wrong prediction costs, as foretime_estimators.estimators.regression.prediction_loss
// (Gaussier 2015, tables 3, 5).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/names.hpp"
#include "core/types.hpp"

namespace foretime {

enum class LossBranch : std::uint8_t { kSquared, kLinear };
constexpr auto names_of(LossBranch) { return named("squared", "linear"); }
enum class LossWeight : std::uint8_t { kConstant, kShortWide, kLongNarrow, kSmallArea, kLargeArea };
constexpr auto names_of(LossWeight) {
  return named("constant", "short-wide", "long-narrow", "small-area", "large-area");
}

// The loss of one job whose runtime is known, as a function of what was predicted for it.
class JobLoss {
 public:
  JobLoss(LossBranch over, LossBranch under, double weight, double runtime)
      : over_(over), under_(under), weight_(weight), runtime_(runtime) {}

  // The derivative by the prediction; 0 where that is the runtime itself.
  double slope(double predicted) const {
    const double error = predicted - runtime_;
    if (error == 0) return 0;
    const LossBranch branch = error > 0 ? over_ : under_;
    return weight_ * (branch == LossBranch::kSquared ? 2.0 * error : std::copysign(1.0, error));
  }

 private:
  LossBranch over_;
  LossBranch under_;
  double weight_;
  double runtime_;
};

struct PredictionLoss {
  LossBranch over = LossBranch::kSquared;
  LossBranch under = LossBranch::kLinear;
  LossWeight weight = LossWeight::kLargeArea;
  double log_base = 10;
  double least_weight = 0;  // whatever the logarithms say

  JobLoss of(Seconds runtime, Processors processors) const {
    const double seconds = std::max(static_cast<double>(runtime), 1.0);
    return {over, under, weight_of(seconds, static_cast<double>(processors)), seconds};
  }

 private:
  // The same expressions in the same order as in Python.
  double weight_of(double seconds, double processors) const {
    if (weight == LossWeight::kConstant) return 1;
    const double q = std::log(processors);
    const double p = std::log(seconds);
    double value = 0;
    switch (weight) {
      case LossWeight::kShortWide:
        value = 5.0 + (q - p) / std::log(log_base);
        break;
      case LossWeight::kLongNarrow:
        value = 5.0 + (p - q) / std::log(log_base);
        break;
      case LossWeight::kSmallArea:
        value = 11.0 - (q + p) / std::log(log_base);
        break;
      default:
        value = (q + p) / std::log(log_base);
    }
    return std::max(value, least_weight);
  }
};

}  // namespace foretime
