// A scheduling pass on a Blue Gene: Tang 2010, section II.C; reference_bgp.py is the specification.
#include <algorithm>

#include "engine/engine.hpp"

namespace foretime {

void Engine::use_bgp(BgpMachine machine) {
  bgp_ = std::make_unique<BgpPool>(std::move(machine));
  planner_.reset();
}

// In time-dependent orders the head job is the last of scored_, in the others the queue's first.
void Engine::pass_on_bgp() {
  if (!policy_.guard && !bgp_->any_waiting_fits()) return;
  const bool by_score = is_time_dependent(policy_.order);
  if (by_score) score_queue();
  Pending head;
  while (true) {
    if (queue_.empty()) return;
    if (by_score) {
      std::iter_swap(std::max_element(scored_.begin(), scored_.end()), scored_.end() - 1);
    }
    head = by_score ? scored_.back().entry : queue_.front();
    const auto partition = bgp_->choose(head.job);
    if (!partition) break;
    if (by_score) scored_.pop_back();
    start_on_bgp(head.job, StartedBy::kHead, *partition);
  }
  if (policy_.backfill == Backfill::kNone) return;
  const bool on_requested = guard(head.job);
  if (!bgp_->any_waiting_fits()) return;
  backfill_on_bgp(drain_for(head.job, on_requested), on_requested);
}

// What may start beside the drained bgp_partition, or in it before it is free, in queue order.
void Engine::backfill_on_bgp(const Drain& drain, bool on_requested) {
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
    if (place) start_on_bgp(candidate.entry.job, place->second, place->first);
  }
}

// Where a job that is not the head may start now.
std::optional<std::pair<std::size_t, StartedBy>> Engine::place_beside(const Drain& drain,
                                                                      const Pending& entry,
                                                                      bool on_requested) const {
  if (const auto partition = bgp_->choose(entry.job, drain.partition)) {
    return std::pair(*partition, StartedBy::kOutOfOrder);
  }
  if (now_ + backfill_time(entry, on_requested) > drain.free_at) return std::nullopt;
  const auto partition = bgp_->choose(entry.job);
  if (!partition) return std::nullopt;
  return std::pair(*partition, StartedBy::kBackfilled);
}

Drain Engine::drain_for(JobIndex head, bool on_requested) const {
  return bgp_->first_free(
      head, [this, on_requested](JobIndex index) { return planned_end(index, on_requested); });
}

void Engine::start_on_bgp(JobIndex index, StartedBy how, std::size_t partition) {
  start(index, how);
  bgp_->start(index, partition);
}

// A job that runs already has the bgp_partition that is said, or else gets one as if it started now.
// There must be room.
void Engine::resume_on_bgp(JobIndex index, std::optional<std::size_t> partition) {
  bgp_->add(index, job(index).processors);
  if (!partition) partition = bgp_->choose(index);
  if (partition) bgp_->start(index, *partition);
}

bool Engine::has_room_on_bgp(Processors nodes) const { return bgp_->any_free(nodes); }

}  // namespace foretime
