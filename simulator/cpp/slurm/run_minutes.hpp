// What jobs have used, as the decay thread charges it to QOS and associations.
// reference/slurm/limits/run_minutes.py is the specification, to the last bit.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "slurm/limit_counts.hpp"

namespace foretime::slurm {

// What Slurm takes for the logarithm of 2.
inline constexpr double kSlurmsLn2 = 0.693;  // NOLINT(modernize-use-std-numbers)

// A running job, and who is charged for it.
struct ChargedJob {
  std::vector<std::int64_t> tres;
  std::int64_t start = 0;
  std::int64_t limit_end = 0;
  QosGroup* own_qos = nullptr;
  QosGroup* partition_qos = nullptr;  // null: none but its own
  const std::vector<AssociationGroup*>* line = nullptr;
  std::int32_t user = kNone;

  template <typename Visit>
  void for_each_qos(Visit visit) const {
    if (own_qos != nullptr) visit(*own_qos);
    if (partition_qos != nullptr) visit(*partition_qos);
  }
  // All counts of what it has and may still use.
  template <typename Visit>
  void for_each_count(bool of_partition_qos, Visit visit) const {
    for_each_qos([&](QosGroup& qos) {
      if (&qos == partition_qos && !of_partition_qos) return;
      visit(qos.counts);
      visit(qos.of_user(user));
      visit(qos.of_account(line->front()->account));
    });
    for (auto* group : *line) visit(group->counts);
  }
};

class RunMinutes {
 public:
  RunMinutes(bool multifactor, double half_life_s, std::int64_t now)
      : multifactor_(multifactor),
        decay_(half_life_s > 0 ? 1 - (kSlurmsLn2 / half_life_s) : 1.0),
        last_look_(now) {}

  // Whether a look at this moment does anything.
  bool looks(std::int64_t now) const { return multifactor_ && now > last_look_; }
  double decay_until(std::int64_t now) const {
    return std::pow(decay_, static_cast<double>(now - last_look_));
  }
  void looked(std::int64_t now) { last_look_ = now; }

  void charge(const ChargedJob& job, std::int64_t now, bool ended) const;
  void ended(const ChargedJob& job, std::int64_t now) const;

 private:
  bool multifactor_;
  double decay_;
  std::int64_t last_look_;
};

// What has been used decays.
inline void let_decay(Group& group, double decay) {
  if (!group.decays || decay == 1.0) return;
  group.used_wall_s *= decay;
  for (auto& used : group.used_s) used *= decay;
}

}  // namespace foretime::slurm
