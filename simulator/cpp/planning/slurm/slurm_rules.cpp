#include "planning/slurm/slurm_rules.hpp"

#include <utility>

namespace foretime {
namespace {

// Counts in the kinds of limits.
std::vector<std::int64_t> limited_counts(const slurm::LimitsSetup& setup, const Resources& all,
                                         std::int64_t nodes) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(setup.kinds));
  counts[static_cast<std::size_t>(setup.cpu_kind)] = all.cpus;
  counts[static_cast<std::size_t>(setup.memory_kind)] = all.memory;
  counts[static_cast<std::size_t>(setup.node_kind)] = nodes;
  counts[static_cast<std::size_t>(setup.gpu_kind)] = all.gpus;
  return counts;
}

// And of priorities.
slurm::TresCounts priced_counts(const slurm::PrioritySite& site, const Resources& all,
                                std::int64_t nodes) {
  slurm::TresCounts counts(site.bills.is_gres.size());
  counts[slurm::kCpu] = all.cpus;
  counts[slurm::kMemory] = all.memory;
  counts[slurm::kNode] = nodes;
  counts[site.gpu_kind] = all.gpus;
  return counts;
}

std::pair<Resources, std::int64_t> sum_of(const std::vector<NodeRow>& rows) {
  Resources all;
  std::int64_t nodes = 0;
  for (const NodeRow& row : rows) {
    all.cpus += row.nodes * row.of_each.cpus;
    all.memory += row.nodes * row.of_each.memory;
    all.gpus += row.nodes * row.of_each.gpus;
    nodes += row.nodes;
  }
  return {all, nodes};
}

}  // namespace

SlurmRules::SlurmRules(std::shared_ptr<const SlurmSite> site, Seconds now)
    : site_(std::move(site)),
      priorities_(site_->priority, epoch(now)),
      limits_(site_->limits, now) {}

SlurmRules::SlurmRules(const SlurmRules& other, const Renumbering& jobs,
                       const std::vector<const slurm::PricedRequest*>& asked)
    : site_(other.site_),
      priorities_(other.priorities_, jobs, asked),
      limits_(other.limits_, jobs) {}

CountedRequest SlurmRules::counted(const SlurmSite& site,
                                   std::vector<std::int32_t> slurm_partitions,
                                   const Resources& asked, std::int64_t nodes) {
  return {{std::move(slurm_partitions), priced_counts(*site.priority, asked, nodes)},
          limited_counts(*site.limits, asked, nodes)};
}

slurm::LimitedJob SlurmRules::limited(const RuledJob& job) {
  const SlurmJob& facts = job.facts;
  return {static_cast<std::int32_t>(job.index),
          facts.user,
          facts.limited_association,
          facts.limited_qos,
          job.asked.priced.partitions,
          job.minutes(),
          job.asked.limited,
          facts.licenses,
          facts.array,
          facts.array_most,
          facts.flaw};
}

// Questions

slurm::Reason SlurmRules::why_refused(const RuledJob& job) const {
  return limits_.why_refused(limited(job), 1);
}

slurm::Reason SlurmRules::why_not_considered(const RuledJob& job,
                                             std::int32_t slurm_partition) const {
  return limits_.why_not_considered(limited(job), slurm_partition, job.minutes());
}

slurm::Reason SlurmRules::why_not_started(const RuledJob& job, std::int32_t slurm_partition,
                                          const std::vector<NodeRow>& rows) const {
  const slurm::LimitedJob as_limited = limited(job);
  if (!limits_.counts(as_limited)) return slurm::reason::none;
  const auto [all, nodes] = sum_of(rows);
  return limits_.why_not_started(as_limited, limited_counts(*site_->limits, all, nodes),
                                 slurm_partition, nodes_of(rows), job.minutes());
}

