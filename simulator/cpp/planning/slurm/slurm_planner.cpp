#include "planning/slurm/slurm_planner.hpp"

#include <algorithm>
#include <unordered_set>

namespace foretime {
namespace {

// Slurm keeps time limits in minutes.
Seconds whole_minutes(Seconds time) { return std::max<Seconds>((time + 59) / 60, 1) * 60; }

constexpr Seconds kLooks = 30;  // PERIODIC_TIMEOUT of slurmctld.h

}  // namespace

// What Slurm holds of a job's times: with soft limits the scheduled time is its least time,
// otherwise it is the time limit. Says whether they are others than before.
bool SlurmPlanner::take_limits(JobIndex index) {
  const Job& of = job(index);
  SlurmRecord& record = slurm().record(index);
  const Seconds scheduled = of.state == State::kRunning ? of.drain_time : of.backfill_time;
  Seconds limit = whole_minutes(of.requested);
  Seconds least = slurm().facts(index).time_min;
  if (least > 0) least = whole_minutes(least);
  if (!slurm().site().soft_limits()) {
    limit = whole_minutes(std::min(scheduled, of.requested));
  } else if (scheduled < of.requested) {
    least = whole_minutes(scheduled);
  }
  const std::pair before = std::exchange(record.given, {limit, least});
  if (before == record.given) return false;
  slurm().change_limits(index, limit, least);
  return true;
}

void SlurmPlanner::look_again() {
  state_.main_may_start = state_.full_main_may_start = state_.backfill_may_start = true;
}

void SlurmPlanner::may_start_again(Seconds now) {
  look_again();
  state_.last_event = now;
}

// OnNodes

bool SlurmPlanner::has_room(std::int32_t request) {
  NodeChooser& chooser = slurm().chooser();
  for (const Wish& wish : slurm().requests().wishes(request)) {
    chooser.begin(wish, *wish.nodes);
    if (chooser.choose()) return true;
  }
  return false;
}

std::int32_t SlurmPlanner::slurm_partition_of(JobIndex index) const {
  return state_.controller.record(index).slurm_partition;
}

std::vector<NodeRow> SlurmPlanner::rows_of(JobIndex index) const {
  return state_.controller.record(index).rows;
}

// Events

void SlurmPlanner::submitted(JobIndex index) {
  slurm().make_room(static_cast<std::size_t>(index) + 1);
}

// It is taken up in the pass that follows, unless it waits since before a forward run began.
void SlurmPlanner::arrived(JobIndex index) {
  const SlurmRecord& record = slurm().record(index);
  if (record.waits) {
    take_limits(index);
  } else if (!record.refused) {
    coming_.push_back(index);
  }
}

// `job_signal` (job_mgr.c): backfill looks again, and the main loop when it runs anyway.
void SlurmPlanner::cancelled(JobIndex index) {
  if (std::erase(coming_, index) != 0) return;
  slurm().withdraw(index, now_);
  state_.clock.changed(now_);
  may_start_again(now_);
}

void SlurmPlanner::changed_waiting(JobIndex index) {
  take_limits(index);
  slurm().look_for_keepers(index);
  told_of_change(now_);
}

void SlurmPlanner::change(JobIndex index, SlurmJob to) {
  slurm().change(index, std::move(to), now_);
  if (!slurm().record(index).waits) return;
  slurm().look_for_keepers(index);
  told_of_change(now_);
}

// `_slurm_rpc_update_job`, proc_req.c.
void SlurmPlanner::told_of_change(Seconds now) {
  state_.clock.changed(now);
  state_.clock.queue_main(now);
  may_start_again(now);
}

void SlurmPlanner::started(JobIndex index, Seconds now) {
  slurm().started(index, now);
  const SlurmRecord& record = slurm().record(index);
  Job& of = job(index);
  of.time_limit += slurm().partition(record.slurm_partition).over_time_limit;
  state_.clock.changed(now);
  if (!records_) return;
  for (const NodeRow& row : record.rows) {
    for (std::int64_t node = row.node; node < row.node + row.nodes; ++node) {
      rows_.insert(rows_.end(),
                   {index, node, row.of_each.cpus, row.of_each.memory, row.of_each.gpus});
    }
  }
}

void SlurmPlanner::place(JobIndex index, std::int32_t slurm_partition, bool whole,
                         std::vector<NodeRow> rows) {
  slurm().make_room(static_cast<std::size_t>(index) + 1);
  take_limits(index);
  slurm().record(index).whole = whole;
  slurm().runs(index, slurm_partition, std::move(rows), job(index).start);
}

void SlurmPlanner::runs_already(JobIndex index, Seconds /*now*/) {
  if (slurm().has_room_for(index) && slurm().record(index).slurm_partition >= 0) return;
  slurm().ran_before();
  if (static_cast<std::size_t>(index) < placed_.size() &&
      placed_[static_cast<std::size_t>(index)].slurm_partition >= 0) {
    Placed& placed = placed_[static_cast<std::size_t>(index)];
    // Nobody says what it asked for. Whoever has all of several CPUs is taken to have wanted them.
    const NodeTable& table = slurm().table();
    const bool whole =
        std::all_of(placed.rows.begin(), placed.rows.end(), [&table](const NodeRow& row) {
          const Resources& node = table.group(table.group_of(row.node)).node;
          return node.cpus > 1 && row.of_each == node;
        });
    place(index, placed.slurm_partition, whole, std::move(placed.rows));
    return;
  }
  slurm().make_room(static_cast<std::size_t>(index) + 1);
  NodeChooser& chooser = slurm().chooser();
  for (const Wish& wish : slurm().wishes(index)) {
    chooser.begin(wish, *wish.nodes);
    if (auto rows = chooser.choose()) {
      place(index, wish.slurm_partition, wish.whole, std::move(*rows));
      return;
    }
  }
}

void SlurmPlanner::has_already(JobIndex index, std::int32_t slurm_partition,
                               std::vector<NodeRow> rows) {
  if (static_cast<std::size_t>(index) >= placed_.size()) {
    placed_.resize(static_cast<std::size_t>(index) + 1);
  }
  placed_[static_cast<std::size_t>(index)] = {slurm_partition, std::move(rows)};
}

// Also told of where the engine corrects an estimate, of which Slurm knows nothing.
void SlurmPlanner::changed_running(JobIndex index, Seconds now) {
  if (!take_limits(index)) return;
  state_.clock.changed(now);
  may_start_again(now);
}

void SlurmPlanner::finished(JobIndex index, Seconds now) {
  slurm().finished(index, now);
  state_.clock.changed(now);
  state_.clock.ended(now);
  may_start_again(now);
}

void SlurmPlanner::run_coarsely() {
  state_.coarse = true;
  state_.clock.coarsen(now_);
}

void SlurmPlanner::look_at_once() {
  state_.clock.queue_main(now_);
  state_.clock.changed(now_);
}

// Those that wait since before are in the queue already.
void SlurmPlanner::resume(const PlanNotes& /*notes*/, Seconds reached) {
  for (const JobIndex index : coming_) {
    if (job(index).submit <= reached) take_up(index, now_);
  }
  std::erase_if(coming_, [&](JobIndex index) { return job(index).submit <= reached; });
  state_.begins_at = slurm().next_begin(now_);
  reached_ = reached;
}

// Time

// A second begins.
void SlurmPlanner::reached(Seconds now) {
  if (open_step_ != kNever && open_step_ < now) end_step(open_step_, nullptr);
  open_step_ = kNever;
  catch_up(now);
  reached_ = now;
  if (state_.backfill_changes_at <= now) {
    state_.backfill_may_start = true;
    state_.backfill_changes_at = kNever;
  }
  if (state_.main_changes_at <= now) {
    state_.main_may_start = state_.full_main_may_start = true;
    state_.main_changes_at = kNever;
  }
  if (std::min(state_.begins_at, state_.next_moment) <= now) may_start_again(now);
  if (state_.clock.wakes_with_seconds() && now > state_.woken_at) wake(now, &pass_);
  state_.woken_at = now;
  open_step_ = now;
}

// Runs of the loops before a time, of which it is known that they start nobody.
void SlurmPlanner::catch_up(Seconds until) {
  SlurmClock& clock = state_.clock;
  while (true) {
    const Seconds moment = std::min(state_.next_moment, slurm().rules().next_tick());
    if (slurm().waiting() == 0) clock.skip_full_runs(std::min(until, moment));
    const Seconds next =
        std::max(std::min({clock.next_main(), clock.next_backfill(), moment}), state_.caught_up);
    if (next >= until) break;
    state_.caught_up = next;
    if (clock.wakes_with_seconds()) wake(next, nullptr);
    end_step(next, nullptr);
  }
  state_.caught_up = std::max(state_.caught_up, until);
  state_.looked = std::max(state_.looked, until - 1);
}

// When jobs are looked at whose minutes may be used up; kNever: there are none.
Seconds SlurmPlanner::look_at() const {
  if (!state_.controller.rules().limits().may_kill()) return kNever;
  return state_.looked + kLooks - (state_.looked - state_.began) % kLooks;
}

// `job_time_limit` (job_mgr.c), which the background thread calls before it asks for the main loop.
// Each end is charged before the next job is looked at.
void SlurmPlanner::end_used_up(Seconds now, Pass* pass) {
  if (pass == nullptr || look_at() > now) return;
  state_.looked = now;
  for (const JobIndex index : slurm().rules().limits().may_be_killed()) {
    if (!slurm().is_killed(index, now)) continue;
    job(index).used_up = true;
    pass->kill(index);
  }
}

void SlurmPlanner::wake(Seconds now, Pass* pass) {
  end_used_up(now, pass);
  state_.clock.wake(now);
  if (state_.clock.main_is_due(now)) run_main(now, pass);
}

// The decay thread looks after jobs have ended, before others are submitted.
void SlurmPlanner::tick(Seconds now) {
  if (slurm().rules().next_tick() > now) return;
  if (slurm().tick(now)) look_again();
  state_.clock.changed(now);
}

// What comes last in a second.
void SlurmPlanner::end_step(Seconds now, Pass* pass) {
  tick(now);
  pass_moments(now);
  if (!state_.clock.wakes_with_seconds()) wake(now, pass);
  if (state_.clock.main_is_due(now)) run_main(now, pass);
  if (state_.clock.next_backfill() <= now) run_backfill(now, pass);
}

// Starts and ends of reservations.
void SlurmPlanner::pass_moments(Seconds now) {
  if (state_.next_moment > now) return;
  state_.next_moment = kNever;
  for (const SlurmReservation& reservation : slurm().site().reservations) {
    for (const Seconds moment : {reservation.start, reservation.end}) {
      if (moment > now) state_.next_moment = std::min(state_.next_moment, moment);
    }
  }
  state_.clock.changed(now);
  state_.clock.queue_main(now);
  may_start_again(now);
}

Seconds SlurmPlanner::next_moment() const {
  const SlurmState& state = state_;
  Seconds next = std::min({state.next_moment, state.backfill_changes_at, state.main_changes_at});
  if (state.main_may_start || state.full_main_may_start) {
    next = std::min(next, state.clock.next_main());
  }
  if (state.backfill_may_start) {
    const Seconds backfill = state.clock.next_backfill();
    if (backfill != kNever) {
      next = std::min(next, backfill);
    } else if (state.main_met_blocked) {
      next = std::min(next, state.clock.next_main());
    }
  }
  if (state.controller.waiting() > 0) next = std::min(next, state.controller.rules().next_tick());
  next = std::min(next, look_at());
  const Seconds begins = state.controller.next_begin(state.caught_up);
  next = std::min(next, begins);
  const bool nothing_comes =
      state.controller.is_idle() && state.next_moment == kNever && begins == kNever;
  if (nothing_comes && next > state.last_event + patience()) return kNever;
  // What is due now is for the pass that comes.
  return next == kNever ? kNever : std::max(next, reached_ + 1);
}

Seconds SlurmPlanner::patience() const {
  const SlurmParameters& parameters = state_.controller.parameters();
  const Seconds rounds =
      3 * std::max({parameters.sched_interval, parameters.bf_interval, Seconds{60}}) +
      parameters.bf_min_age_reserve;
  // What was used decays by and by.
  return state_.controller.site().enforces ? std::max<Seconds>(rounds, 604'800) : rounds;
}

// A pass of the engine: what came in this second, then the loops that are due.
void SlurmPlanner::schedule(Seconds now, const Queue& /*queue*/, Pass& pass) {
  if (reached_ < now) reached(now);
  tick(now);
  for (const JobIndex index : coming_) take_up(index, now);
  coming_.clear();
  end_step(now, &pass);
  open_step_ = kNever;
  state_.begins_at = slurm().next_begin(now);
}

// `job_allocate`, job_mgr.c.
void SlurmPlanner::take_up(JobIndex index, Seconds now) {
  take_limits(index);
  const Seconds submit = job(index).submit;
  const bool is_new = submit == now;
  if (is_new) {
    state_.clock.queue_main(now);
    may_start_again(now);
  }
  SlurmRecord& record = slurm().record(index);
  record.reason = is_new ? slurm().why_refused(index) : slurm::reason::none;
  record.refused = record.reason != slurm::reason::none;
  if (record.refused) return;
  if (is_new) slurm().test_submission(index, now);
  slurm().submitted(index, submit, now);
  if (is_new) state_.clock.changed(now);
}

// Without a pass nobody can start.
void SlurmPlanner::run_main(Seconds now, Pass* pass) {
  const bool full = state_.clock.run_main(now);
  const bool may_start = state_.main_may_start || (full && state_.full_main_may_start);
  if (slurm().waiting() == 0 || !may_start || pass == nullptr) {
    if (slurm().waiting() > 0 && state_.main_met_blocked) state_.clock.changed(now);
    return;
  }
  const GpuMarks marks = slurm().marks();
  MainLoop loop(slurm(), now, full, *pass);
  loop.run();
  if (slurm().marks() != marks) state_.backfill_may_start = true;
  state_.main_met_blocked = loop.met_blocked();
  if (loop.met_blocked()) state_.clock.changed(now);
  const bool again = loop.started() > 0 || loop.might_start_more() || slurm().kept_others();
  state_.main_may_start = again;
  state_.full_main_may_start = again || loop.might_start_deeper();
  state_.main_changes_at = loop.next_change();
  if (loop.started() > 0) {
    state_.last_event = now;
    state_.backfill_may_start = true;
  }
}

void SlurmPlanner::run_backfill(Seconds now, Pass* pass) {
  const bool anything = slurm().waiting() > 0;
  if (!anything || !state_.backfill_may_start || pass == nullptr) {
    state_.clock.ran_backfill(now, anything && state_.backfill_planned);
    return;
  }
  BackfillCycle cycle(slurm(), scratch_, now, {.all_plans = keeps_plans_, .coarse = state_.coarse},
                      *pass);
  cycle.run();
  state_.backfill_planned = cycle.planned();
  state_.backfill_may_start = cycle.next_change() <= now;
  state_.backfill_changes_at = cycle.next_change() <= now ? kNever : cycle.next_change();
  state_.clock.ran_backfill(now, state_.backfill_planned);
  if (slurm().kept_others() || cycle.left_marks()) {
    state_.main_may_start = state_.full_main_may_start = true;
  }
  if (cycle.started() > 0) may_start_again(now);
}

Seconds SlurmPlanner::planned_start(JobIndex index) const {
  const Seconds estimate = state_.controller.record(index).estimate;
  return estimate;
}

std::optional<std::vector<JobIndex>> SlurmPlanner::own_queue() const {
  std::vector<JobIndex> jobs;
  std::unordered_set<JobIndex> seen;  // a job has an entry in each of its slurm_partitions
  for (const QueueEntry& entry : state_.controller.queue()) {
    if (state_.controller.record(entry.job).waits && seen.insert(entry.job).second) {
      jobs.push_back(entry.job);
    }
  }
  jobs.insert(jobs.end(), coming_.begin(), coming_.end());
  return jobs;
}

}  // namespace foretime
