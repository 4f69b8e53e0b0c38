// What the families that plan more than the head job have in common: the claims of running and
// planned jobs in a profile, kept up to date from event to event.
//
// A running job claims its processors until its expected end. Advance reservations are promises, so
// where there are any everything is planned on the time limit at which jobs are killed.
#pragma once

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/availability.hpp"
#include "core/barred_starts.hpp"
#include "core/queue.hpp"
#include "core/types.hpp"
#include "planning/plan_profile.hpp"
#include "planning/planner.hpp"

namespace foretime {

// The waiting jobs in queue order: as the queue is kept, or sorted for one pass.
struct QueueInOrder {
  const Queue& queue;
  const std::vector<Pending>* sorted = nullptr;

  // Until `visit` says false. Blocks of which `skip` says so by their least needs are left out.
  template <class Skip, class Visit>
  void for_each(Skip skip, Visit visit) const {
    if (sorted != nullptr) {
      for (const Pending& entry : *sorted) {
        if (!visit(entry)) return;
      }
      return;
    }
    for (const auto& block : queue.blocks()) {
      if (skip(block.summary)) continue;
      for (const Pending& entry : block) {
        if (!visit(entry)) return;
      }
    }
  }
};

using Starts = std::vector<std::pair<JobIndex, StartedBy>>;

// On a job whose requested time is up: so much more time, or it is killed.
struct OverrunVerdict {
  JobIndex job = 0;
  Seconds more = 0;  // 0: killed
};

class ProfilePlanner : public Planner {
 public:
  ProfilePlanner(std::unique_ptr<PlanProfile> profile, const Policy& policy,
                 const std::vector<Job>& jobs, const Availability& availability,
                 std::vector<AdvanceReservation> reservations);

  void arrived(JobIndex index) override;
  void cancelled(JobIndex index) override;
  void changed_waiting(JobIndex index) override;
  void started(JobIndex index, Seconds now) override;
  void runs_already(JobIndex index, Seconds now) override { changed_running(index, now); }
  void changed_running(JobIndex index, Seconds now) override;
  void finished(JobIndex index, Seconds now) override;
  void resume(const PlanNotes& notes, Seconds reached) override;
  std::optional<PlanNotes> notes() const override;
  void schedule(Seconds now, const Queue& queue, Pass& pass) override;
  // Something is planned for then, or an advance reservation ends.
  Seconds next_moment() const override;
  void reached(Seconds now) override { reached_ = now; }
  Seconds planned_start(JobIndex index) const override { return at(planned_, index); }
  Seconds first_planned_start(JobIndex index) const override { return at(first_planned_, index); }

 protected:
  // Whether the next plan must know the queue in order.
  virtual bool needs_order() const = 0;
  // On the next job that a pass must decide about before it goes on.
  virtual std::optional<OverrunVerdict> judge_overrun(Seconds /*now*/) { return std::nullopt; }
  // Whether another plan must follow once those that it gave have started.
  virtual bool goes_on() const { return false; }
  // Who must be killed first for those that start.
  virtual std::vector<JobIndex> take_kills() { return {}; }
  // Who starts now, in this order.
  virtual void plan(Seconds now, const QueueInOrder& queue, Starts& starts) = 0;
  // A waiting job has a planned start now, or will have none soon.
  virtual void now_planned(JobIndex) {}
  virtual void no_longer_planned(JobIndex) {}
  // Whether waiting jobs claim what they are planned for: in the profile.
  virtual bool claims_plans() const { return true; }
  // Its times or its priority.
  virtual void waiting_changed(JobIndex) {}
  virtual void has_started(JobIndex, Seconds /*now*/) {}
  // It holds the plan of a pass before this one began, from a snapshot.
  virtual void resumed(JobIndex) {}
  virtual Seconds next_planned_start() const = 0;  // after reached()

