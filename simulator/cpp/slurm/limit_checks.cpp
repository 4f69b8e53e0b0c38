#include "slurm/limit_checks.hpp"

#include "slurm/imposed.hpp"

namespace foretime::slurm {

namespace {

// What of a group's TRES-seconds counts: nothing under a UsageFactor of 0.
struct Minutes {
  const PolicyCase& job;
  std::int64_t operator()(std::int64_t seconds) const {
    return job.usage_factor() == 0.0 ? 0 : seconds / 60;
  }
  std::int64_t operator()(double seconds) const {
    return job.usage_factor() == 0.0 ? 0 : static_cast<std::int64_t>(seconds / 60.0);
  }
};

// _validate_tres_usage_limits; a QOS hides its limits from those after it.
class UsageCheck {
 public:
  UsageCheck(const PolicyCase& job, const std::vector<std::int64_t>& tres, std::int64_t minutes,
             bool of_qos, Imposed& imposed)
      : minutes_of_(job), tres_(tres), minutes_(minutes), of_qos_(of_qos), imposed_(imposed) {}

  // GrpTRESMins: what has been used, and, under "safe", what may still be.
  Reason used(const Group& group, bool safe) const {
    const auto name = TresLimit::group_minutes;
    for (const auto& [kind, most] : group.limits()[name]) {
      if (hidden(name, kind)) continue;
      const auto at = static_cast<std::size_t>(kind);
      const auto asked = minutes_ * tres_[at];
      const auto gone = minutes_of_(group.used_s[at]);
      if (asked != 0 && gone >= most) return tres_reason(of_qos_, name, kind);
      if (!safe) continue;
      const auto left = minutes_of_(group.counts.left_s[at]);
      if (asked > most || (asked != 0 && asked + left > most - gone)) {
        return tres_reason(of_qos_, name, kind);
      }
    }
    return reason::none;
  }

  // Limits of what running jobs may still use.
  Reason left(const LimitSet& limits, TresLimit name, const Counts& counts) const {
    for (const auto& [kind, most] : limits[name]) {
      if (hidden(name, kind)) continue;
      const auto at = static_cast<std::size_t>(kind);
      const auto asked = minutes_ * tres_[at];
      if (asked > most || (asked != 0 && asked + minutes_of_(counts.left_s[at]) > most)) {
        return tres_reason(of_qos_, name, kind);
      }
    }
    return reason::none;
  }

  // Limits of what is in use.
  Reason in_use(const LimitSet& limits, TresLimit name, const Counts& counts, Nodes nodes,
                std::int32_t node_kind, double factor) const {
    for (const auto& [kind, plain] : limits[name]) {
      if (hidden(name, kind)) continue;
      const auto at = static_cast<std::size_t>(kind);
      const auto most = under_factor(plain, factor);
      const auto asked = kind == node_kind ? counts.nodes_more(nodes, tres_[at]) : tres_[at];
      if (asked > most || (asked != 0 && asked + counts.tres[at] > most)) {
        return tres_reason(of_qos_, name, kind);
      }
    }
    return reason::none;
  }

 private:
  bool hidden(TresLimit name, std::int32_t kind) const {
    if (imposed_.has(name, kind)) return true;
    if (of_qos_) imposed_.add(name, kind);
    return false;
  }

