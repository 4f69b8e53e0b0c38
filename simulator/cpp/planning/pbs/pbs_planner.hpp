// PBS's server and scheduler as a planner of the engine: a cycle after each end and each submission
// (run.py of the specification).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "planning/nodes/on_nodes.hpp"
#include "planning/pbs/pbs_cycle.hpp"
#include "planning/queue_planner.hpp"

namespace foretime {

// What a site's PBS remembers at a moment besides what jobs have and ask: of running jobs, then of
// pending ones.
struct PbsNotes {
  std::vector<PbsJobFacts> facts;
  std::vector<bool> exclusive;                // of running jobs
  std::vector<std::pair<bool, double>> seen;  // of these, by fair share, and what was used
  PbsFairShare fair_share;
  Seconds last_cycle = 0;
};

class PbsPlanner final : public QueuePlanner, public OnNodes {
 public:
  PbsPlanner(const Scheduling& engine, PbsState state);

  const PbsState& state() const { return state_; }
  // Before the job is submitted or added.
  void describe(JobIndex index, PbsJobFacts facts) { make_record(index).facts = facts; }
  // The same of a job that runs already, before it is added.
  void describe_running(JobIndex index, PbsJobFacts facts, bool exclusive);
  // The same of one that waits: it is not refused any more.
  void describe_accepted(JobIndex index, PbsJobFacts facts);
  // After a running job was added: fair share has charged what it used in so many seconds.
  void is_charged(JobIndex index, Seconds known);
  // A job that runs already, and is told of next, has these.
  void has_already(JobIndex index, std::int32_t slurm_partition, const std::vector<NodeRow>& rows);
  PbsNotes notes_of(const std::vector<JobIndex>& running,
                    const std::vector<JobIndex>& pending) const;
  // Before running jobs are told of.
  void begin_with(const PbsNotes& notes);

  // OnNodes
  void record() override { records_ = true; }
  const std::vector<std::int64_t>& records() const override { return rows_; }
  std::int32_t add_request(ResourceRequest request) override;
  void set_request(JobIndex index, std::int32_t request) override;
  const std::vector<std::int32_t>& request_of() const override { return request_of_; }
  bool has_room(std::int32_t request) override;
  std::int32_t slurm_partition_of(JobIndex index) const override;
  std::vector<NodeRow> rows_of(JobIndex index) const override;

  // Planner
  void submitted(JobIndex index) override { make_record(index); }
  void arrived(JobIndex index) override { coming_.push_back(index); }
  void cancelled(JobIndex index) override;
  void changed_waiting(JobIndex index) override;
  void started(JobIndex index, Seconds now) override;
  void runs_already(JobIndex index, Seconds now) override;
  void changed_running(JobIndex index, Seconds now) override;
  void finished(JobIndex index, Seconds now) override;
  void changed_from_outside() override { asked_ = true; }
  void resume(const PlanNotes& notes, Seconds reached) override;
  void schedule(Seconds now, const Queue& queue, Pass& pass) override;
  Seconds next_moment() const override;
  void reached(Seconds now) override;
  Seconds planned_start(JobIndex index) const override { return top_jobs_->planned_start(index); }
  std::optional<std::vector<JobIndex>> own_queue() const override;

 private:
  PbsRecord& make_record(JobIndex index);
  void take_times(JobIndex index);
  void take_up(JobIndex index, bool is_new);
  bool is_refused(const PbsRecord& job) const;
  void find_entity(PbsRecord& job);
  void enter_group(JobIndex index);
  void leave_group(JobIndex index);
  std::int32_t alike_of(const PbsRecord& job);
  void add_running(JobIndex index);
  void set_end(JobIndex index, Seconds end);
  static Seconds end_of(const PbsRecord& job, Seconds now);
  void end_first(Seconds now);
  void refresh_ends(Seconds now);
  void refresh_reservations(Seconds now);
  void catch_up(Seconds until);
  bool cycle(Seconds now, Pass* pass, JobIndex submitted);
  void charge(Seconds now);
  double used_by(const PbsRecord& job, Seconds known) const;
  bool is_judged_alone(const PbsRecord& job) const;
  // Whether anything hangs on what has been used.
  bool goes_by_shares() const { return state_.site->fair_share.on || state_.site->formula; }
  // Whether who may start at all hangs on what has been used.
  bool values_change() const {
    const PbsSite& site = *state_.site;
    return site.formula && site.threshold && site.formula->goes_by_shares();
  }

  PbsState state_;
  PbsScratch scratch_;
  std::unique_ptr<PbsTopJobs> top_jobs_;
  std::vector<Seconds> timed_;  // beginnings and ends of reservations, ends of dedicated time
  std::size_t next_timed_ = 0;
  std::vector<JobIndex> ended_;  // in this second, not yet told of
  Seconds ended_at_ = 0;
  std::vector<JobIndex> coming_;   // submitted in this second
  std::int64_t gone_through_ = 0;  // `freed` when the last cycle went through the queue
  bool asked_ = false;             // a cycle is due though nothing has begun or ended
  bool records_ = false;
  Seconds reached_ = std::numeric_limits<Seconds>::min() / 2;
  std::vector<std::int64_t> rows_;
  std::vector<std::int32_t> request_of_;
};

}  // namespace foretime
