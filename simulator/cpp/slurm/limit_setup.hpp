// What a site's limits are, with indices for names; src/slurmctld/acct_policy.c of Slurm.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/names.hpp"
#include "slurm/billing.hpp"

namespace foretime::slurm {

inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int32_t kNone = -1;
// Kinds of resources (TRES) are bits of a word where limits hide one another.
inline constexpr std::int32_t kMostKinds = 64;

// Limits by kind of resource; places in `LimitSet::tres`, in the order of `_TRES_LIMITS` of
// limits_core.py.
enum class TresLimit : std::uint8_t {
  group,
  group_minutes,
  group_run_minutes,
  job,
  job_node,
  job_minutes,
  user,
  account,
  user_run_minutes,
  account_run_minutes,
  least,
  count
};

// Limits that are one number; places in `LimitSet::numbers`, in the order of `_NUMBERS`.
// Walls are in minutes.
enum class NumberLimit : std::uint8_t {
  group_jobs,
  group_submitted,
  group_wall,
  jobs,
  submitted,
  account_jobs,
  account_submitted,
  wall,
  count
};

// Kinds with their limits, in the order in which Slurm looks at them.
using KindLimits = std::vector<std::pair<std::int32_t, std::int64_t>>;

struct LimitSet {
  std::array<std::int64_t, static_cast<std::size_t>(NumberLimit::count)> numbers{};
  std::array<KindLimits, static_cast<std::size_t>(TresLimit::count)> tres{};

  std::int64_t operator[](NumberLimit limit) const {
    return numbers[static_cast<std::size_t>(limit)];
  }
  const KindLimits& operator[](TresLimit limit) const {
    return tres[static_cast<std::size_t>(limit)];
  }
};

struct QosSetup {
  LimitSet limits;
  bool deny_on_limit = false;
  bool over_partition_qos = false;
  bool weighs_minutes = false;  // UsageFactorSafe
  bool decays = true;           // not NoDecay
  bool any_most_nodes = false;  // PartitionMaxNodes
  bool any_least_nodes = false;
  bool any_time_limit = false;
  double usage_factor = 1.0;
  double limit_factor = -1.0;  // negative: none
  std::vector<double> used_s;  // by kind
  double used_wall_s = 0.0;
};

struct AssociationSetup {
  LimitSet limits;  // those of one job with those from above
  std::int32_t parent = kNone;
  std::vector<std::int32_t> line;  // itself first, root last
  std::int32_t account = kNone;
  std::vector<double> used_s;
  double used_wall_s = 0.0;
};

struct PartitionSetup {
  bool submits = true;  // UP or DOWN
  bool starts = true;   // UP or DRAIN
  std::int32_t qos = kNone;
  std::int64_t cpus = 0;
  std::int64_t nodes = 0;
  std::int64_t least_nodes = 0;
  std::int64_t most_nodes = kNoLimit;
  std::int64_t most_cpus_per_node = kNoLimit;
  std::int64_t most_minutes = kNoLimit;
  std::vector<bool> denied_qos;           // by QOS; the last: jobs without one
  std::vector<bool> denied_associations;  // by association
  std::vector<double> billing_weights;    // by kind; empty: CPUs
};

enum class PartLimits : std::uint8_t { no, all, any };

struct LimitsSetup {
  std::int32_t kinds = 0;
  std::int32_t cpu_kind = kNone;
  std::int32_t memory_kind = kNone;
  std::int32_t node_kind = kNone;
  std::int32_t gpu_kind = kNone;
  std::int32_t billing_kind = kNone;
  Billing bills;
  std::vector<QosSetup> qos;
  std::vector<AssociationSetup> associations;
  std::vector<PartitionSetup> slurm_partitions;
  std::vector<std::int64_t> licenses;
  std::vector<std::int32_t> license_kinds;  // kind of each license
  bool associations_count = false;
  bool limits_count = false;
  bool safe = false;
  bool assoc_limit_stop = false;
  bool run_minutes_of_users = true;  // from 24.05 on
  bool user_and_group_apart = true;
  bool names_accounts = false;  // before 23.02
  PartLimits part_limits = PartLimits::no;
  bool multifactor = true;
  double decay_half_life_s = 0.0;
};

// What is wrong with a job by itself, whatever the others do.
enum class Flaw : std::uint8_t { none, account, qos, license };
constexpr auto names_of(Flaw) { return named("none", "account", "qos", "license"); }

struct LimitedJob {
  std::int32_t index = 0;
  std::int32_t user = kNone;
  std::int32_t association = kNone;
  std::int32_t qos = kNone;  // its own, or the one that it has by default
  std::span<const std::int32_t> slurm_partitions;
  std::int64_t minutes = 0;
  std::span<const std::int64_t> tres;  // by kind, without licenses and billing
  std::span<const std::pair<std::int32_t, std::int64_t>> licenses;
  std::int32_t array = kNone;
  std::int64_t array_most_running = 0;
  Flaw flaw = Flaw::none;
};

// Why a job is kept: 0, a fixed code, or kTresReason + scope * kMostKinds + kind.
using Reason = std::int32_t;
namespace reason {
inline constexpr Reason none = 0;
inline constexpr Reason bad_account = 1;
inline constexpr Reason bad_qos = 2;
inline constexpr Reason bad_license = 3;
inline constexpr Reason bad_node_count = 4;
inline constexpr Reason bad_time_limit = 5;
inline constexpr Reason too_many_cpus = 6;
inline constexpr Reason partition_closed = 7;
inline constexpr Reason array_throttle = 8;
inline constexpr Reason licenses = 9;
inline constexpr Reason partition_config = 10;
inline constexpr Reason partition_down = 11;
inline constexpr Reason partition_inactive = 12;
inline constexpr Reason partition_nodes = 13;
inline constexpr Reason partition_time = 14;
inline constexpr Reason qos_not_allowed = 15;
inline constexpr Reason account_not_allowed = 16;
inline constexpr Reason assoc_group_jobs = 17;
inline constexpr Reason assoc_group_submitted = 18;
inline constexpr Reason assoc_group_wall = 19;
inline constexpr Reason assoc_jobs = 20;
inline constexpr Reason assoc_submitted = 21;
inline constexpr Reason assoc_wall = 22;
inline constexpr Reason qos_group_jobs = 23;
inline constexpr Reason qos_group_submitted = 24;
inline constexpr Reason qos_group_wall = 25;
inline constexpr Reason qos_user_jobs = 26;
inline constexpr Reason qos_user_submitted = 27;
inline constexpr Reason qos_account_jobs = 28;
inline constexpr Reason qos_account_submitted = 29;
inline constexpr Reason qos_wall = 30;
}  // namespace reason
inline constexpr Reason kTresReason = 1024;

inline Reason tres_reason(bool of_qos, TresLimit limit, std::int32_t kind) {
  const auto scope =
      static_cast<std::int32_t>(limit) + (of_qos ? static_cast<std::int32_t>(TresLimit::count) : 0);
  return kTresReason + scope * kMostKinds + kind;
}

}  // namespace foretime::slurm