  Minutes minutes_of_;
  const std::vector<std::int64_t>& tres_;
  std::int64_t minutes_;
  bool of_qos_;
  Imposed& imposed_;
};

std::int64_t whole_minutes(double seconds) { return static_cast<std::int64_t>(seconds / 60.0); }

Reason qos_before_nodes(const PolicyCase& job, const QosGroup& qos, bool safe, Imposed& imposed) {
  const auto& limits = qos.limits();
  auto minutes = job.minutes;
  if (imposed.takes(limits, NumberLimit::group_jobs) &&
      qos.counts.jobs >= limits[NumberLimit::group_jobs]) {
    return reason::qos_group_jobs;
  }
  if (imposed.takes(limits, NumberLimit::group_wall)) {
    minutes = job.weighed(minutes);
    const auto used = whole_minutes(qos.used_wall_s);
    const auto most = limits[NumberLimit::group_wall];
    if (used >= most || (safe && used + minutes > most)) return reason::qos_group_wall;
  }
  if (imposed.takes(limits, NumberLimit::account_jobs) &&
      qos.of_account(job.line.front().account).jobs >= limits[NumberLimit::account_jobs]) {
    return reason::qos_account_jobs;
  }
  if (imposed.takes(limits, NumberLimit::jobs) &&
      qos.of_user(job.user).jobs >= limits[NumberLimit::jobs]) {
    return reason::qos_user_jobs;
  }
  // After GrpWall of the same QOS, Slurm weighs the same minutes a second time.
  if (imposed.takes(limits, NumberLimit::wall) &&
      job.weighed(minutes) > limits[NumberLimit::wall]) {
    return reason::qos_wall;
  }
  return reason::none;
}

}  // namespace

Reason LimitChecks::why_not_considered(const PolicyCase& job) const {
  Imposed imposed;
  for (const auto* qos : job.qos) {
    if (qos == nullptr) continue;
    const auto found = qos_before_nodes(job, *qos, setup_->safe, imposed);
    if (found != reason::none) return found;
  }
  bool own = true;
  for (const AssociationGroup& group : job.line.groups()) {
    const auto& limits = group.limits();
    const auto jobs = group.counts.jobs;
    if (!imposed.has(NumberLimit::group_jobs) && jobs >= limits[NumberLimit::group_jobs]) {
      return reason::assoc_group_jobs;
    }
    const auto wall = limits[NumberLimit::group_wall];
    if (wall != kNoLimit && !imposed.has(NumberLimit::group_wall)) {
      const auto used = whole_minutes(group.used_wall_s);
      if (used >= wall || (setup_->safe && used + job.weighed(job.minutes) > wall)) {
        return reason::assoc_group_wall;
      }
    }
    if (!own) continue;
    own = false;
    if (!imposed.has(NumberLimit::jobs) && !imposed.has(NumberLimit::account_jobs) &&
        jobs >= limits[NumberLimit::jobs]) {
      return reason::assoc_jobs;
    }
    if (!imposed.has(NumberLimit::wall) && job.weighed(job.minutes) > limits[NumberLimit::wall]) {
      return reason::assoc_wall;
    }
  }
  return reason::none;
}

Reason LimitChecks::why_too_many_nodes(const PolicyCase& job, std::int64_t nodes) const {
  auto most = kNoLimit;
  Reason told = reason::none;
  const auto kind = setup_->node_kind;
  const auto of = [kind](const LimitSet& limits, TresLimit name) {
    for (const auto& [limited, limit] : limits[name]) {
      if (limited == kind) return limit;
    }
    return kNoLimit;
  };
  const auto of_qos = [&](TresLimit name) {
    for (const auto* qos : job.qos) {
      const auto limit = qos == nullptr ? kNoLimit : of(qos->limits(), name);
      if (limit != kNoLimit) return limit;
    }
    return kNoLimit;
  };
  const auto lower = [&](std::int64_t limit, Reason by) {
    if (limit < most) {
      most = limit;
      told = by;
    }
  };
  for (const auto name : {TresLimit::account, TresLimit::job, TresLimit::user}) {
    lower(of_qos(name), tres_reason(true, name, kind));
  }
  const bool no_qos_limit = most == kNoLimit;
  const auto of_group = of_qos(TresLimit::group);
  lower(of_group, tres_reason(true, TresLimit::group, kind));
  // Here Slurm asks the first QOS alone for its factor.
  const auto factor = job.qos[0] == nullptr ? 0.0 : job.qos[0]->setup().limit_factor;
  const auto weighed = [factor](std::int64_t limit) {
    return limit == kNoLimit ? limit : under_factor(limit, factor);
  };
  bool own = true;
  for (const AssociationGroup& group : job.line.groups()) {
    const auto before = most;
    if (of_group == kNoLimit) {
      lower(weighed(of(group.limits(), TresLimit::group)),
            tres_reason(false, TresLimit::group, kind));
    }
    const bool by_group = most != before;
    if (own && no_qos_limit) {
      lower(weighed(of(group.limits(), TresLimit::job)), tres_reason(false, TresLimit::job, kind));
    }
    own = false;
    if (by_group) break;
  }
  return most < nodes ? told : reason::none;
}

Reason LimitChecks::why_not_started(const PolicyCase& job, const std::vector<std::int64_t>& tres,
                                    Nodes nodes) const {
  Imposed imposed;
  Reason found = reason::none;
  const auto minutes = job.weighed(job.minutes);
  const auto node_kind = setup_->node_kind;
  const auto divisor = tres[static_cast<std::size_t>(node_kind)];
  const auto kept = [&found](Reason by) { return (found = by) != reason::none; };
  for (const auto* qos : job.qos) {
    if (qos == nullptr) continue;
    const auto& limits = qos->limits();
    const auto& user = qos->of_user(job.user);
    const auto& account = qos->of_account(job.line.front().account);
    const UsageCheck usage(job, tres, minutes, true, imposed);
    if (kept(usage.used(*qos, setup_->safe)) ||
        kept(usage.in_use(limits, TresLimit::group, qos->counts, nodes, node_kind, 0.0)) ||
        kept(usage.left(limits, TresLimit::group_run_minutes, qos->counts)) ||
        kept(qos_job_limit(limits, TresLimit::job_minutes, tres, minutes, 0, imposed)) ||
        kept(qos_job_limit(limits, TresLimit::job, tres, 1, 0, imposed)) ||
        kept(qos_job_limit(limits, TresLimit::job_node, tres, 1, divisor, imposed)) ||
        kept(qos_job_limit(limits, TresLimit::least, tres, 1, 0, imposed)) ||
        kept(usage.in_use(limits, TresLimit::account, account, nodes, node_kind, 0.0)) ||
        kept(usage.in_use(limits, TresLimit::user, user, nodes, node_kind, 0.0))) {
      return found;
    }
    if (!setup_->run_minutes_of_users) continue;
    if (kept(usage.left(limits, TresLimit::account_run_minutes, account)) ||
        kept(usage.left(limits, TresLimit::user_run_minutes, user))) {
      return found;
    }
  }
  const auto factor = job.limit_factor();
  bool own = true;
  for (const AssociationGroup& group : job.line.groups()) {
    const auto& limits = group.limits();
    const UsageCheck usage(job, tres, minutes, false, imposed);
    if (kept(usage.used(group, setup_->safe)) ||
        kept(usage.in_use(limits, TresLimit::group, group.counts, nodes, node_kind, factor)) ||
        kept(usage.left(limits, TresLimit::group_run_minutes, group.counts))) {
      return found;
    }
    if (!own) continue;
    own = false;
    if (kept(association_job_limit(limits, TresLimit::job_minutes, tres, minutes, 0, 0.0,
                                   imposed)) ||
        kept(association_job_limit(limits, TresLimit::job, tres, 1, 0, factor, imposed)) ||
        kept(association_job_limit(limits, TresLimit::job_node, tres, 1, divisor, 0.0, imposed))) {
      return found;
    }
  }
  return reason::none;
}

}  // namespace foretime::slurm
