#include "slurm/priorities.hpp"

#include <algorithm>
#include <utility>

namespace foretime::slurm {
namespace {

// 0 is for held jobs.
std::uint32_t rounded(double priority) {
  const double least = std::max(priority, 1.0);
  return least >= 4294967295.0 ? 0xFFFFFFFFU : static_cast<std::uint32_t>(least);
}

}  // namespace

Priorities::Priorities(std::shared_ptr<const PrioritySite> site, Seconds now)
    : site_(std::move(site)),
      fair_share_(site_->tree),
      clock_(site_->reset_period, site_->half_life, site_->calc_period, now, site_->usage_at),
      has_ticks_(site_->multifactor && fair_share_.size() > 0) {
  if (!has_ticks_) return;
  if (clock_.resets_at_once()) fair_share_.reset();
  if (fair_share_.is_fair_tree()) {
    fair_share_.apply_fair_tree();
  } else {
    fair_share_.begin_classic();
  }
}

Priorities::Priorities(const Priorities& other, const Renumbering& jobs,
                       const std::vector<const PricedRequest*>& asked)
    : site_(other.site_),
      fair_share_(other.fair_share_),
      clock_(other.clock_),
      has_ticks_(other.has_ticks_),
      known_(jobs.column(other.known_, {})),
      lowest_(other.lowest_) {
  for (JobIndex old = other.first_; old >= 0; old = other.at(old).after) {
    const JobIndex job = jobs.to(old);
    if (job < 0) continue;
    Known& known = at(job);
    known.said.asked = asked[static_cast<std::size_t>(job)];
    known.first_slot = slots_.size();
    const auto first = other.slots_.begin() + static_cast<std::ptrdiff_t>(other.at(old).first_slot);
    slots_.insert(slots_.end(), first, first + std::ssize(partitions_of(job)));
    append(job);
  }
}

void Priorities::append(JobIndex job) {
  Known& known = at(job);
  known.before = last_;
  known.after = -1;
  (last_ < 0 ? first_ : at(last_).after) = job;
  last_ = job;
  known.in_queue = true;
}

void Priorities::remove(JobIndex job) {
  Known& known = at(job);
  (known.before < 0 ? first_ : at(known.before).after) = known.after;
  (known.after < 0 ? last_ : at(known.after).before) = known.before;
  known.in_queue = false;
}

void Priorities::submitted(JobIndex job, const PricedJob& said, Seconds eligible, Seconds now,
                           bool held) {
  if (static_cast<std::size_t>(job) >= known_.size()) {
    known_.resize(static_cast<std::size_t>(job) + 1);
  }
  Known& known = at(job);
  if (known.in_queue) remove(job);
  append(job);
  known.said = said;
  known.first_slot = slots_.size();
  slots_.resize(slots_.size() + said.asked->partitions.size());
  known.eligible = eligible;
  known.started = kNever;
  known.slot = 0;
  known.billable = 0;
  known.priority = 0;
  known.held = held;
  fix(job, said.asked->tres);
  if (!held) set(job, now);
}

void Priorities::recompute(JobIndex job, const PricedJob& said, Seconds now) {
  at(job).said = said;
  at(job).held = false;
  if (at(job).started == kNever) fix(job, said.asked->tres);
  set(job, now);
}

void Priorities::adopt(JobIndex job, std::int64_t priority, Seconds now) {
  if (site_->multifactor) {
    set(job, now);
    at(job).said.site_factor += priority - static_cast<std::int64_t>(at(job).priority);
    set(job, now);
    return;
  }
  at(job).priority = rounded(static_cast<double>(priority));
  lowest_ = std::min(lowest_, at(job).priority);
}

void Priorities::started(JobIndex job, std::int32_t partition, std::span<const std::int64_t> tres,
                         Seconds now) {
  Known& known = at(job);
  const auto own = partitions_of(job);
  const auto place = std::ranges::find(own, partition);
  known.slot = place == own.end() ? 0 : static_cast<std::size_t>(place - own.begin());
  known.started = now;
  known.billable = site_->billing(tres, partition);
  if (site_->shows_running) fix(job, tres);
}

void Priorities::ended(JobIndex job, Seconds now) {
  if (at(job).started != kNever && site_->charges_ends && has_ticks_) charge(job, now);
  remove(job);
}

void Priorities::tick(Seconds now) {
  if (!has_ticks_) return;
  if (clock_.resets(now)) fair_share_.reset();
  const bool is_fair_tree = fair_share_.is_fair_tree();
  if (!is_fair_tree) fair_share_.begin_classic();
  const std::optional<double> kept = clock_.kept(now);
  if (kept && *kept != 1) fair_share_.decay(*kept);
  if (is_fair_tree) {
    for (JobIndex job = first_; job >= 0; job = at(job).after) {
      if (at(job).started != kNever) charge(job, now);
    }
    fair_share_.apply_fair_tree();
    for (JobIndex job = first_; job >= 0; job = at(job).after) tick_job(job, now);
  } else if (kept) {
    // What a job sees of others' usage depends on its place among them.
    for (JobIndex job = first_; job >= 0; job = at(job).after) {
      if (at(job).started != kNever) charge(job, now);
      tick_job(job, now);
    }
  }
  clock_.ticked(now);
}

void Priorities::charge(JobIndex job, Seconds until) {
  const AssociationIndex association = of(job).association;
  if (association == kNoAssociation) return;
  const Known& known = at(job);
  const Seconds since = std::max(known.started, clock_.last_ran());
  fair_share_.charge(association,
                     clock_.charge(until - since, known.billable, of(job).usage_factor));
}

void Priorities::tick_job(JobIndex job, Seconds now) {
  Known& known = at(job);
  if (known.held || (known.started != kNever && !site_->shows_running)) return;
  const std::uint32_t priority = multifactor(job, now);
  if (!site_->only_up || known.priority < priority) known.priority = priority;
}

void Priorities::set(JobIndex job, Seconds now) {
  at(job).priority = site_->multifactor ? multifactor(job, now) : basic(of(job).nice);
}

void Priorities::fix(JobIndex job, std::span<const std::int64_t> tres) {
  Known& known = at(job);
  const auto partitions = partitions_of(job);
  known.job_size =
      site_->weight_job_size == 0 ? 0 : size_factor(of(job), tres[kCpu]) * site_->weight_job_size;
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    Slot& slot = slots_[known.first_slot + i];
    slot.partition = site_->partition(partitions[i]).factor * site_->weight_partition;
    slot.tres = tres_factor(tres, partitions[i]);
  }
}

