// Limits that a QOS has set: those after it are not looked at.
#pragma once

#include <array>
#include <cstdint>

#include "slurm/limit_setup.hpp"

namespace foretime::slurm {

class Imposed {
 public:
  bool has(NumberLimit limit) const { return (numbers_ >> static_cast<unsigned>(limit) & 1U) != 0; }
  bool has(TresLimit limit, std::int32_t kind) const {
    return (kinds_[static_cast<std::size_t>(limit)] >> static_cast<unsigned>(kind) & 1U) != 0;
  }
  void add(TresLimit limit, std::int32_t kind) {
    kinds_[static_cast<std::size_t>(limit)] |= std::uint64_t{1} << static_cast<unsigned>(kind);
  }
  // Whether a limit counts; it then hides those after it.
  bool takes(const LimitSet& limits, NumberLimit limit) {
    if (limits[limit] == kNoLimit || has(limit)) return false;
    numbers_ |= 1U << static_cast<unsigned>(limit);
    return true;
  }

 private:
  std::uint32_t numbers_ = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(TresLimit::count)> kinds_{};
};

// A limit of an association under the LimitFactor of a QOS (_apply_limit_factor).
inline std::int64_t under_factor(std::int64_t limit, double factor) {
  return factor <= 0 ? limit : static_cast<std::int64_t>(static_cast<double>(limit) * factor);
}

// Which kind of a QOS's limit a job exceeds (_validate_tres_limits_for_qos).
inline Reason qos_job_limit(const LimitSet& limits, TresLimit limit,
                            const std::vector<std::int64_t>& of_job, std::int64_t times,
                            std::int64_t divided_by, Imposed& imposed) {
  for (const auto& [kind, most] : limits[limit]) {
    if (imposed.has(limit, kind)) continue;
    imposed.add(limit, kind);
    auto count = of_job[static_cast<std::size_t>(kind)] * times;
    if (divided_by != 0) count /= divided_by;
    if (limit == TresLimit::least ? count < most : count > most) {
      return tres_reason(true, limit, kind);
    }
  }
  return reason::none;
}

// Which kind of an association's limit a job exceeds (_validate_tres_limits_for_assoc).
inline Reason association_job_limit(const LimitSet& limits, TresLimit limit,
                                    const std::vector<std::int64_t>& of_job, std::int64_t times,
                                    std::int64_t divided_by, double factor,
                                    const Imposed& imposed) {
  for (const auto& [kind, most] : limits[limit]) {
    auto count = of_job[static_cast<std::size_t>(kind)] * times;
    if (imposed.has(limit, kind) || count == 0) continue;
    if (divided_by != 0) count /= divided_by;
    if (count > under_factor(most, factor)) return tres_reason(false, limit, kind);
  }
  return reason::none;
}

}  // namespace foretime::slurm
