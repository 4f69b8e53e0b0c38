// Which running jobs a limit ends (acct_policy_job_time_out).
#include "slurm/imposed.hpp"
#include "slurm/limit_checks.hpp"

namespace foretime::slurm {

namespace {

std::int64_t whole_minutes(double seconds) { return static_cast<std::int64_t>(seconds / 60.0); }

// What a group has used in all; the limits of a QOS hide those after it.
bool used_up(const Group& group, const std::vector<std::int64_t>& tres, bool of_qos,
             Imposed& imposed) {
  for (const auto& [kind, most] : group.limits()[TresLimit::group_minutes]) {
    if (imposed.has(TresLimit::group_minutes, kind)) continue;
    if (of_qos) imposed.add(TresLimit::group_minutes, kind);
    const auto at = static_cast<std::size_t>(kind);
    if (tres[at] != 0 && whole_minutes(group.used_s[at]) >= most) return true;
  }
  const auto wall = group.limits()[NumberLimit::group_wall];
  if (wall == kNoLimit || imposed.has(NumberLimit::group_wall)) return false;
  if (of_qos) imposed.takes(group.limits(), NumberLimit::group_wall);
  return whole_minutes(group.used_wall_s) >= wall;
}

// What the job itself has used.
bool job_used_up(const LimitSet& limits, const std::vector<std::int64_t>& tres, std::int64_t ran,
                 std::int32_t left_out, bool of_qos, Imposed& imposed) {
  for (const auto& [kind, most] : limits[TresLimit::job_minutes]) {
    if (imposed.has(TresLimit::job_minutes, kind)) continue;
    if (of_qos) imposed.add(TresLimit::job_minutes, kind);
    const auto count = tres[static_cast<std::size_t>(kind)];
    if (kind != left_out && count != 0 && ran * count >= most) return true;
  }
  return false;
}

}  // namespace

bool LimitChecks::is_killed(const PolicyCase& job, const std::vector<std::int64_t>& tres,
                            std::int64_t ran) const {
  Imposed imposed;
  for (const auto* qos : job.qos) {
    if (qos == nullptr) continue;
    if (used_up(*qos, tres, true, imposed) ||
        job_used_up(qos->limits(), tres, ran, kNone, true, imposed)) {
      return true;
    }
  }
  for (const AssociationGroup& group : job.line.groups()) {
    if (&group != &job.line.front() && &group == &job.line.root()) break;
    if (used_up(group, tres, false, imposed) ||
        job_used_up(group.limits(), tres, ran, setup_->node_kind, false, imposed)) {
      return true;
    }
  }
  return false;
}

}  // namespace foretime::slurm
