#include "slurm/limits.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace foretime::slurm {

namespace {

bool goes_by_minutes(const LimitSet& limits) {
  return limits[NumberLimit::group_wall] != kNoLimit || !limits[TresLimit::group_minutes].empty() ||
         !limits[TresLimit::group_run_minutes].empty() ||
         !limits[TresLimit::user_run_minutes].empty() ||
         !limits[TresLimit::account_run_minutes].empty();
}

}  // namespace

Limits::Limits(LimitsSetup setup, std::int64_t now)
    : setup_(std::move(setup)),
      checks_(setup_),
      minutes_(setup_.multifactor, setup_.decay_half_life_s, now),
      licenses_in_use_(setup_.licenses.size()) {
  if (setup_.kinds > kMostKinds) {
    throw std::invalid_argument("limits know at most 64 kinds of resources (TRES)");
  }
  for (const auto& those : setup_.qos) {
    qos_.push_back(std::make_unique<QosGroup>(those, setup_.kinds, setup_.node_kind));
    minutes_count_ = minutes_count_ || goes_by_minutes(those.limits);
  }
  for (const auto& those : setup_.associations) {
    associations_.push_back(
        std::make_unique<AssociationGroup>(those, setup_.kinds, setup_.node_kind));
    minutes_count_ = minutes_count_ || goes_by_minutes(those.limits);
  }
  for (std::size_t place = 0; place < associations_.size(); ++place) {
    for (auto above = static_cast<std::int32_t>(place); above != kNone;
         above = setup_.associations[static_cast<std::size_t>(above)].parent) {
      associations_[place]->line.push_back(associations_[static_cast<std::size_t>(above)].get());
    }
  }
}

// Partitions --------------------------------------------------------------------------------------

bool Limits::qos_denied(const LimitedJob& job, std::int32_t slurm_partition) const {
  const auto& denied = partition(slurm_partition).denied_qos;
  const auto place = job.qos == kNone ? denied.size() - 1 : static_cast<std::size_t>(job.qos);
  return !denied.empty() && denied[place];
}

bool Limits::account_denied(const LimitedJob& job, std::int32_t slurm_partition) const {
  const auto& denied = partition(slurm_partition).denied_associations;
  return !denied.empty() && job.association != kNone &&
         denied[static_cast<std::size_t>(job.association)];
}

// _part_access_check: the words are those of sbatch.
Reason Limits::partition_refuses(const LimitedJob& job, std::int32_t slurm_partition) const {
  const auto& rules = partition(slurm_partition);
  const auto cpus = job.tres[static_cast<std::size_t>(setup_.cpu_kind)];
  const auto nodes = job.tres[static_cast<std::size_t>(setup_.node_kind)];
  const auto* own = qos_of(job.qos);
  if (rules.starts) {
    if (cpus > rules.cpus ||
        (rules.most_cpus_per_node != kNoLimit && cpus > rules.most_cpus_per_node * rules.nodes)) {
      return reason::too_many_cpus;
    }
    if (nodes > rules.nodes ||
        (nodes < rules.least_nodes && (own == nullptr || !own->setup.any_least_nodes)) ||
        (nodes > rules.most_nodes && (own == nullptr || !own->setup.any_most_nodes))) {
      return reason::bad_node_count;
    }
    if (job.minutes > rules.most_minutes && (own == nullptr || !own->setup.any_time_limit)) {
      return reason::bad_time_limit;
    }
  }
  if (setup_.part_limits == PartLimits::no) return reason::none;
  if (qos_denied(job, slurm_partition)) return reason::bad_qos;
  return account_denied(job, slurm_partition) ? reason::bad_account : reason::none;
}

Reason Limits::partitions_refuse(const LimitedJob& job) const {
  Reason first = reason::none;
  Reason last = reason::none;
  bool open = false;
  bool any_right = false;
  for (const auto place : job.slurm_partitions) {
    if (!partition(place).submits) continue;
    open = true;
    if (setup_.part_limits == PartLimits::no) return reason::none;
    const auto found = partition_refuses(job, place);
    any_right = any_right || found == reason::none;
    if (found == reason::none) continue;
    last = found;
    if (first == reason::none) first = found;
  }
  if (!open) return reason::partition_closed;
  if (setup_.part_limits == PartLimits::any) return any_right ? reason::none : last;
  return first;
}

