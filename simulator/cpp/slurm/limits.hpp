// What keeps a job from being accepted, considered or started besides room: limits of partitions,
// QOS and associations, licenses, throttles of arrays. reference/slurm/limits/limits.py is the
// specification. No question costs more where more jobs run or wait.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "slurm/limit_checks.hpp"
#include "slurm/limit_counts.hpp"
#include "slurm/limit_setup.hpp"
#include "slurm/run_minutes.hpp"

namespace foretime::slurm {

class Limits {
 public:
  Limits(LimitsSetup setup, std::int64_t now);
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;
  Limits(Limits&&) = delete;
  Limits& operator=(Limits&&) = delete;
  ~Limits() = default;

  // Why a job is refused as it is submitted; `jobs`: tasks of an array that come at once.
  Reason why_refused(const LimitedJob& job, std::int64_t jobs) const;
  // Why a pending job is not looked at; `minutes`: what it is planned with.
  Reason why_not_considered(const LimitedJob& job, std::int32_t slurm_partition,
                            std::int64_t minutes) const;
  // Why it does not start with what was found for it; `nodes` empty: each is one more.
  Reason why_not_started(const LimitedJob& job, const std::vector<std::int64_t>& tres,
                         std::int32_t slurm_partition, Nodes nodes, std::int64_t minutes) const;
  Reason why_no_licenses(const LimitedJob& job) const;
  bool array_is_full(const LimitedJob& job) const;
  // Whether a running job is ended for a limit; Slurm looks every 30 s.
  bool is_killed(const LimitedJob& job, std::int64_t now) const;
  // Whether a job with this reason blocks its partition in the main loop.
  bool blocks_lower_jobs(Reason reason) const;

  void submitted(const LimitedJob& job);
  void started(const LimitedJob& job, std::vector<std::int64_t> tres, std::int64_t now,
               std::int32_t slurm_partition, Nodes nodes, std::int64_t minutes);
  void ended(const LimitedJob& job, std::int64_t now);
  // A look of the decay thread, every PriorityCalcPeriod.
  void tick(std::int64_t now);

 private:
  struct Running {
    std::int32_t slurm_partition;
    std::vector<std::int32_t> nodes;
    ChargedJob charged;
  };

  bool counted(const LimitedJob& job) const {
    return setup_.limits_count && job.association != kNone;
  }
  QosGroup* qos_of(std::int32_t qos) const {
    return qos == kNone ? nullptr : qos_[static_cast<std::size_t>(qos)].get();
  }
  const PartitionSetup& partition(std::int32_t place) const {
    return setup_.slurm_partitions[static_cast<std::size_t>(place)];
  }
  const std::vector<AssociationGroup*>& line_of(const LimitedJob& job) const {
    return associations_[static_cast<std::size_t>(job.association)]->line;
  }
  PolicyCase case_of(const LimitedJob& job, std::int32_t slurm_partition,
                     std::int64_t minutes) const;
  Reason partition_refuses(const LimitedJob& job, std::int32_t slurm_partition) const;
  Reason partitions_refuse(const LimitedJob& job) const;
  bool qos_denied(const LimitedJob& job, std::int32_t slurm_partition) const;
  bool account_denied(const LimitedJob& job, std::int32_t slurm_partition) const;
  void count_submitted(const LimitedJob& job, QosGroup& qos, std::int64_t jobs) const;
  void count_submitted_everywhere(const LimitedJob& job,
                                  const std::vector<std::int32_t>& slurm_partitions,
                                  std::int64_t jobs);

  LimitsSetup setup_;
  std::vector<std::unique_ptr<QosGroup>> qos_;
  std::vector<std::unique_ptr<AssociationGroup>> associations_;
  LimitChecks checks_;
  RunMinutes minutes_;
  bool minutes_count_ = false;  // any limit goes by what has been used
  std::vector<std::int64_t> licenses_in_use_;
  std::unordered_map<std::int32_t, std::int32_t> tasks_running_;
  std::map<std::int32_t, Running> running_;  // in the order of submission, as jobs are charged
};

}  // namespace foretime::slurm
