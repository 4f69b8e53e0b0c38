// How good a planned schedule is, as exact fractions of whole numbers; see Quality in
// policy_switching.py, which is where they are explained.
#pragma once

#include <algorithm>
#include <compare>
#include <limits>

#include "core/types.hpp"

namespace foretime {

using Wide = __int128;

// Its denominator is positive, or 0 if it is infinite.
struct Fraction {
  Wide numerator = 0;
  std::int64_t denominator = 1;

  bool is_infinite() const { return denominator == 0; }
  double value() const {
    if (is_infinite()) return std::numeric_limits<double>::infinity();
    return static_cast<double>(numerator) / static_cast<double>(denominator);
  }
  friend std::weak_ordering operator<=>(const Fraction& a, const Fraction& b) {
    if (a.is_infinite() || b.is_infinite())
      return static_cast<int>(a.is_infinite()) <=> static_cast<int>(b.is_infinite());
    if (a.denominator == b.denominator) return a.numerator <=> b.numerator;
    return a.numerator * b.denominator <=> b.numerator * a.denominator;
  }
  friend bool operator==(const Fraction& a, const Fraction& b) { return (a <=> b) == 0; }
};

// Of a quality and that of the current order.
inline double ratio(double quality, double current) {
  const bool same = quality == current;  // 0 and 0, or both infinite, too
  return same ? 1 : quality / current;
}

// A waiting job as it is planned.
struct PlannedJob {
  Seconds submit = 0;
  Seconds start = 0;
  Seconds time = 0;
  Processors processors = 0;
  Seconds end() const { return start + time; }
};

// Millionths, rounded down.
inline Wide bounded_slowdown(const PlannedJob& job, Seconds bound) {
  const Seconds response = std::max(job.end() - job.submit, bound);
  const Seconds runtime = std::max(job.time, bound);
  constexpr Seconds kMillion = 1'000'000;
  if (response < std::numeric_limits<Seconds>::max() / kMillion) {
    return response * kMillion / runtime;
  }
  return Wide{response} * kMillion / runtime;
}

// Sums one quality up over the jobs of a schedule that count.
class QualitySum {
 public:
  // `last_end`: when the last running job is expected to have ended; not before now.
  QualitySum(Quality quality, Seconds slowdown_bound, Seconds now, Seconds last_end)
      : quality_(quality), bound_(slowdown_bound), now_(now), last_end_(last_end) {}

  void add(const PlannedJob& job) {
    const Processors weight = is_weighted() ? job.processors : 1;
    denominator_ += weight;
    switch (quality_) {
      case Quality::kMakespan:
        last_end_ = std::max(last_end_, job.end());
        break;
      case Quality::kArt:
      case Quality::kArtww:
        numerator_ += Wide{weight} * (job.end() - job.submit);
        break;
      case Quality::kWait:
      case Quality::kWaitww:
        numerator_ += Wide{weight} * (job.start - job.submit);
        break;
      case Quality::kSlowdown:
      case Quality::kSldww:
        numerator_ += weight * bounded_slowdown(job, bound_);
        break;
    }
  }

  // Infinite if nobody counts.
  Fraction result() const {
    if (denominator_ == 0) return {0, 0};
    if (quality_ == Quality::kMakespan) return {last_end_ - now_, 1};
    return {numerator_, denominator_};
  }

 private:
  bool is_weighted() const {
    return quality_ == Quality::kArtww || quality_ == Quality::kWaitww ||
           quality_ == Quality::kSldww;
  }

  Quality quality_;
  Seconds bound_;
  Seconds now_;
  Seconds last_end_;
  Wide numerator_ = 0;
  std::int64_t denominator_ = 0;
};

}  // namespace foretime
