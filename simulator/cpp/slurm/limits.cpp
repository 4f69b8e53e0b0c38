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

bool ends_jobs(const LimitSet& limits) {
  return limits[NumberLimit::group_wall] != kNoLimit || !limits[TresLimit::group_minutes].empty() ||
         !limits[TresLimit::job_minutes].empty();
}

}  // namespace

Limits::Limits(std::shared_ptr<const LimitsSetup> setup, std::int64_t now)
    : setup_(std::move(setup)),
      groups_(setup_),
      checks_(setup_),
      minutes_(setup_->multifactor, setup_->decay_half_life_s, now),
      licenses_in_use_(setup_->licenses.size()) {
  if (setup_->kinds > kMostKinds) {
    throw std::invalid_argument("limits know at most 64 kinds of resources (TRES)");
  }
  const auto look_at = [this](const LimitSet& limits) {
    minutes_count_ = minutes_count_ || goes_by_minutes(limits);
    for (const auto by : {TresLimit::group, TresLimit::user, TresLimit::account}) {
      nodes_count_ = nodes_count_ || limits_kind(limits[by], setup_->node_kind);
    }
  };
  for (const QosSetup& qos : setup_->qos) look_at(qos.limits);
  for (const AssociationSetup& association : setup_->associations) look_at(association.limits);
}

Limits::Limits(const Limits& other, const Renumbering& jobs) : Limits(other) {
  running_.clear();
  may_be_killed_ = 0;
  for (const auto& [old, run] : other.running_) {
    const JobIndex job = jobs.to(old);
    if (job < 0) continue;
    running_.emplace(job, run);
    if (run.may_be_killed) ++may_be_killed_;
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
  const auto cpus = job.tres[static_cast<std::size_t>(setup_->cpu_kind)];
  const auto nodes = job.tres[static_cast<std::size_t>(setup_->node_kind)];
  const auto* own = qos_setup(job.qos);
  if (rules.starts) {
    if (cpus > rules.cpus ||
        (rules.most_cpus_per_node != kNoLimit && cpus > rules.most_cpus_per_node * rules.nodes)) {
      return reason::too_many_cpus;
    }
    if (nodes > rules.nodes ||
        (nodes < rules.least_nodes && (own == nullptr || !own->any_least_nodes)) ||
        (nodes > rules.most_nodes && (own == nullptr || !own->any_most_nodes))) {
      return reason::bad_node_count;
    }
    if (job.minutes > rules.most_minutes && (own == nullptr || !own->any_time_limit)) {
      return reason::bad_time_limit;
    }
  }
  if (setup_->part_limits == PartLimits::no) return reason::none;
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
    if (setup_->part_limits == PartLimits::no) return reason::none;
    const auto found = partition_refuses(job, place);
    any_right = any_right || found == reason::none;
    if (found == reason::none) continue;
    last = found;
    if (first == reason::none) first = found;
  }
  if (!open) return reason::partition_closed;
  if (setup_->part_limits == PartLimits::any) return any_right ? reason::none : last;
  return first;
}

// Questions ---------------------------------------------------------------------------------------

PolicyCase Limits::case_of(const LimitedJob& job, std::int32_t slurm_partition,
                           std::int64_t minutes) const {
  const auto* own = groups_.qos(job.qos);
  const auto* stronger = groups_.qos(partition(slurm_partition).qos);
  const auto* weaker = own;
  if (weaker != nullptr && weaker->setup().over_partition_qos) std::swap(stronger, weaker);
  if (stronger == nullptr) std::swap(stronger, weaker);
  return {job.user,
          minutes,
          {stronger, stronger == weaker ? nullptr : weaker},
          own,
          groups_.line(job.association)};
}

// What counts of what a job asks for or has.
std::vector<std::int64_t> Limits::all_tres(const LimitedJob& job,
                                           std::span<const std::int64_t> tres,
                                           std::int32_t slurm_partition) const {
  std::vector<std::int64_t> all(tres.begin(), tres.end());
  for (const auto& [license, count] : job.licenses) {
    all[static_cast<std::size_t>(setup_->license_kinds[static_cast<std::size_t>(license)])] = count;
  }
  all[static_cast<std::size_t>(setup_->billing_kind)] =
      static_cast<std::int64_t>(setup_->bills.of(all, partition(slurm_partition).billing_weights));
  return all;
}

