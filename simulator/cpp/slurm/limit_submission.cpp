// What QOS and associations say of a job that is submitted (acct_policy_validate).
#include "slurm/imposed.hpp"
#include "slurm/limit_checks.hpp"

namespace foretime::slurm {

namespace {

// MaxTRESPerUser and GrpTRES of a QOS, kind by kind.
Reason user_or_group(const LimitSet& limits, const std::vector<std::int64_t>& tres, bool apart,
                     Imposed& imposed) {
  const auto of = [](const KindLimits& kinds, std::int32_t kind) {
    for (const auto& [limited, limit] : kinds) {
      if (limited == kind) return limit;
    }
    return kNoLimit;
  };
  const auto& users = limits[TresLimit::user];
  const auto& group = limits[TresLimit::group];
  const auto kinds = static_cast<std::int32_t>(tres.size());
  for (std::int32_t kind = 0; kind < kinds; ++kind) {
    const auto of_user = of(users, kind);
    const auto of_group = of(group, kind);
    if (of_user == kNoLimit && of_group == kNoLimit) continue;
    const bool user_hidden = imposed.has(TresLimit::user, kind);
    const bool group_hidden = imposed.has(TresLimit::group, kind);
    if (!apart && (user_hidden || group_hidden)) continue;
    const auto count = tres[static_cast<std::size_t>(kind)];
    // Whichever was found, Slurm names the user's where both are exceeded.
    const auto told = tres_reason(true, count > of_user ? TresLimit::user : TresLimit::group, kind);
    if (of_group != kNoLimit && !group_hidden) {
      imposed.add(TresLimit::group, kind);
      if (count > of_group) return told;
    }
    if (of_user != kNoLimit && !user_hidden) {
      imposed.add(TresLimit::user, kind);
      if (count > of_user) return told;
    }
  }
  return reason::none;
}

// A time limit against what a limit of TRES-minutes leaves (_validate_time_limit).
Reason too_long(bool of_qos, const LimitSet& limits, TresLimit name, std::int64_t minutes,
                const std::vector<std::int64_t>& tres, Imposed& imposed) {
  for (const auto& [kind, most] : limits[name]) {
    const auto count = tres[static_cast<std::size_t>(kind)];
    if (count == 0 || imposed.has(name, kind)) continue;
    imposed.add(name, kind);
    if (minutes > most / count) return tres_reason(of_qos, name, kind);
  }
  return reason::none;
}

}  // namespace

Reason LimitChecks::why_refused(const PolicyCase& job, const std::vector<std::int64_t>& tres,
                                std::int64_t jobs) const {
  bool any_qos = false;
  bool strict = false;
  for (const auto* qos : job.qos) {
    if (qos == nullptr) continue;
    any_qos = true;
    strict = strict || qos->setup().deny_on_limit;
  }
  strict = strict || !any_qos;
  Imposed imposed;
  Reason found = reason::none;
  const auto kept = [&found](Reason by) { return (found = by) != reason::none; };
  const auto divisor = tres[static_cast<std::size_t>(setup_->node_kind)];
  for (const auto* qos : job.qos) {
    if (qos == nullptr) continue;
    const auto& limits = qos->limits();
    const auto over = [&](NumberLimit name, std::int64_t submitted, Reason by) {
      return imposed.takes(limits, name) && submitted + jobs > limits[name] && kept(by);
    };
    const auto longer = [&](TresLimit name) {
      return kept(too_long(true, limits, name, job.minutes, tres, imposed));
    };
    if (strict && (kept(qos_job_limit(limits, TresLimit::account, tres, 1, 0, imposed)) ||
                   kept(user_or_group(limits, tres, setup_->user_and_group_apart, imposed)))) {
      return found;
    }
    if (over(NumberLimit::group_submitted, qos->counts.submitted, reason::qos_group_submitted)) {
      return found;
    }
    if (strict && (longer(TresLimit::job_minutes) || longer(TresLimit::group_minutes) ||
                   longer(TresLimit::group_run_minutes) ||
                   (setup_->run_minutes_of_users && (longer(TresLimit::account_run_minutes) ||
                                                     longer(TresLimit::user_run_minutes))))) {
      return found;
    }
    // Without DenyOnLimit, too, the limits of a QOS on times hide those of associations.
    if (imposed.takes(limits, NumberLimit::wall) && strict &&
        job.minutes > limits[NumberLimit::wall]) {
      return reason::qos_wall;
    }
    if (imposed.takes(limits, NumberLimit::group_wall) && strict &&
        job.minutes > limits[NumberLimit::group_wall]) {
      return reason::qos_group_wall;
    }
    if (strict && (kept(qos_job_limit(limits, TresLimit::job, tres, 1, 0, imposed)) ||
                   kept(qos_job_limit(limits, TresLimit::job_node, tres, 1, divisor, imposed)))) {
      return found;
    }
    if (over(NumberLimit::account_submitted, qos->of_account(job.line.front().account).submitted,
             reason::qos_account_submitted) ||
        over(NumberLimit::submitted, qos->of_user(job.user).submitted,
             reason::qos_user_submitted)) {
      return found;
    }
    if (strict && kept(qos_job_limit(limits, TresLimit::least, tres, 1, 0, imposed))) return found;
  }
  const auto factor = job.limit_factor();
  bool own = true;
  for (const AssociationGroup& group : job.line.groups()) {
    const auto& limits = group.limits();
    const auto submitted = group.counts.submitted + jobs;
    const auto longer = [&](TresLimit name) {
      return kept(too_long(false, limits, name, job.minutes, tres, imposed));
    };
    if (strict &&
        kept(association_job_limit(limits, TresLimit::group, tres, 1, 0, factor, imposed))) {
      return found;
    }
    if (!imposed.has(NumberLimit::group_submitted) &&
        submitted > limits[NumberLimit::group_submitted]) {
      return reason::assoc_group_submitted;
    }
    // The nearest association with a limit of minutes hides those above it, as a QOS does.
    if (strict && (longer(TresLimit::group_minutes) || longer(TresLimit::group_run_minutes))) {
      return found;
    }
    if (strict && imposed.takes(limits, NumberLimit::group_wall) &&
        job.minutes > limits[NumberLimit::group_wall]) {
      return reason::assoc_group_wall;
    }
    if (!own) continue;
    own = false;
    if (strict &&
        (kept(association_job_limit(limits, TresLimit::job, tres, 1, 0, factor, imposed)) ||
         kept(
             association_job_limit(limits, TresLimit::job_node, tres, 1, divisor, 0.0, imposed)))) {
      return found;
    }
    if (!imposed.has(NumberLimit::submitted) && !imposed.has(NumberLimit::account_submitted) &&
        submitted > limits[NumberLimit::submitted]) {
      return reason::assoc_submitted;
    }
    if (strict && longer(TresLimit::job_minutes)) return found;
    if (strict && imposed.takes(limits, NumberLimit::wall) &&
        job.minutes > limits[NumberLimit::wall]) {
      return reason::assoc_wall;
    }
  }
  return reason::none;
}

}  // namespace foretime::slurm
