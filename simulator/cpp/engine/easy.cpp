// Methods of HeadPlanner (head_planner.hpp): EASY backfilling. A job may start before the blocked
// head job if it is expected to end by the head job's shadow time, or takes only processors that
// the head job will not need then.
#include <algorithm>

#include "engine/head_planner.hpp"

namespace foretime {

Seconds HeadPlanner::backfill_time(const Pending& entry, bool on_requested) const {
  if (on_requested) return job(entry.job).requested;
  if (easing_.late == 0) return entry.backfill_time;
  const Seconds more = job(entry.job).requested - entry.backfill_time;
  return entry.backfill_time + more * easing_.late / easing_.bound;
}

void HeadPlanner::make_plan(JobIndex head, bool on_requested) {
  const Processors needed = job(head).processors;
  plan_ = on_requested ? availability_.plan_on_requested(needed, now_)
                       : availability_.plan(needed, now_);
  plan_valid_ = true;
}

// The plan for the head job is made when a job comes up that fits at all.
bool HeadPlanner::may_start(JobIndex head, Processors processors, Seconds time, bool on_requested) {
  if (!plan_valid_) make_plan(head, on_requested);
  return now_ + time <= plan_.shadow_time || processors <= plan_.extra;
}

// Takes the extra processors that a job which may start keeps at the shadow time. Who fits into the
// extra processors needed no estimate to start, only a later place than the head job.
StartedBy HeadPlanner::reserve_extra(Processors processors, Seconds time) {
  const StartedBy how = processors <= plan_.extra ? StartedBy::kOutOfOrder : StartedBy::kBackfilled;
  if (now_ + time > plan_.shadow_time) plan_.extra -= processors;
  return how;
}

// Of a block of the queue, by the least that its jobs need.
bool HeadPlanner::none_may_start(const Least& least, Processors free, bool on_requested) const {
  if (least.processors > free) return true;
  return plan_valid_ && !on_requested && least.processors > plan_.extra &&
         now_ + least.backfill_time > plan_.shadow_time;
}

// In the order of the blocks, through the queue itself.
void HeadPlanner::backfill_blocks(const Queue::Blocks& blocks, JobIndex head, bool on_requested,
                                  Pass& pass) {
  Processors free = availability_.free();
  picked_.clear();
  for (const auto& block : blocks) {
    if (free == 0) break;
    if (none_may_start(block.summary, free, on_requested)) continue;
    for (const Pending& entry : block) {
      if (entry.processors > free || entry.job == head) continue;
      const Seconds time = backfill_time(entry, on_requested);
      if (!may_start(head, entry.processors, time, on_requested)) continue;
      free -= entry.processors;
      picked_.emplace_back(entry, reserve_extra(entry.processors, time));
    }
  }
  for (const auto& [entry, how] : picked_) start_before_head(entry, how, on_requested, pass);
}

// A job that may not start now may not later in the same pass, as less and less is free.
void HeadPlanner::add_candidate(JobIndex head, const Pending& entry, double score,
                                bool on_requested) {
  if (entry.processors > availability_.free() || entry.job == head) return;
  const Seconds time = backfill_time(entry, on_requested);
  if (!may_start(head, entry.processors, time, on_requested)) return;
  if (has_own_order(on_requested)) {
    const Job& candidate = job(entry.job);
    const Seconds key = on_requested ? time : candidate_time(policy_.backfill, candidate);
    const double aged = ageing_ ? aged_score(key, now_ - candidate.submit, *ageing_) : 0.0;
    candidates_.push_back({aged, key, entry});
  } else {
    candidates_.push_back({score, entry.key, entry});
  }
}

// Under XF and WFP, where candidates come in queue order.
void HeadPlanner::backfill_by_score(JobIndex head, Pass& pass) {
  if (queue_.least_processors() > availability_.free()) return;
  if (!plan_valid_) make_plan(head, false);
  Room room{availability_.free(), plan_.extra, plan_.shadow_time - now_};
  picked_.clear();
  walk_.begin(queue_.by_score(), now_, room);
  while (const ScoredJob* next = room.free > 0 ? walk_.next(room) : nullptr) {
    const StartedBy how = reserve_extra(next->processors, next->backfill_time);
    picked_.emplace_back(pending(*next), how);
    room.free -= next->processors;
    room.extra = plan_.extra;
  }
  for (const auto& [entry, how] : picked_) start_before_head(entry, how, false, pass);
}

// Under XF and WFP, where candidates have another order or are judged by other times.
void HeadPlanner::add_scored_candidates(JobIndex head, bool on_requested) {
  const auto none_starts = [&](Processors processors, Seconds time) {
    return none_may_start({processors, time}, availability_.free(), on_requested);
  };
  queue_.by_score().for_each_within(availability_.free(), none_starts,
                                    [&](const ScoredJob& scored) {
                                      const double score = scored.score(policy_.order, now_);
                                      add_candidate(head, pending(scored), score, on_requested);
                                    });
}

// In an order of their own: as their keys say, by score, or just the few that have arrived.
void HeadPlanner::backfill_candidates(bool on_requested, Pass& pass) {
  std::make_heap(candidates_.begin(), candidates_.end());
  while (!candidates_.empty() && availability_.free() > 0) {
    const Pending entry = candidates_.front().entry;
    std::pop_heap(candidates_.begin(), candidates_.end());
    candidates_.pop_back();
    const Seconds time = backfill_time(entry, on_requested);
    if (entry.processors > availability_.free()) continue;
    if (now_ + time > plan_.shadow_time && entry.processors > plan_.extra) continue;
    start_before_head(entry, reserve_extra(entry.processors, time), on_requested, pass);
  }
}

void HeadPlanner::start_before_head(const Pending& entry, StartedBy how, bool on_requested,
                                    Pass& pass) {
  // Assumed to end at another time than it was let in for: the plan must be made anew.
  if (job(entry.job).drain_time != backfill_time(entry, on_requested)) full_pass_ = true;
  pass.start(entry.job, how);
}

}  // namespace foretime