Reason Limits::why_refused(const LimitedJob& job, std::int64_t jobs) const {
  if (job.flaw == Flaw::account) return reason::bad_account;
  if (job.flaw == Flaw::qos) return reason::bad_qos;
  const auto refused = partitions_refuse(job);
  if (refused != reason::none) return refused;
  if (job.flaw == Flaw::license) return reason::bad_license;
  if (!counts(job)) return reason::none;
  for (const auto place : job.slurm_partitions) {
    const auto found =
        checks_.why_refused(case_of(job, place, job.minutes), all_tres(job, job.tres, place), jobs);
    if (found != reason::none) return found;
  }
  return reason::none;
}

Reason Limits::why_not_considered(const LimitedJob& job, std::int32_t slurm_partition,
                                  std::int64_t minutes) const {
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
  const auto nodes = job.tres[static_cast<std::size_t>(setup_->node_kind)];
  if (counts(job)) {
    const auto found = checks_.why_not_considered(case_of(job, slurm_partition, minutes));
    if (found != reason::none) return found;
  }
  if (qos_denied(job, slurm_partition)) return reason::qos_not_allowed;
  if (account_denied(job, slurm_partition)) {
    return setup_->names_accounts ? reason::account_not_allowed : reason::partition_config;
  }
  if (counts(job)) {
    const auto found = checks_.why_too_many_nodes(case_of(job, slurm_partition, minutes), nodes);
    if (found != reason::none) return found;
  }
  const auto* own = qos_setup(job.qos);
  const bool too_many = nodes > rules.most_nodes && (own == nullptr || !own->any_most_nodes);
  return too_many ? reason::partition_nodes : reason::none;
}

std::int64_t Limits::changes(std::int32_t association, std::int32_t qos,
                             std::int32_t slurm_partition) const {
  if (!setup_->limits_count || association == kNone) return 0;
  std::int64_t all = 0;
  for (const AssociationGroup& group : groups_.line(association).groups()) all += group.changes();
  for (const std::int32_t number : {qos, partition(slurm_partition).qos}) {
    if (number != kNone) all += groups_.qos(number)->changes();
  }
  return all;
}

Reason Limits::why_not_started(const LimitedJob& job, std::span<const std::int64_t> tres,
                               std::int32_t slurm_partition, Nodes nodes,
                               std::int64_t minutes) const {
  if (!counts(job)) return reason::none;
  return checks_.why_not_started(case_of(job, slurm_partition, minutes),
                                 all_tres(job, tres, slurm_partition), nodes);
}

Reason Limits::why_no_licenses(const LimitedJob& job) const {
  for (const auto& [license, count] : job.licenses) {
    const auto place = static_cast<std::size_t>(license);
    if (count > setup_->licenses[place] - licenses_in_use_[place]) return reason::licenses;
  }
  return reason::none;
}

std::int64_t Limits::tasks_running(std::int32_t array) const {
  const auto found = tasks_running_.find(array);
  return found == tasks_running_.end() ? 0 : found->second;
}

bool Limits::blocks_lower_jobs(Reason reason) const {
  return setup_->assoc_limit_stop && reason >= reason::assoc_group_jobs;
}

bool Limits::is_killed(const LimitedJob& job, std::int64_t now) const {
  const auto found = running_.find(job.index);
  if (found == running_.end() || setup_->safe) return false;
  const auto& run = found->second;
  const auto ran = (now - run.charged.start) / 60;
  return checks_.is_killed(case_of(job, run.slurm_partition, job.minutes), run.charged.tres, ran);
}

std::vector<std::int32_t> Limits::may_be_killed() const {
  std::vector<std::int32_t> jobs;
  for (const auto& [index, run] : running_) {
    if (run.may_be_killed) jobs.push_back(index);
  }
  return jobs;
}

// Whether a limit of what has been used hangs over a job.
bool Limits::kills(const LimitedJob& job, std::int32_t slurm_partition) const {
  if (setup_->safe) return false;
  const PolicyCase whose = case_of(job, slurm_partition, job.minutes);
  for (const auto* qos : whose.qos) {
    if (qos != nullptr && ends_jobs(qos->limits())) return true;
  }
  const auto groups = whose.line.groups();
  return std::any_of(groups.begin(), groups.end(),
                     [](const AssociationGroup& group) { return ends_jobs(group.limits()); });
}