  Seconds reached() const { return reached_; }
  const Job& job(JobIndex index) const { return jobs_[static_cast<std::size_t>(index)]; }
  bool has_reservations() const { return !reservations_.empty(); }
  // What a job is planned for.
  Seconds time(JobIndex index) const {
    return has_reservations() ? job(index).time_limit : job(index).backfill_time;
  }
  Seconds claim_end(JobIndex index) const { return at(claim_end_, index); }
  // When the last of the running jobs is expected to have ended, not before now.
  Seconds last_running_end(Seconds now) const;
  bool is_planned(JobIndex index) const { return planned_start(index) != kNever; }

  // Claims from `start` on for a waiting job.
  void promise(JobIndex index, Seconds start);
  // Where plans claim nothing.
  void set_plan(JobIndex index, Seconds start);
  // To an earlier start; now_planned() and no_longer_planned() hear nothing of it.
  void move_promise(JobIndex index, Seconds start);
  void break_promise(JobIndex index);
  Seconds earliest(JobIndex index, Seconds now) const {
    return profile_->earliest_fit(index, now, time(index));
  }
  // The same while jobs are only added to the plan: what is barred for one is for the like of it.
  void start_adding() { barred_.clear(); }
  Seconds earliest_added(JobIndex index, Seconds now);
  // Processors that are really free, and not claimed from outside.
  Processors really_free(Seconds now) const;
  void gain(Seconds start, Seconds end);
  // Its first planned start is what it is now.
  void note_first_plan(JobIndex index) {
    first_planned_[static_cast<std::size_t>(index)] = planned_start(index);
  }
  // When claims of running jobs and from outside begin or end; those in the past, too.
  void add_fixed_times(std::vector<Seconds>& times) const;
  const std::vector<JobIndex>& overdue() const { return availability_.overdue(); }
  // An overdue job claims its processors again; the plan has been made to fit.
  void claim_again(JobIndex index, Seconds now, Seconds more);

  PlanProfile& profile() { return *profile_; }
  const PlanProfile& profile() const { return *profile_; }
  const std::vector<JobIndex>& arrivals() const { return arrivals_; }
  std::vector<JobIndex> arrivals_in_order(const QueueInOrder& queue) const;
  const Policy& policy() const { return policy_; }

  BarredStarts barred_;

  // Since the last plan():
  bool changed_ = false;  // a claim of a running job
  bool broken_ = false;   // a claim has grown: promises may overlap it
  // A claim of a running job has changed since whoever goes by this took it back, but not by ending
  // when it was planned to.
  bool surprised_ = false;
  Seconds gained_from_ = kNever;  // within these processors were given back
  Seconds gained_until_ = kLongAgo;

  static constexpr Seconds kLongAgo = std::numeric_limits<Seconds>::min();

 private:
  static Seconds at(const std::vector<Seconds>& times, JobIndex index) {
    const auto place = static_cast<std::size_t>(index);
    return place < times.size() ? times[place] : kNever;
  }
  void begin_pass(Seconds now);
  void make_room();
  void set_claim_end(JobIndex index, Seconds now, Seconds end);
  Seconds believed_end(JobIndex index, Seconds now) const;

  std::unique_ptr<PlanProfile> profile_;
  const Policy& policy_;
  const std::vector<Job>& jobs_;
  const Availability& availability_;
  std::vector<AdvanceReservation> reservations_;  // by end
  Seconds reached_ = kLongAgo;
  std::vector<JobIndex> arrivals_;
  // By job index; kNever where there is none.
  std::vector<Seconds> planned_;
  std::vector<Seconds> first_planned_;
  std::vector<Seconds> claim_end_;
  Starts starts_;  // of one plan
};

// The planner of a policy; null where EASY's single reservation, or none, is all there is.
std::unique_ptr<Planner> make_planner(std::unique_ptr<PlanProfile> profile, const Policy& policy,
                                      const std::vector<Job>& jobs,
                                      const Availability& availability,
                                      std::vector<AdvanceReservation> reservations);
bool needs_planner(const Policy& policy, bool any_reservations);

}  // namespace foretime
