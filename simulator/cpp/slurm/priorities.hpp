// Priorities of jobs as Slurm's queue has them: worked out at submission, and at every tick.
// reference/slurm/priorities/priorities.py and factors.py are the specification; both give the same
// bits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/renumbering.hpp"
#include "core/types.hpp"
#include "slurm/billing.hpp"
#include "slurm/fair_share.hpp"
#include "slurm/usage_clock.hpp"

namespace foretime::slurm {

// Counts by kind of TRES, in the order of the site's kinds: cpu, mem (MiB), node, then others.
using TresCounts = std::vector<std::int64_t>;
inline constexpr std::size_t kCpu = 0;
inline constexpr std::size_t kMemory = 1;
inline constexpr std::size_t kNode = 2;

// What a slurm_partition weighs, and how it bills.
struct PricedPartition {
  double factor = 0;                    // PriorityJobFactor, normalised or not
  std::vector<double> billing_weights;  // by kind; empty: CPUs
  TresCounts tres;                      // of all its nodes
};

// A QOS, and how usage under it counts (none: as it is).
struct PricedQos {
  double factor = 0;  // weighed
  std::optional<double> usage_factor;
};

// PriorityWeightTRES; `billing` stands between `node` and the other kinds.
struct TresWeights {
  std::vector<double> by_kind;  // empty: TRES weigh nothing
  double billing = 0;
  bool normalised = true;
};

// A site's priorities: the same for all samples of forward runs.
struct PrioritySite {
  bool multifactor = true;
  std::shared_ptr<const FairShareTree> tree;
  ResetPeriod reset_period = ResetPeriod::kNone;
  Seconds half_life = 0;
  Seconds calc_period = 300;
  std::optional<Seconds> usage_at;
  bool charges_ends = false;   // limits are enforced
  bool shows_running = false;  // CALCULATE_RUNNING
  bool only_up = false;        // INCR_ONLY
  bool accrues_always = false;
  double weight_age = 0;
  Seconds max_age = 0;
  double weight_fair_share = 0;
  double weight_job_size = 0;
  double weight_partition = 0;
  bool favors_small = false;
  bool small_relative_to_time = false;
  std::int64_t cpus = 0;
  std::int64_t nodes = 0;
  TresWeights weight_tres;
  Billing bills;
  std::size_t gpu_kind = 0;  // gres/gpu
  std::vector<PricedPartition> partitions;
  std::vector<PricedQos> qos;

  double billing(std::span<const std::int64_t> tres, std::int32_t number) const {
    return bills.of(tres, partition(number).billing_weights);
  }
  const PricedPartition& partition(std::int32_t number) const {
    return partitions[static_cast<std::size_t>(number)];
  }
};

// What a job asks for.
struct PricedRequest {
  std::vector<std::int32_t> partitions;  // at least one
  TresCounts tres;
};

// A job as its user wrote it.
struct PricedJob {
  const PricedRequest* asked = nullptr;  // outlives it, and its copies
  AssociationIndex association = kNoAssociation;
  Seconds submit = 0;
  Seconds time_limit = 0;
  std::int64_t nice = 0;
  std::int64_t site_factor = 0;
  double qos = 0;                      // factor of its QOS, weighed
  std::optional<double> usage_factor;  // of its QOS
};

// Every call costs as much as the job has slurm_partitions and the site kinds of TRES; a tick is
// linear in jobs and associations but for the sort of Fair Tree. A copy costs what is known of jobs
// and associations, without what jobs ask for and the site.
class Priorities {
 public:
  Priorities(std::shared_ptr<const PrioritySite> site, Seconds now);
  // The same with other numbers of jobs; `asked`: by new number, what each asks for.
  Priorities(const Priorities& other, const Renumbering& jobs,
             const std::vector<const PricedRequest*>& asked);

  // A job is eligible since some moment, or not yet (kNever): held, or waiting for its begin time
  // or other jobs. A held one has the priority 0 until recompute().
  void submitted(JobIndex job, const PricedJob& said, Seconds eligible, Seconds now,
                 bool held = false);
  // Changes no priority before the next tick.
  void set_eligible(JobIndex job, Seconds eligible) { at(job).eligible = eligible; }
  // As when it is released, changed or requeued.
  void recompute(JobIndex job, const PricedJob& said, Seconds now);
  const PricedJob& said(JobIndex job) const { return of(job); }
  // A job's priority is known: what differs from the site's own is its site factor from now on.
  void adopt(JobIndex job, std::int64_t priority, Seconds now);
  void started(JobIndex job, std::int32_t partition, std::span<const std::int64_t> tres,
               Seconds now);
  // Of one that ran, or that is cancelled as it waits.
  void ended(JobIndex job, Seconds now);

  void tick(Seconds now);
  // kNever where nothing changes with time.
  Seconds next_tick() const { return has_ticks_ ? clock_.next_tick() : kNever; }

  // 0 if it is held.
  std::uint32_t priority_of(JobIndex job, std::int32_t partition) const;
  // To ask it for a factor is to fix that until the next tick, as Slurm's sshare does.
  FairShare& fair_share() { return fair_share_; }

 private:
  // Factors of a job in one of its slurm_partitions, weighed.
  struct Slot {
    double partition = 0;
    double tres = 0;
    std::uint32_t priority = 0;  // among several
  };
  struct Known {
    PricedJob said;
    JobIndex before = -1;  // in the order of submission
    JobIndex after = -1;
    Seconds eligible = kNever;
    Seconds started = kNever;
    std::size_t first_slot = 0;
    std::size_t slot = 0;  // of the slurm_partition that it is in
    double billable = 0;
    double job_size = 0;
    std::uint32_t priority = 0;
    bool held = false;
    bool in_queue = false;
  };

  Known& at(JobIndex job) { return known_[static_cast<std::size_t>(job)]; }
  const Known& at(JobIndex job) const { return known_[static_cast<std::size_t>(job)]; }
  const PricedJob& of(JobIndex job) const { return at(job).said; }
  std::span<const std::int32_t> partitions_of(JobIndex job) const {
    return of(job).asked->partitions;
  }

  void append(JobIndex job);
  void remove(JobIndex job);
  void fix(JobIndex job, std::span<const std::int64_t> tres);
  double size_factor(const PricedJob& job, std::int64_t cpus) const;
  double tres_factor(std::span<const std::int64_t> tres, std::int32_t partition) const;
  double age_factor(const PricedJob& job, const Known& known, Seconds now) const;
  void set(JobIndex job, Seconds now);
  std::uint32_t multifactor(JobIndex job, Seconds now);
  std::uint32_t basic(std::int64_t nice);
  void charge(JobIndex job, Seconds until);
  void tick_job(JobIndex job, Seconds now);

  std::shared_ptr<const PrioritySite> site_;
  FairShare fair_share_;
  UsageClock clock_;
  bool has_ticks_;
  std::vector<Known> known_;  // by job
  std::vector<Slot> slots_;   // of all jobs, one for each slurm_partition
  JobIndex first_ = -1;
  JobIndex last_ = -1;
  std::uint32_t lowest_ = 0xFFFF0000;  // of priority/basic
};

}  // namespace foretime::slurm
