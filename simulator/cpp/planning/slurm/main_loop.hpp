// One run of the main loop: jobs in the queue's order, until one of a slurm_partition has to wait.
// reference/slurm/loops/main_loop.py is the specification (`_schedule`, job_scheduler.c).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planning/slurm/slurm_controller.hpp"

namespace foretime {

// The job array of which a task was rejected: its other tasks are passed over.
class RejectedArray {
 public:
  bool passes_over(const SlurmJob& facts, std::int32_t slurm_partition) {
    if (facts.array < 0) return false;
    if (facts.array == array_ && slurm_partition == partition_ && facts.reservation == reservation_)
      return true;
    array_ = facts.array;
    partition_ = slurm_partition;
    reservation_ = facts.reservation;
    return false;
  }
  void clear() { array_ = -1; }

 private:
  std::int32_t array_ = -1;
  std::int32_t partition_ = -1;
  std::int32_t reservation_ = -1;
};

class MainLoop {
 public:
  MainLoop(SlurmController& controller, Seconds now, bool full, Pass& pass);

  void run();
  std::int64_t started() const { return started_; }
  // Whether it came to a job that another one keeps waiting.
  bool met_blocked() const { return met_blocked_; }
  // Whether it ended before it had gone through the queue, and might start more: at once, or when
  // it goes through the whole queue.
  bool might_start_more() const { return cut_by_starts_; }
  bool might_start_deeper() const { return cut_by_depth_; }
  // When it would do something else though nothing has happened; kNever: never.
  Seconds next_change() const { return std::min(next_change_, controller_.usable_changes_at()); }

 private:
  enum class Depth : std::uint8_t { kLook, kPassOver, kEnd };

  bool look_at(const QueueEntry& entry);
  bool pass_kept(std::int32_t slurm_partition);
  bool has_started_enough();
  Depth go_deeper(std::int32_t slurm_partition);
  bool meet_blocked();
  bool blocks(const QueueEntry& entry, Verdict verdict);
  bool block(std::int32_t partition);

  SlurmController& controller_;
  const SlurmParameters& parameters_;
  Seconds now_;
  bool full_;
  Pass& pass_;
  NodeSet available_;
  std::vector<bool> failed_partitions_;
  std::size_t partitions_left_;
  std::vector<bool> failed_reservations_;
  std::vector<std::int64_t> looked_at_in_;
  RejectedArray rejected_array_;
  std::int64_t looked_at_ = 0;
  std::int64_t started_ = 0;
  bool met_blocked_ = false;
  bool cut_by_starts_ = false;
  bool cut_by_depth_ = false;
  Seconds next_change_ = kNever;
};

}  // namespace foretime
