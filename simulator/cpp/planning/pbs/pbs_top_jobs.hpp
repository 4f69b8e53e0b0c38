// Top jobs of a cycle: waiting jobs with a planned start that nobody behind them may delay
// (`should_backfill_with_job` and `add_job_to_calendar` of OpenPBS; cycle.py of the specification).
//
// A start is planned only once somebody could start who may delay that job. Until then it is known
// that it has one, and before when it is not.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planning/pbs/pbs_world.hpp"

namespace foretime {

class PbsTopJobs {
 public:
  PbsTopJobs(PbsState& state, PbsScratch& scratch);

  // A new cycle, in which nobody is planned.
  void begin(Seconds now);
  // A cycle that keeps what the last one planned: nothing has begun or ended since.
  void go_on(Seconds now) { now_ = now; }

  // Whether a job of a queue that can't start becomes one.
  bool may_add(std::int32_t queue) const;
  // False: it could never run, and so is none. One that was not judged by itself, but by another of
  // its class, may be planned for this moment, and in the next cycle for that.
  bool add(JobIndex index, bool judged);
  // Whether somebody may be planned otherwise though nothing has begun or ended.
  bool may_move() const { return may_move_; }
  // The one that comes last; -1: there is none.
  JobIndex last() const { return last_; }
  // Where a job can start now without delaying any.
  std::optional<PbsPlacement> place(JobIndex index);
  // A job that could start has its end planned.
  void started(JobIndex index);

  bool has(JobIndex index) const;
  // kNever: it is none.
  Seconds planned_start(JobIndex index);
  // Before jobs change otherwise than by a cycle.
  void plan_all();

 private:
  // One whose start is still to be planned.
  struct Unplanned {
    JobIndex job = -1;
    Seconds not_before = 0;
  };

  bool is_all_planned() const { return next_ == unplanned_.size(); }
  bool delays_unplanned(JobIndex index) const;
  bool can_ever_run(JobIndex index);
  Seconds earliest(JobIndex index) const;
  bool plan_next();
  bool plan(JobIndex index);
  void complete_calendar();

  PbsState& state_;
  const PbsSite& site_;
  PbsScratch& scratch_;
  Seconds now_ = 0;
  bool may_move_ = false;
  bool waits_ = false;  // whether starts are planned as late as may be
  PbsCalendar calendar_;
  std::vector<Unplanned> unplanned_;  // from next_ on
  std::size_t next_ = 0;
  std::vector<std::pair<JobIndex, Seconds>> planned_;
  std::vector<std::int64_t> count_;  // by queue; of the server at the end
  JobIndex last_ = -1;
  const PbsHosts empty_hosts_;
  const PbsCounts empty_counts_;
  // What a search spends.
  PbsHosts trial_hosts_;
  PbsCounts trial_counts_;
};

}  // namespace foretime