// Questions ---------------------------------------------------------------------------------------

PolicyCase Limits::case_of(const LimitedJob& job, std::int32_t slurm_partition,
                           std::int64_t minutes) const {
  PolicyCase found;
  found.user = job.user;
  found.minutes = minutes;
  found.line = &line_of(job);
  found.own_qos = qos_of(job.qos);
  auto* stronger = qos_of(partition(slurm_partition).qos);
  auto* weaker = found.own_qos;
  if (weaker != nullptr && weaker->setup.over_partition_qos) std::swap(stronger, weaker);
  if (stronger == nullptr) std::swap(stronger, weaker);
  found.qos = {stronger, stronger == weaker ? nullptr : weaker};
  return found;
}

Reason Limits::why_refused(const LimitedJob& job, std::int64_t jobs) const {
  if (job.flaw == Flaw::account) return reason::bad_account;
  if (job.flaw == Flaw::qos) return reason::bad_qos;
  const auto refused = partitions_refuse(job);
  if (refused != reason::none) return refused;
  if (job.flaw == Flaw::license) return reason::bad_license;
  if (!counted(job)) return reason::none;
  for (const auto place : job.slurm_partitions) {
    const auto found = checks_.why_refused(case_of(job, place, job.minutes), job.tres, jobs);
    if (found != reason::none) return found;
  }
  return reason::none;
}

Reason Limits::why_not_considered(const LimitedJob& job, std::int32_t slurm_partition,
                                  std::int64_t minutes) const {
  if (array_is_full(job)) return reason::array_throttle;
  const auto& rules = partition(slurm_partition);
  switch (partition_refuses(job, slurm_partition)) {
    case reason::none:
      break;
    case reason::bad_time_limit:
      return reason::partition_time;
    case reason::bad_node_count:
      return reason::partition_nodes;
    default:
      return reason::partition_config;
  }
  if (!rules.starts) return rules.submits ? reason::partition_down : reason::partition_inactive;
  const auto nodes = job.tres[static_cast<std::size_t>(setup_.node_kind)];
  if (counted(job)) {
    const auto found = checks_.why_not_considered(case_of(job, slurm_partition, minutes));
    if (found != reason::none) return found;
  }
  if (qos_denied(job, slurm_partition)) return reason::qos_not_allowed;
  if (account_denied(job, slurm_partition)) {
    return setup_.names_accounts ? reason::account_not_allowed : reason::partition_config;
  }
  if (counted(job)) {
    const auto found = checks_.why_too_many_nodes(case_of(job, slurm_partition, minutes), nodes);
    if (found != reason::none) return found;
  }
  const auto* own = qos_of(job.qos);
  const bool too_many = nodes > rules.most_nodes && (own == nullptr || !own->setup.any_most_nodes);
  return too_many ? reason::partition_nodes : reason::none;
}

Reason Limits::why_not_started(const LimitedJob& job, const std::vector<std::int64_t>& tres,
                               std::int32_t slurm_partition, Nodes nodes,
                               std::int64_t minutes) const {
  if (!counted(job)) return reason::none;
  return checks_.why_not_started(case_of(job, slurm_partition, minutes), tres, nodes);
}

Reason Limits::why_no_licenses(const LimitedJob& job) const {
  for (std::size_t place = 0; place < setup_.licenses.size(); ++place) {
    const auto kind = static_cast<std::size_t>(setup_.license_kinds[place]);
    const auto asked = job.tres[kind];
    if (asked != 0 && asked > setup_.licenses[place] - licenses_in_use_[place]) {
      return reason::licenses;
    }
  }
  return reason::none;
}

bool Limits::array_is_full(const LimitedJob& job) const {
  if (job.array == kNone || job.array_most_running == 0) return false;
  const auto found = tasks_running_.find(job.array);
  return found != tasks_running_.end() && found->second >= job.array_most_running;
}

bool Limits::blocks_lower_jobs(Reason reason) const {
  return setup_.assoc_limit_stop && reason >= reason::assoc_group_jobs;
}

bool Limits::is_killed(const LimitedJob& job, std::int64_t now) const {
  const auto found = running_.find(job.index);
  if (found == running_.end() || found->second.charged.line == nullptr || setup_.safe) {
    return false;
  }
  const auto& run = found->second;
  const auto ran = (now - run.charged.start) / 60;
  return checks_.is_killed(case_of(job, run.slurm_partition, job.minutes), run.charged.tres, ran);
}