slurm::Reason SlurmRules::why_not_started(const RuledJob& job, std::int32_t slurm_partition,
                                          std::int64_t count, slurm::Nodes nodes) const {
  const slurm::LimitedJob as_limited = limited(job);
  if (!limits_.counts(as_limited)) return slurm::reason::none;
  std::vector<std::int64_t> tres = job.asked.limited;
  tres[static_cast<std::size_t>(site_->limits->node_kind)] = count;
  return limits_.why_not_started(as_limited, tres, slurm_partition, nodes, job.minutes());
}

bool SlurmRules::partition_keeps(const RuledJob& job, std::int32_t slurm_partition) const {
  return limits_.partition_keeps(limited(job), slurm_partition);
}

bool SlurmRules::has_licenses(const RuledJob& job) const {
  return limits_.why_no_licenses(limited(job)) == slurm::reason::none;
}

bool SlurmRules::array_is_full(const RuledJob& job) const {
  return limits_.array_is_full(limited(job));
}

bool SlurmRules::is_killed(const RuledJob& job, Seconds now) const {
  return limits_.is_killed(limited(job), now);
}

std::vector<std::int32_t> SlurmRules::nodes_of(const std::vector<NodeRow>& rows) const {
  std::vector<std::int32_t> nodes;
  if (!limits_.go_by_nodes()) return nodes;
  for (const NodeRow& row : rows) {
    for (std::int64_t node = row.node; node < row.node + row.nodes; ++node) {
      nodes.push_back(static_cast<std::int32_t>(node));
    }
  }
  return nodes;
}

// Events

void SlurmRules::submitted(const RuledJob& job, Seconds submit, Seconds eligible, Seconds now) {
  const SlurmJob& facts = job.facts;
  limits_.submitted(limited(job));
  slurm::PricedJob priced;
  priced.asked = &job.asked.priced;
  priced.association = facts.association;
  priced.submit = epoch(submit);
  priced.time_limit = job.time_limit;
  priced.nice = facts.nice;
  priced.site_factor = facts.site_factor;
  price_qos(priced, facts.qos);
  priorities_.submitted(job.index, priced, epoch(eligible), epoch(now));
}

void SlurmRules::price_qos(slurm::PricedJob& job, std::int32_t number) const {
  job.qos = 0;
  job.usage_factor.reset();
  if (number < 0) return;
  const slurm::PricedQos& qos = site_->priority->qos[static_cast<std::size_t>(number)];
  job.qos = qos.factor;
  job.usage_factor = qos.usage_factor;
}

void SlurmRules::changes(const RuledJob& job, const SlurmJob& to, Seconds now) {
  limits_.withdrawn(limited(job));
  limits_.submitted(limited({job.index, to, job.asked, job.time_limit}));
  slurm::PricedJob said = priorities_.said(job.index);
  said.association = to.association;
  said.nice = to.nice;
  said.site_factor += to.site_factor - job.facts.site_factor;
  price_qos(said, to.qos);
  priorities_.recompute(job.index, said, epoch(now));
}

void SlurmRules::started(const RuledJob& job, std::int32_t slurm_partition,
                         const std::vector<NodeRow>& rows, Seconds now) {
  const auto [all, nodes] = sum_of(rows);
  priorities_.started(job.index, slurm_partition, priced_counts(*site_->priority, all, nodes),
                      epoch(now));
  limits_.started(limited(job), limited_counts(*site_->limits, all, nodes), now, slurm_partition,
                  nodes_of(rows), job.minutes());
}

void SlurmRules::ended(const RuledJob& job, Seconds now) {
  priorities_.ended(job.index, epoch(now));
  limits_.ended(limited(job), now);
}

void SlurmRules::withdrawn(const RuledJob& job, Seconds now) {
  priorities_.ended(job.index, epoch(now));
  limits_.withdrawn(limited(job));
}

Seconds SlurmRules::next_tick() const {
  const Seconds next = priorities_.next_tick();
  return next == kNever ? kNever : next - site_->epoch;
}

bool SlurmRules::tick(Seconds now) {
  priorities_.tick(epoch(now));
  return limits_.tick(now);
}

}  // namespace foretime
