#include "planning/bgp_planner.hpp"

#include <algorithm>

namespace foretime {

void BgpPlanner::place(JobIndex index, Processors nodes, std::size_t bgp_partition) {
  pool_.add(index, nodes);
  pool_.start(index, bgp_partition);
}

void BgpPlanner::runs_already(JobIndex index, Seconds /*now*/) {
  if (pool_.has(index)) return;
  pool_.add(index, job(index).processors);
  if (const auto bgp_partition = pool_.choose(index)) pool_.start(index, *bgp_partition);
}

// In time-dependent orders the head job is the last of scored_, in the others the queue's first.
void BgpPlanner::schedule(Seconds /*now*/, const Queue& /*queue*/, Pass& pass) {
  if (!policy_.guard && !pool_.any_waiting_fits()) return;
  const bool by_score = is_time_dependent(policy_.order);
  scored_.clear();
  if (by_score) {
    for (const auto& block : queue_.blocks()) {
      for (const Pending& entry : block) {
        scored_.push_back({queue_score(policy_.order, job(entry.job), now_), 0, entry});
      }
    }
  }
  Pending head;
  while (true) {
    if (queue_.empty()) return;
    if (by_score) {
      std::iter_swap(std::max_element(scored_.begin(), scored_.end()), scored_.end() - 1);
    }
    head = by_score ? scored_.back().entry : queue_.front();
    const auto bgp_partition = pool_.choose(head.job);
    if (!bgp_partition) break;
    if (by_score) scored_.pop_back();
    start(head.job, StartedBy::kHead, *bgp_partition, pass);
  }
  if (policy_.backfill == Backfill::kNone) return;
  const bool on_requested = guard(head.job);
  if (!pool_.any_waiting_fits()) return;
  backfill(drain_for(head.job, on_requested), on_requested, pass);
}

// Whether everything must be planned on requested times.
bool BgpPlanner::guard(JobIndex head) {
  Job& blocked = job(head);
  if (!policy_.guard) return false;
  if (blocked.planned_start == kNever) blocked.planned_start = drain_for(head, true).free_at;
  if (!blocked.guarded && now_ - blocked.planned_start > policy_.guard->bound) {
    activate_guard(blocked);
  }
  return active_guards_ > 0;
}

// What may start beside the drained bgp_partition, or in it before it is free, in queue order.
void BgpPlanner::backfill(const Drain& drain, bool on_requested, Pass& pass) {
  candidates_.clear();
  const auto add = [&](const Pending& entry, double score) {
    if (place_beside(drain, entry, on_requested)) candidates_.push_back({score, entry.key, entry});
  };
  if (is_time_dependent(policy_.order)) {
    for (const Candidate& scored : scored_) add(scored.entry, scored.score);
    std::sort(candidates_.rbegin(), candidates_.rend());
  } else {
    for (const auto& block : queue_.blocks()) {
      for (const Pending& entry : block) add(entry, 0);
    }
  }
  for (const Candidate& candidate : candidates_) {
    const auto place = place_beside(drain, candidate.entry, on_requested);
    if (place) start(candidate.entry.job, place->second, place->first, pass);
  }
}

// Where a job that is not the head may start now.
std::optional<std::pair<std::size_t, StartedBy>> BgpPlanner::place_beside(const Drain& drain,
                                                                          const Pending& entry,
                                                                          bool on_requested) const {
  if (const auto bgp_partition = pool_.choose(entry.job, drain.partition)) {
    return std::pair(*bgp_partition, StartedBy::kOutOfOrder);
  }
  const Seconds time = on_requested ? job(entry.job).requested : entry.backfill_time;
  if (now_ + time > drain.free_at) return std::nullopt;
  const auto bgp_partition = pool_.choose(entry.job);
  if (!bgp_partition) return std::nullopt;
  return std::pair(*bgp_partition, StartedBy::kBackfilled);
}

Drain BgpPlanner::drain_for(JobIndex head, bool on_requested) const {
  return pool_.first_free(head, [this, on_requested](JobIndex index) {
    const Seconds end = on_requested ? job(index).hard_end() : availability_.expected_end(index);
    return std::max(now_, end);
  });
}

void BgpPlanner::start(JobIndex index, StartedBy how, std::size_t bgp_partition, Pass& pass) {
  pool_.left_queue(index);
  pass.start(index, how);
  pool_.start(index, bgp_partition);
}

Seconds BgpPlanner::planned_start(JobIndex head) const {
  if (policy_.backfill == Backfill::kNone) return kNever;
  return pool_.fits(head) ? now_ : drain_for(head, active_guards_ > 0).free_at;
}

}  // namespace foretime
