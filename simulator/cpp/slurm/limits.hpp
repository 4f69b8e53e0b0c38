// What keeps a job from being accepted, considered or started besides room: limits of partitions,
// QOS and associations, licenses, throttles of arrays. reference/slurm/limits/limits.py is the
// specification. No question costs more where more jobs run or wait.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/renumbering.hpp"
#include "slurm/limit_checks.hpp"
#include "slurm/limit_groups.hpp"
#include "slurm/limit_setup.hpp"
#include "slurm/run_minutes.hpp"

namespace foretime::slurm {

class Limits {
 public:
  Limits(std::shared_ptr<const LimitsSetup> setup, std::int64_t now);
  // The same with other numbers of jobs.
  Limits(const Limits& other, const Renumbering& jobs);

  // Why a job is refused as it is submitted; `jobs`: tasks of an array that come at once.
  Reason why_refused(const LimitedJob& job, std::int64_t jobs) const;
  // Why a pending job is not looked at, but for the throttle of its array; `minutes`: what it is
  // planned with.
  Reason why_not_considered(const LimitedJob& job, std::int32_t slurm_partition,
                            std::int64_t minutes) const;
  // How often what that goes by may have changed, of all jobs, and of those of an association and
  // QOS in a partition.
  std::int64_t changes() const { return changes_; }
  std::int64_t changes(std::int32_t association, std::int32_t qos,
                       std::int32_t slurm_partition) const;
  // Why it does not start with what was found for it, licenses and billing left out; `nodes` empty:
  // each is one more.
  Reason why_not_started(const LimitedJob& job, std::span<const std::int64_t> tres,
                         std::int32_t slurm_partition, Nodes nodes, std::int64_t minutes) const;
  Reason why_no_licenses(const LimitedJob& job) const;
  // How many of each license there are, less those of running jobs.
  std::vector<std::int64_t> licenses_left() const;
  bool array_is_full(const LimitedJob& job) const {
    return job.array_most_running != 0 && tasks_running(job.array) >= job.array_most_running;
  }
  std::int64_t tasks_running(std::int32_t array) const;
  // Whether a running job is ended for a limit; Slurm looks every 30 s.
  bool is_killed(const LimitedJob& job, std::int64_t now) const;
  // Whether one may be, and which, in the order of submission.
  bool may_kill() const { return may_be_killed_ > 0; }
  std::vector<std::int32_t> may_be_killed() const;
  // Whether a job with this reason blocks its partition in the main loop.
  bool blocks_lower_jobs(Reason reason) const;

  // Whether QOS and associations have a say about a job.
  bool counts(const LimitedJob& job) const {
    return setup_->limits_count && job.association != kNone;
  }
  // Whether they have one about any job.
  bool count() const { return setup_->limits_count; }
  // Whether a partition keeps a job, whatever the others do.
  bool partition_keeps(const LimitedJob& job, std::int32_t slurm_partition) const {
    return partition_refuses(job, slurm_partition) != reason::none ||
           qos_denied(job, slurm_partition) || account_denied(job, slurm_partition);
  }
  // Whether it matters which nodes a job has.
  bool go_by_nodes() const { return nodes_count_; }

  void submitted(const LimitedJob& job);
  void started(const LimitedJob& job, std::span<const std::int64_t> tres, std::int64_t now,
               std::int32_t slurm_partition, Nodes nodes, std::int64_t minutes);
  void ended(const LimitedJob& job, std::int64_t now);  // that ran
  void withdrawn(const LimitedJob& job);                // that waited
  // A look of the decay thread, every PriorityCalcPeriod; whether it may have let somebody go.
  bool tick(std::int64_t now);

 private:
  struct Running {
    std::int32_t slurm_partition = kNone;
    std::vector<std::int32_t> nodes;
    ChargedJob charged;
    bool may_be_killed = false;
  };

  const QosSetup* qos_setup(std::int32_t qos) const {
    return qos == kNone ? nullptr : &setup_->qos[static_cast<std::size_t>(qos)];
  }
  const PartitionSetup& partition(std::int32_t place) const {
    return setup_->slurm_partitions[static_cast<std::size_t>(place)];
  }
  bool kills(const LimitedJob& job, std::int32_t slurm_partition) const;
  PolicyCase case_of(const LimitedJob& job, std::int32_t slurm_partition,
                     std::int64_t minutes) const;
  std::vector<std::int64_t> all_tres(const LimitedJob& job, std::span<const std::int64_t> tres,
                                     std::int32_t slurm_partition) const;
  Reason partition_refuses(const LimitedJob& job, std::int32_t slurm_partition) const;
  Reason partitions_refuse(const LimitedJob& job) const;
  bool qos_denied(const LimitedJob& job, std::int32_t slurm_partition) const;
  bool account_denied(const LimitedJob& job, std::int32_t slurm_partition) const;
  void count_submitted(const LimitedJob& job, std::span<const std::int32_t> slurm_partitions,
                       std::int64_t jobs);
  void take_licenses(const LimitedJob& job, std::int64_t times);

  std::shared_ptr<const LimitsSetup> setup_;
  LimitGroups groups_;
  LimitChecks checks_;
  RunMinutes minutes_;
  bool minutes_count_ = false;  // any limit goes by what has been used
  bool nodes_count_ = false;
  std::vector<std::int64_t> licenses_in_use_;
  std::unordered_map<std::int32_t, std::int64_t> tasks_running_;
  // Those that count, in the order of submission, as jobs are charged.
  std::map<std::int32_t, Running> running_;
  std::int64_t may_be_killed_ = 0;  // of them
  std::int64_t changes_ = 0;
};

}  // namespace foretime::slurm
