// A site's priorities and limits, as its loops ask for them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nodes/node_types.hpp"
#include "planning/slurm/slurm_site.hpp"
#include "slurm/limits.hpp"
#include "slurm/priorities.hpp"

namespace foretime {

// What of a request priorities and limits count.
struct CountedRequest {
  slurm::PricedRequest priced;
  std::vector<std::int64_t> limited;  // by kind of limits
};

// A job as rules see it.
struct RuledJob {
  JobIndex index = 0;
  const SlurmJob& facts;
  const CountedRequest& asked;
  Seconds time_limit = 0;  // as it stands

  std::int64_t minutes() const { return (time_limit + 59) / 60; }
};

class SlurmRules {
 public:
  // The decay thread begins now.
  SlurmRules(std::shared_ptr<const SlurmSite> site, Seconds now);
  // The same with other numbers of jobs; `asked`: by new number, what each asks for.
  SlurmRules(const SlurmRules& other, const Renumbering& jobs,
             const std::vector<const slurm::PricedRequest*>& asked);

  static CountedRequest counted(const SlurmSite& site, std::vector<std::int32_t> slurm_partitions,
                                const Resources& asked, std::int64_t nodes);

  // Questions; answers are reasons of limits.
  slurm::Reason why_refused(const RuledJob& job) const;
  slurm::Reason why_not_considered(const RuledJob& job, std::int32_t slurm_partition) const;
  // With nodes that were found: what it would have there.
  slurm::Reason why_not_started(const RuledJob& job, std::int32_t slurm_partition,
                                const std::vector<NodeRow>& rows) const;
  // With what it asks for, on so many nodes, or on these; by empty nodes each is one more.
  slurm::Reason why_not_started(const RuledJob& job, std::int32_t slurm_partition,
                                std::int64_t count, slurm::Nodes nodes) const;
  // Whether its partition keeps it, whatever the others do.
  bool partition_keeps(const RuledJob& job, std::int32_t slurm_partition) const;
  bool has_licenses(const RuledJob& job) const;
  bool array_is_full(const RuledJob& job) const;
  // Whether a running job is ended for what its group, or it, has used.
  bool is_killed(const RuledJob& job, Seconds now) const;
  const slurm::Limits& limits() const { return limits_; }
  // In a slurm_partition.
  std::int64_t priority_of(JobIndex job, std::int32_t slurm_partition) const {
    return priorities_.priority_of(job, slurm_partition);
  }

  // Events
  void submitted(const RuledJob& job, Seconds submit, Seconds eligible, Seconds now);
  void eligible(JobIndex job, Seconds since) { priorities_.set_eligible(job, epoch(since)); }
  void started(const RuledJob& job, std::int32_t slurm_partition, const std::vector<NodeRow>& rows,
               Seconds now);
  void ended(const RuledJob& job, Seconds now);
  void withdrawn(const RuledJob& job, Seconds now);
  // Of a waiting job, whose priority the real scheduler tells.
  void adopt(JobIndex job, std::int64_t priority, Seconds now) {
    priorities_.adopt(job, priority, epoch(now));
  }
  // A waiting job says something else from now on; its facts are still the old ones.
  void changes(const RuledJob& job, const SlurmJob& to, Seconds now);

  // The decay thread; kNever: it never looks.
  Seconds next_tick() const;
  // Whether a limit may have let somebody go.
  bool tick(Seconds now);

 private:
  Seconds epoch(Seconds time) const { return time == kNever ? kNever : time + site_->epoch; }
  static slurm::LimitedJob limited(const RuledJob& job);
  void price_qos(slurm::PricedJob& job, std::int32_t number) const;
  // Where no limit goes by nodes: none.
  std::vector<std::int32_t> nodes_of(const std::vector<NodeRow>& rows) const;

  std::shared_ptr<const SlurmSite> site_;
  slurm::Priorities priorities_;
  slurm::Limits limits_;
};

}  // namespace foretime
