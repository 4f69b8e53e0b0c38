#include "engine/engine.hpp"

#include <algorithm>

#include "engine/head_planner.hpp"
#include "planning/profile_planner.hpp"
#include "planning/slack/slack.hpp"

namespace foretime {
namespace {

// Whether a change leaves a running job's end, real and expected, as it is.
bool same_plan(const Job& a, const Job& b) {
  return a.requested == b.requested && a.drain_time == b.drain_time &&
         a.time_limit == b.time_limit && a.actual_runtime == b.actual_runtime;
}

// Whether a scheduler sees the same of both.
bool same_request(const Job& a, const Job& b) {
  return a.requested == b.requested && a.queue_time == b.queue_time &&
         a.backfill_time == b.backfill_time && a.drain_time == b.drain_time &&
         a.time_limit == b.time_limit && a.priority == b.priority;
}

}  // namespace

Engine::Engine(Processors machine, const Policy& policy, Seconds now,
               std::vector<AdvanceReservation> reservations)
    : policy_(policy),
      availability_(machine, policy, jobs_),
      queue_(policy.switching ? Order::kFcfs : policy.order, policy.backfill),
      now_(now) {
  availability_.reestimate(now);
  if (needs_planner(policy_, !reservations.empty())) {
    planner_ = make_planner(std::make_unique<PoolProfile>(machine, now, jobs_), policy_, jobs_,
                            availability_, std::move(reservations));
  } else {
    planner_ = std::make_unique<HeadPlanner>(scheduling(), machine);
  }
}

Scheduling Engine::scheduling() {
  return {policy_,    jobs_,          availability_,
          queue_,     now_,           arrived_,
          full_pass_, active_guards_, counters_.guard_activations,
          *this};
}

void Engine::use_nodes(const NodeMachine& machine) { use_nodes(NodeScheduling(machine, now_)); }

void Engine::use_nodes(NodeScheduling nodes) {
  planner_ = make_node_planner(scheduling(), std::move(nodes));
}

NodePlanner& Engine::node_planner() { return dynamic_cast<NodePlanner&>(*planner_); }

const NodeScheduling& Engine::nodes() const {
  return dynamic_cast<const NodePlanner&>(*planner_).nodes();
}

OnNodes& Engine::on_nodes() { return dynamic_cast<OnNodes&>(*planner_); }

const OnNodes& Engine::on_nodes() const { return dynamic_cast<const OnNodes&>(*planner_); }

void Engine::use_slurm(SlurmState state) {
  planner_ = std::make_unique<SlurmPlanner>(scheduling(), std::move(state));
}

SlurmPlanner& Engine::slurm_planner() { return dynamic_cast<SlurmPlanner&>(*planner_); }

const SlurmPlanner& Engine::slurm_planner() const {
  return dynamic_cast<const SlurmPlanner&>(*planner_);
}

void Engine::use_pbs(PbsState state) {
  planner_ = std::make_unique<PbsPlanner>(scheduling(), std::move(state));
}

PbsPlanner& Engine::pbs_planner() { return dynamic_cast<PbsPlanner&>(*planner_); }

const PbsPlanner& Engine::pbs_planner() const { return dynamic_cast<const PbsPlanner&>(*planner_); }

void Engine::use_bgp(BgpMachine machine) {
  planner_ = std::make_unique<BgpPlanner>(scheduling(), std::move(machine));
}

BgpPlanner& Engine::bgp_planner() { return dynamic_cast<BgpPlanner&>(*planner_); }

const BgpPool& Engine::bgp_pool() const {
  return dynamic_cast<const BgpPlanner&>(*planner_).pool();
}

void Engine::reserve(std::size_t jobs) {
  jobs_.reserve(jobs);
  submissions_.reserve(jobs);
}

JobIndex Engine::submit(const Job& submitted) {
  const auto index = static_cast<JobIndex>(jobs_.size());
  jobs_.push_back(submitted);
  if (submitted.awaited) ++awaited_;
  planner_->submitted(index);
  if (!admission_ || admission_->is_released(index)) add_submission(index);
  return index;
}

// To those by time, then index.
void Engine::add_submission(JobIndex index) {
  if (admission_) job(index).submit = std::max(job(index).submit, admission_->released_at(index));
  const Seconds submit = job(index).submit;
  const auto later = [this, submit](JobIndex added, JobIndex other) {
    return submit != job(other).submit ? submit < job(other).submit : added < other;
  };
  const auto place =
      std::upper_bound(submissions_.begin() + static_cast<std::ptrdiff_t>(next_submission_),
                       submissions_.end(), index, later);
  submissions_.insert(place, index);
}

// Jobs for which all has happened that they waited for. Those that are not known yet see to it when
// they are submitted.
void Engine::release(const std::vector<JobIndex>& jobs) {
  for (const JobIndex index : jobs) {
    if (static_cast<std::size_t>(index) < jobs_.size()) add_submission(index);
  }
}

JobIndex Engine::add_running(const Job& started) {
  const auto index = static_cast<JobIndex>(jobs_.size());
  jobs_.push_back(started);
  Job& added = job(index);
  added.rank = next_rank_++;
  added.state = State::kRunning;
  added.started_by = StartedBy::kHead;
  availability_.resume(index, now_);
  planner_->runs_already(index, now_);
  set_end(index);
  if (outside_) news_.started.push_back(index);
  if (admission_) {
    admission_->runs(index, started.processors);
    release(admission_->started(index, started.start));
  }
  changed();
  return index;
}

void Engine::update(JobIndex index, const Job& to) {
  Job& updated = job(index);
  if (updated.actual_runtime != to.actual_runtime && same_request(updated, to)) {
    // What a job takes in fact no scheduler sees, so none looks at the queue for it.
    updated.actual_runtime = to.actual_runtime;
    if (updated.state == State::kRunning) set_end(index);
    return;
  }
  const auto take_over = [&] {
    updated.requested = to.requested;
    updated.queue_time = to.queue_time;
    updated.backfill_time = to.backfill_time;
    updated.drain_time = to.drain_time;
    updated.time_limit = to.time_limit;
    updated.actual_runtime = to.actual_runtime;
    updated.priority = to.priority;
    planner_->updated(index);
  };
  if (updated.state == State::kPending) {
    queue_.erase(index, updated);
    take_over();
    queue_.insert(index, updated);
    planner_->changed_waiting(index);
    changed();
  } else if (updated.state == State::kRunning && !same_plan(updated, to)) {
    availability_.finish(index);
    take_over();
    availability_.reestimate(now_);
    availability_.resume(index, now_);
    planner_->changed_running(index, now_);
    set_end(index);
    changed();
  } else {
    take_over();
  }
}

void Engine::cancel(JobIndex index) {
  Job& cancelled = job(index);
  planner_->withdrawn(index);
  if (cancelled.state == State::kPending) {
    queue_.erase(index, cancelled);
    if (cancelled.guarded) --active_guards_;
    std::erase(arrived_, index);
    planner_->cancelled(index);
    changed();
  }
  cancelled.state = State::kCancelled;
}

void Engine::advance(Seconds until) {
  run(until, true);
  now_ = std::max(now_, until);
}

bool Engine::finish_awaited(Seconds until) {
  until_awaited_ = true;
  run(until, false);
  until_awaited_ = false;
  return awaited_ == 0;
}

void Engine::resume_queue(const PlanNotes& notes, bool pass_due) {
  while (arrives(now_)) arrive_one();
  let_in();
  full_pass_ = true;
  pass_pending_ = pass_due && passes_at(now_);
  const Seconds reached = pass_due ? now_ - 1 : now_;
  planner_->resume(notes, reached);
}

std::optional<PlanNotes> Engine::plan_notes() const { return planner_->notes(); }

Seconds Engine::next_event_time() { return pass_pending_ ? now_ : next_change(); }

// The queue in an order that only holds now.
std::vector<Pending> Engine::sorted_by_score(OutsideNews&& news) const {
  std::vector<Pending> entries;
  entries.reserve(queue_.size());
  if (keeps_score_order()) {
    for (const ScoreOrder::Place& place : score_order_.sorted(policy_.order, jobs_, now_)) {
      entries.push_back(queue_.entry(place.job, job(place.job)));
    }
    return entries;
  }
  std::vector<Candidate> ordered;
  for (const auto& block : queue_.blocks()) {
    for (const Pending& entry : block) {
      const double score =
          is_time_dependent(order()) ? queue_score(order(), job(entry.job), now_) : 0.0;
      ordered.push_back({score, queue_key(order(), job(entry.job)), entry});
    }
  }
  if (policy_.order == Order::kOutside && !ordered.empty()) {
    score_outside(ordered, std::move(news));
  }
  std::sort(ordered.rbegin(), ordered.rend());
  for (const Candidate& candidate : ordered) entries.push_back(candidate.entry);
  return entries;
}

std::vector<JobIndex> Engine::queue() const {
  if (auto own = planner_->own_queue()) return *own;
  std::vector<JobIndex> jobs;
  for (const Pending& entry : sorted_by_score({})) jobs.push_back(entry.job);
  return jobs;
}

std::vector<JobIndex> Engine::running() const {
  std::vector<JobIndex> jobs = availability_.running();
  std::sort(jobs.begin(), jobs.end());
  return jobs;
}

std::vector<JobIndex> Engine::submitted() const {
  const auto first = submissions_.begin() + static_cast<std::ptrdiff_t>(next_submission_);
  std::vector<JobIndex> jobs(first, submissions_.end());
  std::erase_if(jobs, [this](JobIndex index) { return job(index).state == State::kCancelled; });
  return jobs;
}

void Engine::run(Seconds until, bool hold) {
  if (policy_.event_order == EventOrder::kPerTimestep) {
    run_timesteps(until, hold);
  } else {
    run_events(until, hold);
  }
}

// A pass over a deep queue may take milliseconds, so the clock is read often; what is asked may
// have to wait for the interpreter's lock, so it is asked rarely.
void Engine::check_interrupted() {
  if (!interrupted_ || ++since_clock_ < 64) return;
  since_clock_ = 0;
  const auto now = std::chrono::steady_clock::now();
  if (now - asked_at_ < std::chrono::milliseconds(100)) return;
  asked_at_ = now;
  if (interrupted_()) throw Interrupted();
}

void Engine::pass() {
  ++counters_.passes;
  pass_pending_ = false;
  pass_failed_ = false;
  availability_.reestimate(now_);
  if (!queue_.empty() || planner_->lets_overrun() || planner_->looks_now(now_)) {
    planner_->schedule(now_, queue_, *this);
  }
  arrived_.clear();
}

// At equal times: completions, then estimate expiries, then submissions, then one pass; ties by job
// order in the log.
void Engine::run_timesteps(Seconds until, bool hold) {
  while (!awaited_have_started()) {
    check_interrupted();
    const Seconds next = next_change();
    if (pass_pending_ && next > now_) {
      if (hold && now_ >= until) return;
      pass();
      continue;
    }
    if (next == kNever || next > until) return;
    now_ = next;
    planner_->reached(now_);
    while (completes(now_)) complete_one();
    correct_expired();
    while (arrives(now_)) arrive_one();
    let_in();
    pass_pending_ = passes_at(now_);
  }
}

// At equal times: completions that were expected for this moment and estimate expiries, without a
// pass of their own; then submissions, then the other completions, with a pass after each.
void Engine::run_events(Seconds until, bool hold) {
  while (!awaited_have_started()) {
    check_interrupted();
    if (pass_failed_) pass();
    const Seconds next = next_change();
    if (pass_pending_ && next > now_) {
      if (hold && now_ >= until) return;
      pass();
      continue;
    }
    if (next == kNever || next > until || (hold && next == until)) return;
    const bool is_planned = next_moment() == next;
    now_ = next;
    planner_->reached(now_);
    if (complete_expected()) pass_pending_ = true;
    correct_expired();
    if (arrives(now_)) {
      arrive_one();
      while (arrives(now_ - 1)) arrive_one();  // waiting since before the clock began
      let_in();
      pass();
    } else if (completes(now_)) {
      complete_one();
      let_in();
      pass();
    } else {
      let_in();
      if (is_planned) pass_pending_ = true;
    }
  }
}

// Jobs that end at the very moment at which they were expected to; whether there were any.
bool Engine::complete_expected() {
  std::vector<Completion> unexpected;
  bool any = false;
  while (completes(now_)) {
    const Completion next = completions_.top();
    if (availability_.expected_end(next.job) == now_) {
      complete_one();
      any = true;
    } else {
      completions_.pop();
      unexpected.push_back(next);
    }
  }
  for (const Completion& completion : unexpected) completions_.push(completion);
  return any;
}

void Engine::correct_expired() {
  const std::vector<JobIndex>& expired = availability_.correct_all(now_);
  if (expired.empty()) return;
  full_pass_ = true;
  counters_.expiries += static_cast<std::int64_t>(expired.size());
  for (const JobIndex index : expired) planner_->changed_running(index, now_);
}

// A moment for which something is planned only counts while somebody waits.
Seconds Engine::next_moment() const {
  if (queue_.empty()) return planner_->next_look();
  if (policy_.interval) {
    const Seconds since = now_ % *policy_.interval;
    return now_ - since + (since < 0 ? 0 : *policy_.interval);
  }
  return planner_->next_moment();
}

// With an interval, passes come at its multiples.
bool Engine::passes_at(Seconds time) const {
  return !policy_.interval || time % *policy_.interval == 0;
}

Seconds Engine::planned_start(JobIndex index) const {
  if (job(index).state != State::kPending) return kNever;
  if (planner_->plans_head_alone()) {
    const JobIndex head = is_time_dependent(policy_.order) ? queue().front() : queue_.front().job;
    if (index != head) return kNever;
  }
  // Who could not start when planned, as an overdue job still runs, is planned for now.
  return std::max(now_, planner_->planned_start(index));
}

Seconds Engine::planned_end(JobIndex index, bool on_requested) const {
  const Seconds end = on_requested ? job(index).hard_end() : availability_.expected_end(index);
  return std::max(now_, end);
}

void Engine::watch_heads() { dynamic_cast<HeadPlanner&>(*planner_).watch_heads(); }

void Engine::tell_runtime(JobIndex index, Seconds actual_runtime) {
  Job& told = job(index);
  if (told.state == State::kFinished || told.state == State::kCancelled) return;
  told.actual_runtime = actual_runtime;
  if (told.state == State::kRunning) set_end(index);
}

void Engine::describe_for_slack(std::vector<SlackJob> jobs) {
  dynamic_cast<Slack&>(*planner_).describe(std::move(jobs));
}

Seconds Engine::latest_start(JobIndex index) const {
  return dynamic_cast<const Slack&>(*planner_).latest_start(index);
}

Seconds Engine::next_change() {
  while (next_submission_ < submissions_.size() &&
         job(submissions_[next_submission_]).state == State::kCancelled) {
    ++next_submission_;
  }
  while (!completions_.empty()) {
    const Completion& next = completions_.top();
    if (job(next.job).state == State::kRunning && job(next.job).end == next.end) break;
    completions_.pop();
  }
  Seconds next = std::min(availability_.next_expiry(), next_moment());
  if (!completions_.empty()) next = std::min(next, completions_.top().end);
  if (next_submission_ < submissions_.size()) {
    // One that was pending before the clock began arrives now.
    next = std::min(next, std::max(now_, job(submissions_[next_submission_]).submit));
  }
  return next;
}

bool Engine::completes(Seconds now) {
  while (!completions_.empty() && completions_.top().end <= now) {
    const Completion& next = completions_.top();
    if (job(next.job).state == State::kRunning && job(next.job).end == next.end) return true;
    completions_.pop();
  }
  return false;
}

bool Engine::arrives(Seconds now) const {
  return next_submission_ < submissions_.size() &&
         job(submissions_[next_submission_]).submit <= now;
}

void Engine::complete_one() {
  const JobIndex index = completions_.top().job;
  completions_.pop();
  complete(index);
}

void Engine::kill(JobIndex index) {
  job(index).end = now_;
  complete(index);
}

void Engine::set_time_limit(JobIndex index, Seconds time_limit) {
  job(index).time_limit = time_limit;
  set_end(index);
}

void Engine::complete(JobIndex index) {
  job(index).state = State::kFinished;
  availability_.finish(index);
  planner_->finished(index, now_);
  finished_.push_back(index);
  if (outside_) news_.finished.push_back(index);
  full_pass_ = true;
  ++counters_.completions;
  if (admission_) {
    if (admission_->is_limited(index)) admission_->leaves(index, job(index).processors);
    release(admission_->ended(index, now_));
  }
}

void Engine::arrive_one() {
  const JobIndex index = submissions_[next_submission_++];
  Job& arriving = job(index);
  if (arriving.state == State::kCancelled) return;
  arriving.rank = next_rank_++;
  if (admission_ && admission_->is_limited(index)) {
    admission_->arrives(index, arriving.priority, arriving.rank, arriving.processors);
  } else {
    enter_queue(index);
  }
}

void Engine::let_in() {
  if (!admission_) return;
  for (const JobIndex index : admission_->let_in()) enter_queue(index);
}

void Engine::enter_queue(JobIndex index) {
  Job& arriving = job(index);
  arriving.state = State::kPending;
  if (arriving.guarded) ++active_guards_;
  queue_.insert(index, arriving);
  if (keeps_score_order()) score_order_.entered(index);
  arrived_.push_back(index);
  planner_->arrived(index);
  if (queue_.front().job == index) full_pass_ = true;
  ++counters_.submissions;
  counters_.deepest_queue =
      std::max(counters_.deepest_queue, static_cast<std::int64_t>(queue_.size()));
}

void Engine::start(JobIndex index, StartedBy how) {
  Job& starting = job(index);
  queue_.erase(index, starting);
  if (starting.guarded) {
    --active_guards_;
    full_pass_ = true;
  }
  starting.start = now_;
  starting.state = State::kRunning;
  starting.started_by = how;
  longest_wait_ = std::max(longest_wait_, now_ - starting.submit);
  if (starting.awaited) --awaited_;
  if (admission_) release(admission_->started(index, now_));
  availability_.start(index);
  planner_->started(index, now_);
  set_end(index);
  started_.push_back(index);
  if (outside_) news_.started.push_back(index);
}

// A job whose limit is cut below what it has already run ends now. Jobs that end together do so in
// the order of the log, or under kPerEvent in that in which they started.
void Engine::set_end(JobIndex index) {
  Job& running = job(index);
  const Seconds runs = planner_->lets_overrun()
                           ? running.actual_runtime
                           : std::min(running.actual_runtime, running.time_limit);
  running.end = std::max(now_, running.start + runs);
  const bool per_event = policy_.event_order == EventOrder::kPerEvent;
  running.tie = per_event ? starts_++ : index;
  completions_.push({running.end, running.tie, index});
}

void Engine::changed() {
  planner_->changed_from_outside();
  full_pass_ = true;
  pass_pending_ = passes_at(now_);
}

}  // namespace foretime