// Events ------------------------------------------------------------------------------------------

void Limits::count_submitted(const LimitedJob& job, QosGroup& qos, std::int64_t jobs) const {
  qos.counts.submitted += jobs;
  qos.of_user(job.user).submitted += jobs;
  qos.of_account(line_of(job).front()->account).submitted += jobs;
}

void Limits::count_submitted_everywhere(const LimitedJob& job,
                                        const std::vector<std::int32_t>& slurm_partitions,
                                        std::int64_t jobs) {
  if (!counted(job)) return;
  for (auto* group : line_of(job)) group->counts.submitted += jobs;
  auto* own = qos_of(job.qos);
  if (own != nullptr) count_submitted(job, *own, jobs);
  for (std::size_t place = 0; place < slurm_partitions.size(); ++place) {
    auto* qos = qos_of(partition(slurm_partitions[place]).qos);
    if (qos == nullptr || qos == own) continue;
    const bool before = std::any_of(
        slurm_partitions.begin(), slurm_partitions.begin() + static_cast<std::ptrdiff_t>(place),
        [&](std::int32_t other) { return qos_of(partition(other).qos) == qos; });
    if (!before) count_submitted(job, *qos, jobs);
  }
}

void Limits::submitted(const LimitedJob& job) {
  count_submitted_everywhere(job, job.slurm_partitions, 1);
}

void Limits::started(const LimitedJob& job, std::vector<std::int64_t> tres, std::int64_t now,
                     std::int32_t slurm_partition, Nodes nodes, std::int64_t minutes) {
  for (std::size_t place = 0; place < setup_.licenses.size(); ++place) {
    licenses_in_use_[place] += job.tres[static_cast<std::size_t>(setup_.license_kinds[place])];
  }
  if (job.array != kNone) ++tasks_running_[job.array];
  Running run{slurm_partition, {nodes.begin(), nodes.end()}, {}};
  if (counted(job)) {
    count_submitted_everywhere(job, job.slurm_partitions, -1);
    count_submitted_everywhere(job, {slurm_partition}, 1);
    auto& charged = run.charged;
    charged.tres = std::move(tres);
    charged.start = now;
    charged.limit_end = now + minutes * 60;
    charged.own_qos = qos_of(job.qos);
    auto* of_partition = qos_of(partition(slurm_partition).qos);
    charged.partition_qos = of_partition == charged.own_qos ? nullptr : of_partition;
    charged.line = &line_of(job);
    charged.user = job.user;
    auto seconds = minutes * 60;
    if (charged.own_qos != nullptr) {
      seconds = static_cast<std::int64_t>(static_cast<double>(seconds) *
                                          charged.own_qos->setup.usage_factor);
    }
    charged.for_each_count(true, [&](Counts& counts) {
      counts.start(charged.tres, seconds, nodes, setup_.node_kind);
    });
  }
  running_.insert_or_assign(job.index, std::move(run));
}

void Limits::ended(const LimitedJob& job, std::int64_t now) {
  const auto found = running_.find(job.index);
  if (found == running_.end()) {
    count_submitted_everywhere(job, job.slurm_partitions, -1);
    return;
  }
  auto& run = found->second;
  count_submitted_everywhere(job, {run.slurm_partition}, -1);
  for (std::size_t place = 0; place < setup_.licenses.size(); ++place) {
    licenses_in_use_[place] -= job.tres[static_cast<std::size_t>(setup_.license_kinds[place])];
  }
  if (job.array != kNone) --tasks_running_[job.array];
  if (run.charged.line != nullptr) {
    if (minutes_count_) minutes_.ended(run.charged, now);
    run.charged.for_each_count(
        true, [&](Counts& counts) { counts.end(run.charged.tres, run.nodes, setup_.node_kind); });
  }
  running_.erase(found);
}

void Limits::tick(std::int64_t now) {
  if (!minutes_.looks(now)) return;
  if (minutes_count_) {
    const auto decay = minutes_.decay_until(now);
    for (const auto& group : qos_) let_decay(*group, decay);
    for (const auto& group : associations_) let_decay(*group, decay);
    for (const auto& [index, run] : running_) {
      if (run.charged.line != nullptr) minutes_.charge(run.charged, now, false);
    }
  }
  minutes_.looked(now);
}

}  // namespace foretime::slurm
