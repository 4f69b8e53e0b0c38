// One scheduling cycle: who starts, and who becomes a top job (fifo.cpp of OpenPBS; cycle.py and
// order.py of the specification).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planning/pbs/pbs_top_jobs.hpp"
#include "planning/planner.hpp"

namespace foretime {

class PbsCycle {
 public:
  // Of a job alone, which has just come, where no other might start; -1: of all.
  PbsCycle(PbsState& state, PbsTopJobs& top_jobs, Seconds now, const std::vector<Job>& jobs,
           Pass& pass, JobIndex only);

  void run();
  const std::vector<JobIndex>& started() const { return started_; }

 private:
  // A waiting job whose turn comes: the first of its group that has not been looked at.
  struct Turn {
    std::int32_t group = 0;
    std::size_t at = 0;
    std::int64_t rank = 0;  // in the order of submission
  };
  using Turns = std::vector<Turn>;  // a heap

  PbsGroup& group(const Turn& turn) { return state_.groups[static_cast<std::size_t>(turn.group)]; }
  const PbsGroup& group(const Turn& turn) const {
    return state_.groups[static_cast<std::size_t>(turn.group)];
  }
  bool is_refused(const PbsGroup& of) const {
    return state_.refused_at[static_cast<std::size_t>(of.alike)] == state_.freed;
  }
  const PbsQueue& queue(std::int32_t number) const {
    return site_.queues[static_cast<std::size_t>(number)];
  }

  void value_groups();
  bool is_looked_at(const PbsGroup& of) const;
  bool might_start(const PbsGroup& of) const;
  bool matters(const PbsGroup& of) const;
  void add_turns();
  void add_turn(std::int32_t number, std::size_t at);
  void sort();
  void rank_entities();
  bool is_after(const Turn& a, const Turn& b) const;
  double amount(const PbsGroup& of, std::int32_t key) const;
  std::optional<Turn> next();
  std::optional<Turn> pop(Turns& turns);
  void look_at(Turn turn);
  void drop_idle();
  void assume_used(const PbsRecord& job);
  void stop_behind(std::int32_t number);
  Turn first_turn(JobIndex index) const;
  void drop_all() {
    for (Turns& turns : turns_) turns.clear();
  }

  PbsState& state_;
  const PbsSite& site_;
  PbsTopJobs& top_jobs_;
  const std::vector<Job>& jobs_;
  Pass& pass_;
  Seconds now_;
  JobIndex only_;
  bool backfills_;
  bool is_dedicated_;
  std::vector<Turns> turns_;  // one, or by queue
  std::vector<std::int64_t> entity_rank_;
  std::vector<std::size_t> place_of_queue_;
  std::vector<bool> stopped_;  // by queue
  bool any_refused_ = false;
  std::size_t last_queue_ = 0;
  std::size_t last_level_ = 0;
  std::vector<JobIndex> started_;
};

}  // namespace foretime
