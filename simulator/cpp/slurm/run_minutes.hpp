// What jobs have used, as the decay thread charges it to QOS and associations.
// reference/slurm/limits/run_minutes.py is the specification, to the last bit.
#pragma once

#include <cstdint>
#include <vector>

#include "slurm/limit_groups.hpp"

namespace foretime::slurm {

// What Slurm takes for the logarithm of 2.
inline constexpr double kSlurmsLn2 = 0.693;  // NOLINT(modernize-use-std-numbers)

// A running job, and who is charged for it.
struct ChargedJob {
  Counted counted;
  std::vector<std::int64_t> tres;
  std::int64_t start = 0;
  std::int64_t limit_end = 0;
};

class RunMinutes {
 public:
  RunMinutes(bool multifactor, double half_life_s, std::int64_t now)
      : multifactor_(multifactor),
        decay_(half_life_s > 0 ? 1 - (kSlurmsLn2 / half_life_s) : 1.0),
        last_look_(now) {}

  // Whether a look at this moment does anything.
  bool looks(std::int64_t now) const { return multifactor_ && now > last_look_; }
  void looked(std::int64_t now) { last_look_ = now; }

  void decay(LimitGroups& groups, std::int64_t now) const;
  void charge(LimitGroups& groups, const ChargedJob& job, std::int64_t now, bool ended) const;
  void ended(LimitGroups& groups, const ChargedJob& job, std::int64_t now) const;

 private:
  bool multifactor_;
  double decay_;
  std::int64_t last_look_;
};

}  // namespace foretime::slurm
