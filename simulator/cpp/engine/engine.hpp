// The event loop: when things happen. What a scheduling pass decides is in pass.cpp, easy.cpp and
// first_fit.cpp, or where more than the head job is planned in a planner (planner.hpp); what it may
// know of the running jobs is in availability.hpp.
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
#include "bluegene/bgp_pool.hpp"
#include "nodes/node_scheduling.hpp"
#include "engine/outside_policy.hpp"
#include "planning/planner.hpp"
#include "core/queue.hpp"
#include "core/types.hpp"

namespace foretime {

struct Counters {
  std::int64_t passes = 0;
  std::int64_t completions = 0;
  std::int64_t expiries = 0;
  std::int64_t submissions = 0;
  std::int64_t guard_activations = 0;
  std::int64_t deepest_queue = 0;
};

// Somebody wants a run to stop. The engine stands between two events, and can go on.
struct Interrupted {};

// Times and processors are checked by engine.py before they come here.
class Engine {
 public:
  Engine(Processors machine, const Policy& policy, Seconds now,
         std::vector<AdvanceReservation> reservations = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // In place of the flat pool, before any job is submitted; its jobs each need a request.
  void use_nodes(NodeMachine machine);
  // The same as another engine has them at this time, with what its running jobs have of them, which
  // are added next, and with reservations of jobs that are added after them.
  void use_nodes(NodeScheduling nodes);
  const NodeScheduling& nodes() const { return *nodes_; }
  bool on_nodes() const { return nodes_ != nullptr; }
  void record_nodes() { nodes_->pool.record(true); }
  void add_request(ResourceRequest request);
  void set_request(JobIndex index, std::int32_t request);
  // Whether a job with the request could run now.
  bool has_room(std::int32_t request);
  const NodePool& node_pool() const { return nodes_->pool; }
  // In place of the flat pool, before any job is submitted; its jobs ask for nodes.
  void use_bgp(BgpMachine machine);
  bool has_room_on_bgp(Processors nodes) const;
  const BgpPool& bgp_pool() const { return *bgp_; }
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
  JobIndex submit(const Job& job);
  // On a Blue Gene, on this bgp_partition, which must be free; else on one chosen as for a start.
  JobIndex add_running(const Job& job, std::optional<std::size_t> bgp_partition = std::nullopt);
  // On a machine of nodes, with these.
  JobIndex add_running_on(const Job& job, std::int32_t slurm_partition, const Shares& shares);
  // Takes over the times, the limit and the priority of `changed`.
  void update(JobIndex index, const Job& changed);
  void cancel(JobIndex index);

  // Every event before `until`; at `until` itself only as far as jobs that are still to be
  // submitted at `until` can't matter: under kPerTimestep all but the pass, under kPerEvent nothing.
  void advance(Seconds until);
  // All that is left to do at the clock's time.
  void settle() { run(now_, false); }
  // To the last event.
  void finish() { run(kNever, false); }
  // Until every job marked as awaited has started; false if one never does.
  bool finish_awaited();

  // Begun from a snapshot: when the ends of overstaying jobs were last worked out, before any
  // running job is added; and after all jobs, how the last pass left the queue. Without a pass due
  // nothing is done until something happens.
  void resume_estimates(Seconds at) { availability_.reestimate(at); }
  void resume_queue(const PlanNotes& notes, bool pass_due);
  Seconds estimated_at() const { return availability_.estimated_at(); }
  std::optional<PlanNotes> plan_notes() const;
  // In which the queue is now.
  Order order() const { return planner_ ? planner_->order() : policy_.order; }
  const SwitchingCounters* switching_counters() const {
    return planner_ ? planner_->switching_counters() : nullptr;
  }
  int started_under(JobIndex index) const { return planner_ ? planner_->started_under(index) : -1; }
  // The planned start that a planner keeps; planned_start() also works one out for EASY's head job.
  Seconds kept_start(JobIndex index) const {
    return planner_ ? planner_->planned_start(index) : kNever;
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
  Seconds first_planned_start(JobIndex index) const {
    if (nodes_) return nodes_->first_planned_start(index);
    return planner_ ? planner_->first_planned_start(index) : kNever;
  }
  // Under slack-based backfilling; before any job is submitted.
  void describe_for_slack(std::vector<SlackJob> jobs);
  Seconds latest_start(JobIndex index) const;
  std::vector<JobIndex> queue() const;
  std::vector<JobIndex> running() const;
  // Whose submission is still to come.
  std::vector<JobIndex> submitted() const;
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

  // A pending job in an order that only holds for one pass.
  struct Candidate {
    double score = 0;      // greater first
    std::int64_t key = 0;  // smaller first
    Pending entry;
    // For a heap whose top comes first.
    friend bool operator<(const Candidate& a, const Candidate& b) {
      if (a.score != b.score) return a.score < b.score;
      return a.key != b.key ? a.key > b.key : a.entry.rank > b.entry.rank;
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
  void kill(JobIndex index);
  bool complete_expected();
  void correct_expired();
  void arrive_one();
  void enter_queue(JobIndex index);
  void add_submission(JobIndex index);
  void release(const std::vector<JobIndex>& jobs);
  void let_in();
  void start(JobIndex index, StartedBy how);
  void set_end(JobIndex index);
  void changed();
  // Whether jobs may run beyond their time limits.
  bool lets_overrun() const { return policy_.slack && policy_.slack->overruns != Overruns::kKill; }
  bool awaited_have_started() const { return until_awaited_ && awaited_ == 0; }

  // pass.cpp: starting jobs in queue order until one does not fit
  void pass();
  void pass_in_order(bool full);
  void pass_by_score();
  void score_queue();
  void pass_by_plan();
  bool guard(JobIndex head);
  bool has_own_order(bool on_requested) const;

  // plain_easy.cpp: an EASY on requested times that runs beside, for the guard
  struct Lateness {
    Seconds late = 0;
    Seconds bound = 0;
  };
  Lateness lateness(JobIndex head);
  Job job_beside(const Job& job) const;
  void started_beside(JobIndex index);
  void ended_beside(JobIndex index);
  void update_beside(JobIndex index);
  void cancel_beside(JobIndex index);
  void tell_runtime(JobIndex index, Seconds actual_runtime);

  // outside_pass.cpp: asking a policy from outside
  OutsidePolicy& outside() const;
  template <class Ask>
  auto ask_outside(Ask ask);
  void score_outside(std::vector<Candidate>& queue, OutsideNews&& news) const;
  void score_queue_outside();
  std::vector<Pending> sort_queue_for_plan();
  std::vector<Pending> queue_in_order();
  void backfill_outside(bool on_requested);

  // easy.cpp: what may start before the head job
  void backfill_blocks(const Queue::Blocks& blocks, JobIndex head, bool on_requested);
  void backfill_candidates(bool on_requested);
  bool may_start(JobIndex head, Processors processors, Seconds time, bool on_requested);
  bool none_may_start(const Least& least, Processors free, bool on_requested) const;
  StartedBy reserve_extra(Processors processors, Seconds time);
  void add_candidate(JobIndex head, const Pending& entry, double score, bool on_requested);
  void start_before_head(const Pending& entry, StartedBy how, bool on_requested);
  Seconds backfill_time(const Pending& entry, bool on_requested) const;

  // bgp_pass.cpp: the same on a Blue Gene
  void pass_on_bgp();
  void backfill_on_bgp(const Drain& drain, bool on_requested);
  std::optional<std::pair<std::size_t, StartedBy>> place_beside(const Drain& drain,
                                                                const Pending& entry,
                                                                bool on_requested) const;
  Drain drain_for(JobIndex head, bool on_requested) const;
  void start_on_bgp(JobIndex index, StartedBy how, std::size_t partition);
  void resume_on_bgp(JobIndex index, std::optional<std::size_t> partition);

  // node_pass.cpp: the same on a machine of nodes
  void pass_on_nodes();
  void resume_on_nodes(JobIndex index);
  std::optional<PlanNotes> node_plan_notes() const;
  void resume_plans_on_nodes(const PlanNotes& notes, Seconds reached);
  void drop_reservation(JobIndex index);
  Seconds next_moment_on_nodes() const;
  Seconds planned_start_on_nodes(JobIndex index) const;
  void release_nodes(const NodeReservation& held);
  void reached_on_nodes();
  std::optional<Shares> place_on_nodes(const ResourceRequest& request,
                                       const PartitionChoice& choice, Seconds duration,
                                       Seconds time_limit);
  bool head_only() const;
  QueuePlace queue_place(JobIndex index) const;
  std::int64_t reservation_depth() const;
  bool arrived_come_last() const;
  bool comes_behind(JobIndex index) const;
  void note_waiting(JobIndex index, const QueuePlace& place);
  Seconds node_time(JobIndex index) const;
  void set_node_ends(bool by_requested);
  using NodeQueue = std::vector<std::pair<QueuePlace, JobIndex>>;
  NodeQueue node_queue(bool full) const;
  void plan_first_on_nodes(const NodeQueue& queue);
  bool never_fits(JobIndex index) const;
  bool start_on_nodes(JobIndex index);
  void reserve_deferred();
  void reserve_nodes(JobIndex index, const QueuePlace& place);
  NodeReservation planned_on_nodes(JobIndex index, Seconds from, Seconds before);
  void guard_on_nodes(JobIndex head);

  // node_plans.cpp: families on nodes that plan every job
  void plan_all_on_nodes(const NodeQueue& queue);
  void plan_conservatively_on_nodes(const NodeQueue& arrived);
  void reinsert_on_nodes(std::vector<NodeReservation> jobs);
  void compress_on_nodes();
  void promise_nodes(JobIndex index);
  void start_planned(const NodeReservation& held, StartedBy how);

  // first_fit.cpp
  void first_fit_queue();
  void first_fit_candidates();

  std::vector<Pending> sorted_by_score(OutsideNews&& news) const;
  Job& job(JobIndex index) { return jobs_[static_cast<std::size_t>(index)]; }
  const Job& job(JobIndex index) const { return jobs_[static_cast<std::size_t>(index)]; }

  Policy policy_;
  std::vector<Job> jobs_;
  Availability availability_;
  Queue queue_;
  std::unique_ptr<Planner> planner_;  // where more than the head job is planned
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
  // While false nothing has changed for the jobs that the last pass left waiting: only arrived_
  // needs testing, and plan_ (if valid) still holds.
  bool full_pass_ = true;
  std::vector<JobIndex> arrived_;
  bool plan_valid_ = false;
  Plan plan_;
  std::int64_t active_guards_ = 0;
  std::unique_ptr<Engine> beside_;  // where the guard goes by a plain EASY
  bool is_beside_ = false;          // is one itself
  Lateness easing_;                 // the head job's in this pass, under a gradual guard
  Seconds longest_wait_ = 0;        // of those that have started
  // At most one of the two; none: a flat pool.
  std::unique_ptr<NodeScheduling> nodes_;
  std::unique_ptr<BgpPool> bgp_;
  std::unique_ptr<Admission> admission_;
  std::int64_t awaited_ = 0;  // jobs that are to start yet
  bool until_awaited_ = false;

  std::vector<Candidate> scored_;
  std::vector<Candidate> candidates_;
  std::vector<std::pair<Pending, StartedBy>> picked_;
  Starts starts_planned_;
  std::vector<JobIndex> started_;
  std::vector<JobIndex> finished_;
  std::unique_ptr<OutsidePolicy> outside_;
  OutsideNews news_;
  std::function<bool()> interrupted_;
  unsigned since_clock_ = 0;  // turns of the event loop since the clock on the wall was read
  std::chrono::steady_clock::time_point asked_at_;
};

}  // namespace foretime
