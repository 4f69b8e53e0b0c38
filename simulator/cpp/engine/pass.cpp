// A scheduling pass: jobs start in queue order until the head job does not fit; then the
// backfilling of the policy goes on.
#include <algorithm>

#include "engine/engine.hpp"

namespace foretime {

void Engine::pass() {
  ++counters_.passes;
  pass_pending_ = false;
  pass_failed_ = false;
  availability_.reestimate(now_);
  if (nodes_) {
    if (!queue_.empty()) pass_on_nodes();
  } else if (bgp_) {
    if (!queue_.empty()) pass_on_bgp();
  } else if (planner_) {
    if (!queue_.empty() || lets_overrun()) pass_by_plan();
  } else if (!queue_.empty()) {
    const bool full = full_pass_ || is_time_dependent(policy_.order) || availability_.drifts() ||
                      active_guards_ > 0 || policy_.backfill == Backfill::kOutside;
    if (full) {
      full_pass_ = false;
      plan_valid_ = false;
    }
    if (is_time_dependent(policy_.order)) {
      pass_by_score();
    } else {
      pass_in_order(full);
    }
  }
  arrived_.clear();
}

void Engine::pass_in_order(bool full) {
  if (full) {
    while (!queue_.empty() && queue_.front().processors <= availability_.free()) {
      start(queue_.front().job, StartedBy::kHead);
    }
  }
  if (policy_.backfill == Backfill::kNone || queue_.empty()) return;
  if (policy_.backfill == Backfill::kFirstFit) {
    if (full) {
      first_fit_queue();
      return;
    }
    candidates_.clear();
    for (const JobIndex index : arrived_) {
      candidates_.push_back({0, 0, queue_.entry(index, job(index))});
      candidates_.back().key = candidates_.back().entry.key;
    }
    first_fit_candidates();
    return;
  }
  const JobIndex head = queue_.front().job;
  const bool on_requested = guard(head);
  if ((on_requested || easing_.late > 0) && !full) {
    full = true;
    plan_valid_ = false;
  }
  if (availability_.free() == 0 || queue_.size() == 1) return;
  if (policy_.backfill == Backfill::kOutside) {
    backfill_outside(on_requested);
    return;
  }

  if (full && !has_own_order(on_requested)) {
    backfill_blocks(queue_.blocks(), head, on_requested);
    return;
  }
  if (full && !on_requested && !policy_.ageing) {  // by t_sched, as the queue keeps them
    backfill_blocks(queue_.blocks_of_candidates(), head, on_requested);
    return;
  }
  candidates_.clear();
  if (full) {
    for (const auto& block : queue_.blocks()) {
      if (none_may_start(block.summary, availability_.free(), on_requested)) continue;
      for (const Pending& entry : block) add_candidate(head, entry, 0, on_requested);
    }
  } else {
    for (const JobIndex index : arrived_) {
      add_candidate(head, queue_.entry(index, job(index)), 0, on_requested);
    }
  }
  backfill_candidates(on_requested);
}

void Engine::pass_by_plan() {
  const bool by_score = is_time_dependent(policy_.order) && planner_->needs_order();
  const std::vector<Pending> sorted = by_score ? sort_queue_for_plan() : std::vector<Pending>{};
  planner_->begin_pass(now_);
  while (const auto verdict = planner_->judge_overrun(now_)) {
    if (verdict->more > 0) {
      availability_.extend(verdict->job, verdict->more);
    } else {
      kill(verdict->job);
    }
  }
  do {
    starts_planned_.clear();
    planner_->pass(now_, QueueInOrder{queue_, by_score ? &sorted : nullptr}, starts_planned_);
    for (const JobIndex index : planner_->take_kills()) kill(index);
    for (const auto& [index, how] : starts_planned_) start(index, how);
  } while (planner_->goes_on());
}

// Whether candidates for backfilling have an order of their own. Who is guarded by a plain EASY gets
// one: in queue order.
bool Engine::has_own_order(bool on_requested) const {
  return sorts_candidates(policy_.backfill) && !(on_requested && beside_);
}

// Its order by score, which only holds now.
void Engine::score_queue() {
  scored_.clear();
  for (const auto& block : queue_.blocks()) {
    for (const Pending& entry : block) {
      scored_.push_back({queue_score(policy_.order, job(entry.job), now_), 0, entry});
    }
  }
}

void Engine::pass_by_score() {
  // The guard must know the head job even if nothing can start.
  if (!policy_.guard && !is_beside_ && queue_.least_processors() > availability_.free()) return;
  score_queue();
  if (policy_.order == Order::kOutside) score_queue_outside();
  std::make_heap(scored_.begin(), scored_.end());
  while (!scored_.empty() && scored_.front().entry.processors <= availability_.free()) {
    start(scored_.front().entry.job, StartedBy::kHead);
    std::pop_heap(scored_.begin(), scored_.end());
    scored_.pop_back();
  }
  if (policy_.backfill == Backfill::kNone || scored_.empty()) return;
  if (policy_.backfill == Backfill::kFirstFit) {
    candidates_ = scored_;
    first_fit_candidates();
    return;
  }
  const JobIndex head = scored_.front().entry.job;
  const bool on_requested = guard(head);
  if (availability_.free() == 0) return;
  if (policy_.backfill == Backfill::kOutside) {
    backfill_outside(on_requested);
    return;
  }
  if (sorts_candidates(policy_.backfill) && !on_requested && !policy_.ageing) {
    backfill_blocks(queue_.blocks_of_candidates(), head, on_requested);
    return;
  }
  candidates_.clear();
  for (const Candidate& scored : scored_) {
    add_candidate(head, scored.entry, scored.score, on_requested);
  }
  backfill_candidates(on_requested);
}

// Starvation guard: true if everything must be planned on requested times. Unless it goes by a plain
// EASY beside, a job's deadline is noted when it is first seen blocked at the head; a passed deadline is acted on at the next pass in
// which the job is at the head, and from then on until it has started.
bool Engine::guard(JobIndex head) {
  Job& blocked = job(head);
  if (blocked.blocked_since == kNever) blocked.blocked_since = now_;
  if (!policy_.guard) return false;
  if (!beside_ && blocked.planned_start == kNever) {
    blocked.planned_start =
        bgp_ ? drain_for(head, true).free_at
             : availability_.plan_on_requested(blocked.processors, now_).shadow_time;
  }
  const Lateness found =
      beside_ ? lateness(head) : Lateness{now_ - blocked.planned_start, policy_.guard->bound};
  const bool is_late = found.late > found.bound;
  easing_ = policy_.guard->eases_in() && !is_late ? found : Lateness{};
  if (!blocked.guarded && is_late) {
    blocked.guarded = true;
    ++active_guards_;
    ++counters_.guard_activations;
  }
  return active_guards_ > 0;
}

}  // namespace foretime
