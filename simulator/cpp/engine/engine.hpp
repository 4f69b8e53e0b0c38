// The event loop: when things happen. What a scheduling pass decides is in a planner (planner.hpp);
// what it may know of the running jobs is in availability.hpp.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "core/admission.hpp"
#include "core/availability.hpp"
#include "core/queue.hpp"
#include "core/score_order.hpp"
#include "core/slack_settings.hpp"
#include "core/types.hpp"
#include "engine/outside_policy.hpp"
#include "planning/bgp_planner.hpp"
#include "planning/nodes/node_planner.hpp"
#include "planning/pbs/pbs_planner.hpp"
#include "planning/planner.hpp"
#include "planning/slurm/slurm_planner.hpp"

namespace foretime {

// Somebody wants a run to stop. The engine stands between two events, and can go on.
struct Interrupted {};

// Times and processors are checked by engine.py before they come here.
class Engine final : private Pass {
 public:
  Engine(Processors machine, const Policy& policy, Seconds now,
         std::vector<AdvanceReservation> reservations = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() = default;

  // In place of the flat pool, before any job is submitted; its jobs each need a request.
  void use_nodes(const NodeMachine& machine);
  // The same as another engine has them at this time, with what its running jobs have of them,
  // which are added next, and with reservations of jobs that are added after them.
  void use_nodes(NodeScheduling nodes);
  NodePlanner& node_planner();
  const NodeScheduling& nodes() const;
  // Whoever plans on nodes.
  OnNodes& on_nodes();
  const OnNodes& on_nodes() const;
  // As a site's Slurm does, on its nodes; before any job is submitted.
  void use_slurm(SlurmState state);
  SlurmPlanner& slurm_planner();
  const SlurmPlanner& slurm_planner() const;
  // As a site's PBS does.
  void use_pbs(PbsState state);
  PbsPlanner& pbs_planner();
  const PbsPlanner& pbs_planner() const;
  // In place of the flat pool, before any job is submitted; its jobs ask for nodes.
  void use_bgp(BgpMachine machine);
  BgpPlanner& bgp_planner();
  const BgpPool& bgp_pool() const;
  // What keeps jobs from the queue; before any job is added.
  void admit_by(std::shared_ptr<const AdmissionRules> rules) {
    admission_ = std::make_unique<Admission>(std::move(rules));
  }
  // Who is asked where the order or the backfilling is kOutside.
  void ask(std::unique_ptr<OutsidePolicy> outside) { outside_ = std::move(outside); }
  OutsidePolicy* asked() const { return outside_.get(); }

  // Asked now and then during a run: whether to stop it. A run that is stopped throws Interrupted.
  void set_interrupted(std::function<bool()> interrupted) { interrupted_ = std::move(interrupted); }

  void reserve(std::size_t jobs);
  JobIndex submit(const Job& submitted);
  JobIndex add_running(const Job& started);
  // Takes over the times, the limit and the priority of `changed`.
  void update(JobIndex index, const Job& to);
  void cancel(JobIndex index);

  // Every event before `until`; at `until` itself only as far as jobs that are still to be
  // submitted at `until` can't matter: under kPerTimestep all but the pass, under kPerEvent
  // nothing.
  void advance(Seconds until);
  // All that is left to do at the clock's time.
  void settle() { run(now_, false); }
  // To the last event.
  void finish() { run(kNever, false); }
  // Until every job marked as awaited has started, and not beyond a time; false if one has not.
  bool finish_awaited(Seconds until = kNever);

  // Begun from a snapshot: when the ends of overstaying jobs were last worked out, before any
  // running job is added; and after all jobs, how the last pass left the queue. Without a pass due
  // nothing is done until something happens.
  void resume_estimates(Seconds at) { availability_.reestimate(at); }
  void resume_queue(const PlanNotes& notes, bool pass_due);
  Seconds estimated_at() const { return availability_.estimated_at(); }
  std::optional<PlanNotes> plan_notes() const;
  // In which the queue is now.
  Order order() const { return planner_->order().value_or(policy_.order); }
  const SwitchingCounters* switching_counters() const { return planner_->switching_counters(); }
  int started_under(JobIndex index) const { return planner_->started_under(index); }
  // The planned start that a planner keeps; planned_start() also gives that of a head job alone.
  Seconds kept_start(JobIndex index) const {
    return planner_->plans_head_alone() ? kNever : planner_->planned_start(index);
  }

  Seconds now() const { return now_; }
  // When something happens next, kNever if nothing does.
  Seconds next_event_time();
  Processors free() const { return availability_.free(); }
  const std::vector<Job>& jobs() const { return jobs_; }
  const Counters& counters() const { return counters_; }
  Seconds expected_end(JobIndex index) const { return availability_.expected_end(index); }
  // When a plan assumes a running job to end, never before now.
  Seconds planned_end(JobIndex index, bool on_requested) const;
  // When a waiting job is planned to start, and what was first planned for any job; kNever if
  // nothing is.
  Seconds planned_start(JobIndex index) const;
  Seconds first_planned_start(JobIndex index) const { return planner_->first_planned_start(index); }
  // Under slack-based backfilling; before any job is submitted.
  void describe_for_slack(std::vector<SlackJob> jobs);
  Seconds latest_start(JobIndex index) const;
  std::vector<JobIndex> queue() const;
  std::vector<JobIndex> running() const;
  // Whose submission is still to come.
  std::vector<JobIndex> submitted() const;
  // For an engine that runs beside another (plain_easy.hpp): see HeadPlanner; from now on a job
  // takes so long, and who should have ended ends now.
  void watch_heads();
  void tell_runtime(JobIndex index, Seconds actual_runtime);
  Seconds longest_wait() const { return longest_wait_; }
  // What started and finished since the last call, in the order in which it happened.
  std::vector<JobIndex> take_started() { return std::exchange(started_, {}); }
  std::vector<JobIndex> take_finished() { return std::exchange(finished_, {}); }

 private:
  struct Completion {
    Seconds end = 0;
    std::int64_t tie = 0;  // smaller first
    JobIndex job = 0;
    friend bool operator>(const Completion& a, const Completion& b) {
      return a.end != b.end ? a.end > b.end : a.tie > b.tie;
    }
  };

  // engine.cpp: events
  void run(Seconds until, bool hold);
  void run_timesteps(Seconds until, bool hold);
  void run_events(Seconds until, bool hold);
  void check_interrupted();
  Seconds next_change();
  Seconds next_moment() const;
  bool passes_at(Seconds time) const;
  bool completes(Seconds now);
  bool arrives(Seconds now) const;
  void complete_one();
  void complete(JobIndex index);
  bool complete_expected();
  void correct_expired();
  void arrive_one();
  void enter_queue(JobIndex index);
  void add_submission(JobIndex index);
  void release(const std::vector<JobIndex>& jobs);
  void let_in();
  Scheduling scheduling();
  void start(JobIndex index, StartedBy how) override;
  void kill(JobIndex index) override;
  void extend(JobIndex index, Seconds more) override { availability_.extend(index, more); }
  void set_time_limit(JobIndex index, Seconds time_limit) override;
  std::vector<Pending> queue_by_score() override;
  void score(std::vector<Candidate>& queue) override;
  std::vector<JobIndex> choose(const std::vector<JobIndex>& queue, bool on_requested) override;
  void pass();
  void set_end(JobIndex index);
  void changed();
  bool awaited_have_started() const { return until_awaited_ && awaited_ == 0; }

  // outside_policy.cpp: asking a policy from outside
  OutsidePolicy& outside() const;
  template <class Ask>
  auto ask_outside(Ask ask);
  void score_outside(std::vector<Candidate>& queue, OutsideNews&& news) const;

  std::vector<Pending> sorted_by_score(OutsideNews&& news) const;
  bool keeps_score_order() const { return grows_with_time(policy_.order) && !policy_.switching; }
  Job& job(JobIndex index) { return jobs_[static_cast<std::size_t>(index)]; }
  const Job& job(JobIndex index) const { return jobs_[static_cast<std::size_t>(index)]; }

  Policy policy_;
  std::vector<Job> jobs_;
  Availability availability_;
  Queue queue_;
  mutable ScoreOrder score_order_;
  std::unique_ptr<Planner> planner_;
  Seconds now_;
  Counters counters_;

  std::vector<JobIndex> submissions_;  // by time, then index; those from next_submission_ on wait
  std::size_t next_submission_ = 0;
  std::int64_t next_rank_ = 0;
  std::int64_t starts_ = 0;
  // Entries of jobs whose end has changed are dropped when they come up.
  std::priority_queue<Completion, std::vector<Completion>, std::greater<>> completions_;

  bool pass_pending_ = false;
  bool pass_failed_ = false;  // a policy from outside failed; nothing may come before the pass
  bool full_pass_ = true;
  std::vector<JobIndex> arrived_;
  std::int64_t active_guards_ = 0;
  Seconds longest_wait_ = 0;  // of those that have started
  std::unique_ptr<Admission> admission_;
  std::int64_t awaited_ = 0;  // jobs that are to start yet
  bool until_awaited_ = false;

  std::vector<JobIndex> started_;
  std::vector<JobIndex> finished_;
  std::unique_ptr<OutsidePolicy> outside_;
  OutsideNews news_;
  std::function<bool()> interrupted_;
  unsigned since_clock_ = 0;  // turns of the event loop since the clock on the wall was read
  std::chrono::steady_clock::time_point asked_at_;
};

}  // namespace foretime