double Priorities::size_factor(const PricedJob& job, std::int64_t cpus) const {
  const auto all_cpus = static_cast<double>(site_->cpus);
  const auto all_nodes = static_cast<double>(site_->nodes);
  const std::int64_t nodes = job.asked->tres[kNode];
  double size = 0;
  if (site_->small_relative_to_time) {
    const Seconds minutes = std::max<Seconds>((job.time_limit + 59) / 60, 1);
    size = static_cast<double>(nodes) * all_cpus / all_nodes;
    size = std::max(size, static_cast<double>(cpus));
    size = size / static_cast<double>(minutes) / all_cpus;
    if (site_->favors_small) size = 1.0 - size;
  } else {
    const bool small = site_->favors_small;
    size = static_cast<double>(small ? site_->nodes - nodes : nodes) / all_nodes;
    if (cpus != 0) {
      size = (size + (static_cast<double>(small ? site_->cpus - cpus : cpus) / all_cpus)) / 2;
    }
  }
  return std::clamp(size, 0.0, 1.0);
}

double Priorities::tres_factor(std::span<const std::int64_t> tres, std::int32_t partition) const {
  const TresWeights& weights = site_->weight_tres;
  if (weights.by_kind.empty()) return 0;
  const PricedPartition& there = site_->partition(partition);
  const auto weighed = [&weights](std::int64_t count, std::int64_t of, double weight) {
    if (weight == 0) return 0.0;
    const auto value = static_cast<double>(count);
    if (!weights.normalised) return value * weight;
    return of == 0 ? 0.0 : value / static_cast<double>(of) * weight;
  };
  double sum = 0;
  for (std::size_t kind = 0; kind < tres.size(); ++kind) {
    sum += weighed(tres[kind], there.tres[kind], weights.by_kind[kind]);
    if (kind == kNode && weights.billing != 0) {
      sum += weighed(static_cast<std::int64_t>(site_->billing(tres, partition)),
                     static_cast<std::int64_t>(site_->billing(there.tres, partition)),
                     weights.billing);
    }
  }
  return sum;
}

double Priorities::age_factor(const PricedJob& job, const Known& known, Seconds now) const {
  if (site_->weight_age == 0 || fair_share_.size() == 0) return 0;
  const Seconds since = site_->accrues_always ? job.submit : known.eligible;
  if (since == kNever) return 0;
  const Seconds waited = now > since ? now - since : 0;
  const double share = waited < site_->max_age
                           ? static_cast<double>(waited) / static_cast<double>(site_->max_age)
                           : 1.0;
  return share * site_->weight_age;
}

std::uint32_t Priorities::multifactor(JobIndex job, Seconds now) {
  const PricedJob& own = of(job);
  const Known& known = at(job);
  const double age = age_factor(own, known, now);
  double association = 0;
  double fair_share = 0;
  if (own.association != kNoAssociation) {
    association =
        site_->tree->associations[static_cast<std::size_t>(own.association)].priority_factor;
    if (site_->weight_fair_share != 0) {
      fair_share = fair_share_.factor_of(own.association) * site_->weight_fair_share;
    }
  }
  const auto site_factor = static_cast<double>(own.site_factor);
  const auto nice = static_cast<double>(own.nice);
  const double before = age + association + fair_share + known.job_size;
  // Slurm adds up in another order where a job has several slurm_partitions.
  const std::size_t partitions = own.asked->partitions.size();
  if (partitions > 1) {
    for (std::size_t i = 0; i < partitions; ++i) {
      Slot& slot = slots_[known.first_slot + i];
      const std::uint32_t priority =
          rounded(slot.partition + (before + own.qos + slot.tres + site_factor - nice));
      if (!site_->only_up || slot.priority < priority) slot.priority = priority;
    }
  }
  const Slot& slot = slots_[known.first_slot + known.slot];
  return rounded(before + slot.partition + own.qos + slot.tres + site_factor - nice);
}

std::uint32_t Priorities::basic(std::int64_t nice) {
  std::uint32_t priority = lowest_ >= 2 ? lowest_ - 1 : 1;
  if (nice <= 0 || static_cast<std::int64_t>(priority) > nice + 1) {
    priority -= static_cast<std::uint32_t>(nice);
  }
  priority = std::max(priority, 1U);
  lowest_ = std::min(lowest_, priority + static_cast<std::uint32_t>(nice));
  return priority;
}

std::uint32_t Priorities::priority_of(JobIndex job, std::int32_t partition) const {
  const Known& known = at(job);
  if (known.held) return 0;
  const auto own = partitions_of(job);
  if (!site_->multifactor || own.size() < 2) return known.priority;
  const auto place = std::ranges::find(own, partition);
  if (place == own.end()) return known.priority;
  return slots_[known.first_slot + static_cast<std::size_t>(place - own.begin())].priority;
}

}  // namespace foretime::slurm
