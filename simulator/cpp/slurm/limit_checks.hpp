// What QOS and associations say of one job: at submission, before nodes are looked for, and once
// they are known. reference/slurm/limits/limit_checks.py and limit_submission.py are the
// specification.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "slurm/limit_groups.hpp"
#include "slurm/limit_setup.hpp"

namespace foretime::slurm {

// A job, and whose limits it has.
struct PolicyCase {
  std::int32_t user = kNone;
  std::int64_t minutes = 0;
  std::array<const QosGroup*, 2> qos{};  // the stronger first; null: none
  const QosGroup* own_qos = nullptr;
  AssociationLine line;

  double usage_factor() const { return own_qos == nullptr ? 1.0 : own_qos->setup().usage_factor; }
  // Minutes as they count under UsageFactorSafe.
  std::int64_t weighed(std::int64_t of_job) const {
    if (own_qos == nullptr || !own_qos->setup().weighs_minutes) return of_job;
    return static_cast<std::int64_t>(static_cast<double>(of_job) * usage_factor());
  }
  double limit_factor() const {
    for (const auto* group : qos) {
      if (group != nullptr && group->setup().limit_factor >= 0) return group->setup().limit_factor;
    }
    return 0.0;
  }
};

class LimitChecks {
 public:
  explicit LimitChecks(std::shared_ptr<const LimitsSetup> setup) : setup_(std::move(setup)) {}

  Reason why_refused(const PolicyCase& job, const std::vector<std::int64_t>& tres,
                     std::int64_t jobs) const;
  Reason why_not_considered(const PolicyCase& job) const;
  Reason why_too_many_nodes(const PolicyCase& job, std::int64_t nodes) const;
  Reason why_not_started(const PolicyCase& job, const std::vector<std::int64_t>& tres,
                         Nodes nodes) const;

  // Whether a job that has run for so many minutes is ended (acct_policy_job_time_out).
  bool is_killed(const PolicyCase& job, const std::vector<std::int64_t>& tres,
                 std::int64_t ran) const;

 private:
  std::shared_ptr<const LimitsSetup> setup_;
};

}  // namespace foretime::slurm
