// Online regression on a degree-2 polynomial by normalised adaptive gradients, as
// foretime_estimators.estimators.regression.online_regression: the same operations on doubles in
// the same order, so that every bit of a prediction is the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "estimators/prediction_loss.hpp"
#include "estimators/runtime_features.hpp"

namespace foretime {

class OnlineRegression {
 public:
  // 1, the features, their products in pairs, their squares.
  static constexpr std::size_t kTerms = 1 + 2 * kFeatures + kFeatures * (kFeatures - 1) / 2;
  static constexpr std::size_t kLanes = 8;
  // Filled up to whole lanes with terms that are always 0.
  static constexpr std::size_t kSize = (kTerms + kLanes - 1) / kLanes * kLanes;
  struct alignas(64) Terms : std::array<double, kSize> {};

  struct Settings {
    double eta = 0;
    double l2 = 0;
    double decay = 1;  // of squared gradients, with each example
  };
  struct Learned {
    std::int64_t examples = 0;
    double normalised_squares = 0;
    Terms weight{};
    Terms scale{};
    Terms gradient_squares{};
  };

  explicit OnlineRegression(const Settings& settings) : settings_(settings) {}

  double predict(const Features& features) const;
  void learn(const Features& features, const JobLoss& loss);

  const Learned& learned() const { return learned_; }
  void restore(const Learned& learned) { learned_ = learned; }

 private:
  Settings settings_;
  Learned learned_;
};

}  // namespace foretime
