// Jobs start in queue order until the head job does not fit; then the backfilling of the policy
// goes on.
#include "engine/head_planner.hpp"

#include <algorithm>
#include <ranges>

namespace foretime {

HeadPlanner::HeadPlanner(const Scheduling& engine, Processors machine) : QueuePlanner(engine) {
  if (policy_.guard && policy_.guard->runs_beside()) {
    beside_ = std::make_unique<PlainEasy>(machine, policy_, now_);
  }
}

void HeadPlanner::submitted(JobIndex index) {
  if (beside_) beside_->submitted(job(index));
}

void HeadPlanner::started(JobIndex index, Seconds now) {
  if (beside_) beside_->started(index, now);
}

void HeadPlanner::finished(JobIndex index, Seconds now) {
  if (beside_) beside_->ended(index, job(index).end - job(index).start, now);
}

void HeadPlanner::updated(JobIndex index) {
  if (beside_) beside_->updated(index, job(index), now_);
}

void HeadPlanner::withdrawn(JobIndex index) {
  if (beside_) beside_->cancelled(index, now_);
}

void HeadPlanner::schedule(Seconds /*now*/, const Queue& /*queue*/, Pass& pass) {
  const bool full = full_pass_ || is_time_dependent(policy_.order) || availability_.drifts() ||
                    active_guards_ > 0 || policy_.backfill == Backfill::kOutside;
  if (full) {
    full_pass_ = false;
    plan_valid_ = false;
  }
  if (is_time_dependent(policy_.order)) {
    pass_by_score(pass);
  } else {
    pass_in_order(full, pass);
  }
}

void HeadPlanner::pass_in_order(bool full, Pass& pass) {
  if (full) {
    while (!queue_.empty() && queue_.front().processors <= availability_.free()) {
      pass.start(queue_.front().job, StartedBy::kHead);
    }
  }
  if (policy_.backfill == Backfill::kNone || queue_.empty()) return;
  if (policy_.backfill == Backfill::kFirstFit) {
    if (full) {
      first_fit_queue(pass);
      return;
    }
    candidates_.clear();
    for (const JobIndex index : arrived_) {
      candidates_.push_back({0, 0, queue_.entry(index, job(index))});
      candidates_.back().key = candidates_.back().entry.key;
    }
    first_fit_candidates(pass);
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
    backfill_outside(on_requested, pass);
    return;
  }

  if (full && !has_own_order(on_requested)) {
    backfill_blocks(queue_.blocks(), head, on_requested, pass);
    return;
  }
  if (full && !on_requested && !ageing_) {  // by t_sched, as the queue keeps them
    backfill_blocks(queue_.blocks_of_candidates(), head, on_requested, pass);
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
  backfill_candidates(on_requested, pass);
}

// Whether candidates for backfilling have an order of their own. Who is guarded by a plain EASY
// gets one: in queue order.
bool HeadPlanner::has_own_order(bool on_requested) const {
  return sorts_candidates(policy_.backfill) && !(on_requested && beside_);
}

void HeadPlanner::pass_by_score(Pass& pass) {
  // The guard must know the head job even if nothing can start.
  if (!policy_.guard && !watches_ && queue_.least_processors() > availability_.free()) return;
  const bool outside = policy_.order == Order::kOutside;
  if (outside) {
    score_all();
    pass.score(scored_);
    std::make_heap(scored_.begin(), scored_.end());
    while (!scored_.empty() && scored_.front().entry.processors <= availability_.free()) {
      pass.start(scored_.front().entry.job, StartedBy::kHead);
      std::pop_heap(scored_.begin(), scored_.end());
      scored_.pop_back();
    }
  } else {
    start_first_by_score(pass);
  }
  if (policy_.backfill == Backfill::kNone || queue_.empty()) return;
  if (policy_.backfill == Backfill::kFirstFit) {
    if (outside) {
      candidates_ = scored_;
      first_fit_candidates(pass);
    } else {
      first_fit_by_score(pass);
    }
    return;
  }
  const JobIndex head = outside ? scored_.front().entry.job : queue_.by_score().first(now_).job;
  const bool on_requested = guard(head);
  if (availability_.free() == 0) return;
  if (policy_.backfill == Backfill::kOutside) {
    backfill_outside(on_requested, pass);
    return;
  }
  if (sorts_candidates(policy_.backfill) && !on_requested && !ageing_) {
    backfill_blocks(queue_.blocks_of_candidates(), head, on_requested, pass);
    return;
  }
  if (!outside && !has_own_order(on_requested) && !on_requested && easing_.late == 0) {
    backfill_by_score(head, pass);
    return;
  }
  candidates_.clear();
  if (outside) {
    for (const Candidate& scored : scored_) {
      add_candidate(head, scored.entry, scored.score, on_requested);
    }
  } else {
    add_scored_candidates(head, on_requested);
  }
  backfill_candidates(on_requested, pass);
}

// Under XF and WFP.
void HeadPlanner::start_first_by_score(Pass& pass) {
  const ScoredQueue& queue = queue_.by_score();
  Processors free = availability_.free();
  if (queue.first(now_).processors > free) return;
  picked_.clear();
  walk_.begin(queue, now_, {});
  for (const ScoredJob* next = walk_.next({}); next != nullptr; next = walk_.next({})) {
    if (next->processors > free) break;
    free -= next->processors;
    picked_.emplace_back(pending(*next), StartedBy::kHead);
  }
  for (const auto& [entry, how] : picked_) pass.start(entry.job, how);
}

// In the order of submission, without scores from outside.
void HeadPlanner::score_all() {
  scored_.clear();
  for (const auto& block : queue_.blocks()) {
    for (const Pending& entry : block) {
      scored_.push_back({queue_score(policy_.order, job(entry.job), now_), 0, entry});
    }
  }
}

// Starvation guard: true if everything must be planned on requested times. Unless it goes by a
// plain EASY beside, a job's deadline is noted when it is first seen blocked at the head; a passed
// deadline is acted on at the next pass in which the job is at the head, and from then on until it
// has started.
bool HeadPlanner::guard(JobIndex head) {
  Job& blocked = job(head);
  if (blocked.blocked_since == kNever) blocked.blocked_since = now_;
  if (!policy_.guard) return false;
  if (!beside_ && blocked.planned_start == kNever) {
    blocked.planned_start = availability_.plan_on_requested(blocked.processors, now_).shadow_time;
  }
  const PlainEasy::Lateness found =
      beside_ ? beside_->lateness(head, *policy_.guard, now_)
              : PlainEasy::Lateness{now_ - blocked.planned_start, policy_.guard->bound};
  const bool is_late = found.late > found.bound;
  easing_ = policy_.guard->eases_in() && !is_late ? found : PlainEasy::Lateness{};
  if (!blocked.guarded && is_late) activate_guard(blocked);
  return active_guards_ > 0;
}

// The jobs that started from the head are no longer in the queue.
std::vector<Pending> HeadPlanner::queue_in_order() {
  std::vector<Pending> queue;
  if (is_time_dependent(policy_.order)) {
    if (policy_.order != Order::kOutside) {
      score_all();
      std::make_heap(scored_.begin(), scored_.end());
    }
    std::sort_heap(scored_.begin(), scored_.end());
    for (const Candidate& next : std::views::reverse(scored_)) queue.push_back(next.entry);
  } else {
    for (const auto& block : queue_.blocks()) queue.insert(queue.end(), block.begin(), block.end());
  }
  return queue;
}

void HeadPlanner::backfill_outside(bool on_requested, Pass& pass) {
  const std::vector<Pending> queue = queue_in_order();
  const auto fits = [this](const Pending& entry) {
    return entry.processors <= availability_.free();
  };
  if (std::none_of(queue.begin() + 1, queue.end(), fits)) return;
  std::vector<JobIndex> jobs;
  jobs.reserve(queue.size());
  for (const Pending& entry : queue) jobs.push_back(entry.job);
  for (const JobIndex index : pass.choose(jobs, on_requested)) {
    const Pending entry = queue_.entry(index, job(index));
    const Seconds time = backfill_time(entry, on_requested);
    may_start(jobs.front(), entry.processors, time, on_requested);  // makes the plan
    start_before_head(entry, reserve_extra(entry.processors, time), on_requested, pass);
  }
}

Seconds HeadPlanner::planned_start(JobIndex head) const {
  if (!is_easy(policy_.backfill)) return kNever;
  const Processors needed = job(head).processors;
  const Plan plan = active_guards_ > 0 ? availability_.plan_on_requested(needed, now_)
                                       : availability_.plan(needed, now_);
  return plan.shadow_time;
}

}  // namespace foretime
