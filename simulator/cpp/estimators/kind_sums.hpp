// Aged sums by kind of jobs, as foretime_estimators.estimators.kind_sums; kinds as in job_kinds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>
#include <vector>

#include "estimators/online_estimator.hpp"

namespace foretime {

// What jobs have in common, from fine to coarse.
enum class KindLevel : std::uint8_t {
  kExecutable,
  kUserRequestSize,
  kUserRequest,
  kUserClass,
  kUser,
  kProjectRequest,
  kProject,
  kQueueClasses,
  kClasses,
  kAll,
};

struct Kind {
  KindLevel level = KindLevel::kAll;
  std::array<std::int64_t, 4> values{};  // as many as the level has, then zeros
  friend bool operator==(const Kind&, const Kind&) = default;
};

struct KindHash {
  std::size_t operator()(const Kind& kind) const {
    auto hash = static_cast<std::uint64_t>(kind.level);
    for (const std::int64_t value : kind.values) {
      hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 32U;
    }
    return static_cast<std::size_t>(hash);
  }
};

class KindSums {
 public:
  static constexpr std::size_t kFigures = 2;
  using Figures = std::array<double, kFigures>;
  struct Known {
    Kind kind;
    Seconds end = 0;  // the latest
    double weight = 0;
    Figures sums{};
  };
  struct Ageing {
    double fading = 1;     // of a kind's sums, with each further job
    double enough = 1;     // weight with which a kind decides half of what is left open
    Seconds window = 0;    // a kind of which no job has ended for so long is forgotten
    double left_open = 0;  // share below which no coarser kind counts
  };

  explicit KindSums(const Ageing& ageing) : ageing_(ageing) {}

  // In the order of end times.
  void add(const JobRequest& job, const Figures& figures, Seconds end);
  // Over the kinds of a job; none before any job has ended.
  std::optional<Figures> mean(const JobRequest& job, const Figures& otherwise) const;

  // Latest used last.
  const std::list<Known>& known() const { return known_; }
  // After those that are known.
  void restore(const Known& known);

 private:
  Ageing ageing_;
  std::list<Known> known_;
  std::unordered_map<Kind, std::list<Known>::iterator, KindHash> place_;
};

}  // namespace foretime
