// Slurm's scheduling as a planner of the engine: when its loops look at the queue, and what they
// then start.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "planning/nodes/on_nodes.hpp"
#include "planning/queue_planner.hpp"
#include "planning/slurm/backfill_cycle.hpp"
#include "planning/slurm/slurm_clock.hpp"
#include "planning/slurm/slurm_controller.hpp"

namespace foretime {

// All that a slurmctld has in mind besides its jobs: copied for each forward run.
struct SlurmState {
  SlurmController controller;
  SlurmClock clock;
  // Whether another run of a loop might start somebody.
  bool main_may_start = true;
  bool full_main_may_start = true;
  bool backfill_may_start = true;
  Seconds backfill_changes_at = kNever;  // though nothing happens
  Seconds main_changes_at = kNever;
  bool main_met_blocked = false;
  bool backfill_planned = false;
  bool coarse = false;

  Seconds last_event;            // that may let jobs start
  Seconds caught_up;             // runs of the loops before are over
  Seconds woken_at;              // the last second that has begun
  Seconds next_moment = kNever;  // start or end of a reservation
  Seconds begins_at = kNever;    // when a job may be looked at that may not yet
  Seconds began;                 // running jobs are looked at every so often from then
  Seconds looked;                // looks up to then are over

  SlurmState(const std::shared_ptr<const SlurmSite>& site, Seconds now)
      : controller(site, now),
        clock(*site, now),
        last_event(now),
        caught_up(now),
        woken_at(now),
        began(now),
        looked(now) {
    for (const SlurmReservation& reservation : site->reservations) {
      next_moment = std::min({next_moment, reservation.start, reservation.end});
    }
  }
  // The same with other numbers of jobs.
  SlurmState(const SlurmState& other, const Renumbering& jobs)
      : controller(other.controller, jobs),
        clock(other.clock),
        main_may_start(other.main_may_start),
        full_main_may_start(other.full_main_may_start),
        backfill_may_start(other.backfill_may_start),
        backfill_changes_at(other.backfill_changes_at),
        main_changes_at(other.main_changes_at),
        main_met_blocked(other.main_met_blocked),
        backfill_planned(other.backfill_planned),
        coarse(other.coarse),
        last_event(other.last_event),
        caught_up(other.caught_up),
        woken_at(other.woken_at),
        next_moment(other.next_moment),
        begins_at(other.begins_at),
        began(other.began),
        looked(other.looked) {}
};

class SlurmPlanner final : public QueuePlanner, public OnNodes {
 public:
  SlurmPlanner(const Scheduling& engine, SlurmState state)
      : QueuePlanner(engine), state_(std::move(state)), scratch_(state_.controller.table()) {}

  const SlurmState& state() const { return state_; }
  SlurmController& controller() { return state_.controller; }
  // Plans are made as far as Slurm makes them, so that they can be asked for.
  void keep_plans() { keeps_plans_ = true; }
  // Backfill plans for few jobs, and ever less often, from now on.
  void run_coarsely();
  // Nothing is known of the loops: they look at once.
  void look_at_once();
  // A job that has not ended says something else from now on.
  void change(JobIndex index, SlurmJob to);
  // A job that runs already, and is told of next, has these.
  void has_already(JobIndex index, std::int32_t slurm_partition, std::vector<NodeRow> rows);

  // OnNodes
  void record() override { records_ = true; }
  const std::vector<std::int64_t>& records() const override { return rows_; }
  std::int32_t add_request(ResourceRequest request) override {
    state_.controller.requests().add(std::move(request));
    return static_cast<std::int32_t>(state_.controller.requests().size()) - 1;
  }
  void set_request(JobIndex index, std::int32_t request) override {
    state_.controller.set_request(index, request);
  }
  const std::vector<std::int32_t>& request_of() const override {
    return state_.controller.request_of();
  }
  bool has_room(std::int32_t request) override;
  std::int32_t slurm_partition_of(JobIndex index) const override;
  std::vector<NodeRow> rows_of(JobIndex index) const override;

  // Planner
  void submitted(JobIndex index) override;
  void arrived(JobIndex index) override;
  void cancelled(JobIndex index) override;
  void changed_waiting(JobIndex index) override;
  void started(JobIndex index, Seconds now) override;
  void runs_already(JobIndex index, Seconds now) override;
  void changed_running(JobIndex index, Seconds now) override;
  void finished(JobIndex index, Seconds now) override;
  void resume(const PlanNotes& notes, Seconds reached) override;
  void schedule(Seconds now, const Queue& queue, Pass& pass) override;
  Seconds next_moment() const override;
  void reached(Seconds now) override;
  Seconds next_look() const override { return std::max(look_at(), reached_ + 1); }
  bool looks_now(Seconds now) const override { return look_at() <= now; }
  Seconds planned_start(JobIndex index) const override;
  std::optional<std::vector<JobIndex>> own_queue() const override;

 private:
  SlurmController& slurm() { return state_.controller; }
  bool take_limits(JobIndex index);
  void look_again();
  void may_start_again(Seconds now);
  void told_of_change(Seconds now);
  void tick(Seconds now);
  void catch_up(Seconds until);
  void pass_moments(Seconds now);
  Seconds look_at() const;
  void end_used_up(Seconds now, Pass* pass);
  void wake(Seconds now, Pass* pass);
  void end_step(Seconds now, Pass* pass);
  void run_main(Seconds now, Pass* pass);
  void run_backfill(Seconds now, Pass* pass);
  void take_up(JobIndex index, Seconds now);
  void place(JobIndex index, std::int32_t slurm_partition, bool whole, std::vector<NodeRow> rows);
  Seconds patience() const;

  struct Placed {
    std::int32_t slurm_partition = -1;
    std::vector<NodeRow> rows;
  };

  SlurmState state_;
  BackfillScratch scratch_;
  std::vector<Placed> placed_;    // running jobs, before they are told of
  std::vector<JobIndex> coming_;  // submitted in this second
  Seconds reached_ = std::numeric_limits<Seconds>::min() / 2;
  Seconds open_step_ = kNever;  // a second that has begun, and is not over
  bool keeps_plans_ = false;
  bool records_ = false;
  std::vector<std::int64_t> rows_;
};

}  // namespace foretime
