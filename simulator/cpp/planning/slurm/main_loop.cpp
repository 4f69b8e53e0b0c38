#include "planning/slurm/main_loop.hpp"

#include <algorithm>

namespace foretime {

MainLoop::MainLoop(SlurmController& controller, Seconds now, bool full, Pass& pass)
    : controller_(controller),
      parameters_(controller.parameters()),
      now_(now),
      full_(full),
      pass_(pass),
      available_(controller.all_nodes()),
      failed_partitions_(controller.site().partitions.size(), false),
      partitions_left_(controller.site().partitions.size()),
      failed_reservations_(controller.site().reservations.size(), false),
      looked_at_in_(controller.site().partitions.size(), 0) {}

void MainLoop::run() {
  controller_.begin_loop(now_);
  // Starts leave their entries where they are.
  // NOLINTNEXTLINE(modernize-loop-convert): the queue may grow under an iterator
  for (std::size_t place = 0; place < controller_.queue().size(); ++place) {
    const QueueEntry entry = controller_.queue()[place];
    const std::int32_t kept_in = controller_.known_kept_in(entry.job);
    if (kept_in >= 0 ? !pass_kept(kept_in)
                     : controller_.may_be_looked_at(entry) && !look_at(entry)) {
      return;
    }
  }
}

// A job of which it is known that a limit keeps it: what look_at() would do. False ends the run.
bool MainLoop::pass_kept(std::int32_t slurm_partition) {
  if (has_started_enough()) return false;
  const Depth depth = go_deeper(slurm_partition);
  if (depth != Depth::kLook) return depth == Depth::kPassOver;
  return !failed_partitions_[static_cast<std::size_t>(slurm_partition)] || meet_blocked();
}

bool MainLoop::has_started_enough() {
  cut_by_starts_ =
      parameters_.sched_max_job_start > 0 && started_ >= parameters_.sched_max_job_start;
  return cut_by_starts_;
}

MainLoop::Depth MainLoop::go_deeper(std::int32_t slurm_partition) {
  std::int64_t& in = looked_at_in_[static_cast<std::size_t>(slurm_partition)];
  if (parameters_.partition_job_depth > 0 && ++in > parameters_.partition_job_depth) {
    return Depth::kPassOver;
  }
  // One more than default_queue_depth: the test comes before the count.
  cut_by_depth_ = !full_ && ++looked_at_ > parameters_.default_queue_depth + 1;
  return cut_by_depth_ ? Depth::kEnd : Depth::kLook;
}

// False where nobody behind it can start, and nothing else comes of going on.
bool MainLoop::meet_blocked() {
  met_blocked_ = true;
  return partitions_left_ > 0 || !controller_.site().reservations.empty();
}

// False ends the run.
bool MainLoop::look_at(const QueueEntry& entry) {
  const JobIndex job = entry.job;
  const SlurmJob& facts = controller_.facts(job);
  const Wish& wish = controller_.wishes(job)[static_cast<std::size_t>(entry.number)];
  if (has_started_enough()) return false;
  if (rejected_array_.passes_over(facts, wish.slurm_partition) ||
      !controller_.array_may_start(job)) {
    return true;
  }
  const Depth depth = go_deeper(wish.slurm_partition);
  if (depth != Depth::kLook) return depth == Depth::kPassOver;
  const bool blocked = facts.reservation >= 0
                           ? failed_reservations_[static_cast<std::size_t>(facts.reservation)]
                           : failed_partitions_[static_cast<std::size_t>(wish.slurm_partition)];
  if (blocked) return meet_blocked();
  const bool was_kept = controller_.record(job).reason != 0;
  if (was_kept && controller_.is_kept(job, wish.slurm_partition)) {
    controller_.remember_kept(job);
    return true;
  }
  NodeSet in_partition = controller_.nodes_of_partition(wish.slurm_partition);
  in_partition &= available_;
  if (wish.min_nodes > in_partition.count()) {
    controller_.keep(job, 0);
    return block(wish.slurm_partition);
  }
  const Verdict verdict =
      controller_.select_nodes(job, entry.number, available_, now_,
                               controller_.record(job).time_limit, StartedBy::kHead, pass_);
  if (verdict == Verdict::kStarted) {
    rejected_array_.clear();
    ++started_;
    return true;
  }
  if (verdict == Verdict::kLicenses && parameters_.bf_licenses) return false;
  if (verdict == Verdict::kReserved && facts.reservation >= 0) {
    available_ -= controller_.nodes_of_reservation(facts.reservation);
  }
  return !blocks(entry, verdict) || block(wish.slurm_partition);
}

// Whether a job that did not start keeps those behind it waiting.
bool MainLoop::blocks(const QueueEntry& entry, Verdict verdict) {
  const SlurmJob& facts = controller_.facts(entry.job);
  const bool blocks =
      verdict == Verdict::kBusy ||
      (verdict == Verdict::kPolicy &&
       controller_.rules().limits().blocks_lower_jobs(controller_.record(entry.job).reason));
  if (!blocks) return false;
  if (facts.reservation >= 0) {
    failed_reservations_[static_cast<std::size_t>(facts.reservation)] = true;
    return false;
  }
  const Seconds too_young = parameters_.bf_min_age_reserve - controller_.waited(entry.job, now_);
  if (parameters_.bf_min_age_reserve > 0 && too_young > 0) {
    next_change_ = std::min(next_change_, now_ + too_young);
    return false;
  }
  return entry.priority >= parameters_.bf_min_prio_reserve;
}

// False ends the run: from 25.11 on where the slurm_partition is blocked already, as it can be for
// a job in a reservation.
bool MainLoop::block(std::int32_t partition) {
  const auto in = static_cast<std::size_t>(partition);
  if (failed_partitions_[in]) return controller_.site().version < std::pair{25, 11};
  failed_partitions_[in] = true;
  --partitions_left_;
  available_ -= controller_.nodes_of_partition(partition);
  return true;
}

}  // namespace foretime