// Events ------------------------------------------------------------------------------------------

// In its own QOS and those of some partitions, each once.
void Limits::count_submitted(const LimitedJob& job, std::span<const std::int32_t> slurm_partitions,
                             std::int64_t jobs) {
  if (!counts(job)) return;
  groups_.for_each_association_of(
      job.association, [jobs](AssociationGroup& group) { group.counts.submitted += jobs; });
  const auto account = groups_.line(job.association).front().account;
  const auto count = [&](std::int32_t number) {
    QosGroup& qos = *groups_.qos(number);
    qos.counts.submitted += jobs;
    qos.of_user(job.user).submitted += jobs;
    qos.of_account(account).submitted += jobs;
  };
  if (job.qos != kNone) count(job.qos);
  for (auto place = slurm_partitions.begin(); place != slurm_partitions.end(); ++place) {
    const auto qos = partition(*place).qos;
    if (qos == kNone || qos == job.qos) continue;
    const bool before = std::any_of(slurm_partitions.begin(), place, [&](std::int32_t other) {
      return partition(other).qos == qos;
    });
    if (!before) count(qos);
  }
}

std::vector<std::int64_t> Limits::licenses_left() const {
  std::vector<std::int64_t> left = setup_->licenses;
  for (std::size_t place = 0; place < left.size(); ++place) left[place] -= licenses_in_use_[place];
  return left;
}

void Limits::take_licenses(const LimitedJob& job, std::int64_t times) {
  for (const auto& [license, count] : job.licenses) {
    licenses_in_use_[static_cast<std::size_t>(license)] += times * count;
  }
}

void Limits::submitted(const LimitedJob& job) { count_submitted(job, job.slurm_partitions, 1); }

void Limits::withdrawn(const LimitedJob& job) { count_submitted(job, job.slurm_partitions, -1); }

void Limits::started(const LimitedJob& job, std::span<const std::int64_t> tres, std::int64_t now,
                     std::int32_t slurm_partition, Nodes nodes, std::int64_t minutes) {
  take_licenses(job, 1);
  if (job.array != kNone) ++tasks_running_[job.array];
  if (!counts(job)) return;
  count_submitted(job, job.slurm_partitions, -1);
  count_submitted(job, {&slurm_partition, 1}, 1);
  const auto of_partition = partition(slurm_partition).qos;
  Running run{slurm_partition,
              {nodes.begin(), nodes.end()},
              {{job.qos, of_partition == job.qos ? kNone : of_partition, job.association, job.user},
               all_tres(job, tres, slurm_partition),
               now,
               now + minutes * 60},
              kills(job, slurm_partition)};
  if (run.may_be_killed) ++may_be_killed_;
  auto seconds = minutes * 60;
  if (const auto* own = qos_setup(job.qos)) {
    seconds = static_cast<std::int64_t>(static_cast<double>(seconds) * own->usage_factor);
  }
  groups_.for_each_count_of(run.charged.counted, true, [&](Counts& counts) {
    counts.start(run.charged.tres, seconds, nodes, setup_->node_kind);
  });
  groups_.change(run.charged.counted);
  ++changes_;
  running_.insert_or_assign(job.index, std::move(run));
}

void Limits::ended(const LimitedJob& job, std::int64_t now) {
  take_licenses(job, -1);
  if (job.array != kNone) --tasks_running_[job.array];
  const auto found = running_.find(job.index);
  if (found == running_.end()) return;
  const auto& run = found->second;
  if (run.may_be_killed) --may_be_killed_;
  count_submitted(job, {&run.slurm_partition, 1}, -1);
  if (minutes_count_) minutes_.ended(groups_, run.charged, now);
  groups_.for_each_count_of(run.charged.counted, true, [&](Counts& counts) {
    counts.end(run.charged.tres, run.nodes, setup_->node_kind);
  });
  groups_.change(run.charged.counted);
  ++changes_;
  running_.erase(found);
}

bool Limits::tick(std::int64_t now) {
  if (!minutes_.looks(now)) return false;
  if (minutes_count_) {
    minutes_.decay(groups_, now);
    for (const auto& [index, run] : running_) minutes_.charge(groups_, run.charged, now, false);
    ++changes_;
  }
  minutes_.looked(now);
  return minutes_count_;
}

}  // namespace foretime::slurm
