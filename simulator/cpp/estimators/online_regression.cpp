// Written so that a compiler makes vector operations of it: whole lanes, no branches.
// CMakeLists.txt forbids fused operations here, which would round differently from machine to
// machine.
#include "estimators/online_regression.hpp"

#include <cmath>

namespace foretime {
namespace {

using Terms = OnlineRegression::Terms;
constexpr std::size_t kLanes = OnlineRegression::kLanes;
constexpr std::size_t kSize = OnlineRegression::kSize;

Terms basis(const Features& x) {
  Terms phi;
  std::size_t at = 0;
  phi[at++] = 1;
  for (std::size_t i = 0; i < kFeatures; ++i) phi[at++] = x[i];
  for (std::size_t i = 0; i < kFeatures; ++i) {
    for (std::size_t l = i + 1; l < kFeatures; ++l) phi[at++] = x[i] * x[l];
  }
  for (std::size_t i = 0; i < kFeatures; ++i) phi[at++] = x[i] * x[i];
  while (at < kSize) phi[at++] = 0;
  return phi;
}

// In eight lanes, added up in pairs at the end.
template <class Term>
double sum(Term term) {
  std::array<double, kLanes> lane{};
  for (std::size_t i = 0; i < kSize; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) lane[k] += term(i + k);
  }
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

}  // namespace

double OnlineRegression::predict(const Features& features) const {
  const Terms phi = basis(features);
  const Terms& weight = learned_.weight;
  return sum([&](std::size_t i) { return weight[i] * phi[i]; });
}

void OnlineRegression::learn(const Features& features, const JobLoss& loss) {
  const Terms phi = basis(features);
  Terms& weight = learned_.weight;
  Terms& scale = learned_.scale;
  Terms& gradient_squares = learned_.gradient_squares;
  Terms normalised;
  for (std::size_t i = 0; i < kSize; ++i) {
    const double size = std::fabs(phi[i]);
    const double shrunk = weight[i] * (scale[i] / size);
    weight[i] = size > scale[i] ? shrunk : weight[i];
    scale[i] = size > scale[i] ? size : scale[i];
    const double ratio = phi[i] / scale[i];
    normalised[i] = scale[i] > 0 ? ratio : 0;
  }
  const double predicted = sum([&](std::size_t i) { return weight[i] * phi[i]; });
  learned_.normalised_squares += sum([&](std::size_t i) { return normalised[i] * normalised[i]; });
  ++learned_.examples;
  const double slope = loss.slope(predicted);
  const double rate = settings_.eta * std::sqrt(static_cast<double>(learned_.examples) /
                                                learned_.normalised_squares);
  const double l2 = settings_.l2;
  const double decay = settings_.decay;
  for (std::size_t i = 0; i < kSize; ++i) {
    const double gradient = slope * phi[i] + l2 * weight[i];
    const double squares = gradient_squares[i] * decay + gradient * gradient;
    gradient_squares[i] = squares;
    const double step = rate * gradient / (scale[i] * std::sqrt(squares));
    weight[i] -= scale[i] > 0 && squares > 0 ? step : 0;
  }
}

}  // namespace foretime
