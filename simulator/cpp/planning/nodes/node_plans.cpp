#include "planning/nodes/node_plans.hpp"

#include <algorithm>

namespace foretime {

void NodePlans::forget_searches() {
  nodes_.searched.assign(nodes_.requests->size(), {kNever, now_});
}

// Plans a job for the earliest place that is left.
void NodePlans::promise(JobIndex index) {
  auto& [searched_time, searched_start] =
      nodes_.searched[static_cast<std::size_t>(nodes_.request_of[static_cast<std::size_t>(index)])];
  const Seconds time = planned_time(index);
  // With closures another time limit may do earlier.
  const bool known = time >= searched_time && !nodes_.request(index).meets_closures();
  const Seconds from = known ? searched_start : now_;
  NodeReservation held = planned(index, from, kNever);
  searched_time = time;
  searched_start = held.start;
  nodes_.pool.reserve(held.shares, held.slurm_partition, now_, held.start, held.end);
  nodes_.planned(held);
  nodes_.reservations.push_back(std::move(held));
}

void NodePlans::start_planned(Pass& pass) {
  std::vector<NodeReservation> planned;
  planned.swap(nodes_.reservations);
  std::fill(nodes_.waiting.begin(), nodes_.waiting.end(), 0);
  for (NodeReservation& held : planned) {
    const bool head = nodes_.waiting[static_cast<std::size_t>(held.slurm_partition)] == 0;
    if (held.start <= now_) {
      full_pass_ = true;
      if (nodes_.pool.fits_now(held.shares, held.slurm_partition)) {
        release(held);
        pass.start(held.job, head ? StartedBy::kHead : StartedBy::kBackfilled);
        const Seconds end = job(held.job).expected_end;
        nodes_.pool.start(held.job, held.slurm_partition, held.shares, now_, end);
        if (end != held.end) nodes_.changed = true;
        continue;
      }
    }
    for (const PartitionChoice& choice : nodes_.request(held.job).choices) {
      ++nodes_.waiting[static_cast<std::size_t>(choice.slurm_partition)];
    }
    nodes_.reservations.push_back(std::move(held));
  }
}

// To plan anew gives the same as long as nothing has happened to the others but time.
void NodePlanning::schedule(Seconds /*now*/, const Queue& /*queue*/, Pass& pass) {
  const bool full = all_has_changed();
  nodes_.ends_changed |= availability_.drifts();
  if (full) begin_anew();
  forget_searches();
  for (const auto& [place, index] : full ? whole_queue() : arrivals()) {
    promise(index);
    for (auto& closed : nodes_.closed_at) closed = place;
  }
  start_planned(pass);
}

void NodeConservative::schedule(Seconds /*now*/, const Queue& /*queue*/, Pass& pass) {
  nodes_.ends_changed |= availability_.drifts();
  set_ends(active_guards_ > 0);
  forget_searches();
  auto& held = nodes_.reservations;
  const bool late = std::any_of(held.begin(), held.end(), [this](const NodeReservation& planned) {
    return planned.start < now_;
  });
  if (nodes_.changed || late || availability_.any_overstaying()) {
    const bool broken =
        std::any_of(held.begin(), held.end(), [this](const NodeReservation& planned) {
          return !nodes_.pool.holds(planned.shares, planned.slurm_partition, planned.start,
                                    planned.end);
        });
    if (by_submission() || nodes_.anew || late || broken) {
      reinsert(std::exchange(held, {}));
    } else {
      compress();
    }
  }
  nodes_.changed = nodes_.anew = false;
  for (const auto& [place, index] : arrivals()) promise(index);
  std::sort(held.begin(), held.end(),
            [this](const auto& a, const auto& b) { return job(a.job).rank < job(b.job).rank; });
  start_planned(pass);
}

// All are removed and inserted anew; in this somebody may become later.
void NodeConservative::reinsert(std::vector<NodeReservation> jobs) {
  std::sort(jobs.begin(), jobs.end(), [&](const auto& a, const auto& b) {
    if (!by_submission() && a.start != b.start) return a.start < b.start;
    return job(a.job).rank < job(b.job).rank;
  });
  for (const NodeReservation& held : jobs) release(held);
  for (const NodeReservation& held : jobs) promise(held.job);
}

// Each is moved alone, if it can start earlier, so nobody becomes later.
void NodeConservative::compress() {
  auto& reservations = nodes_.reservations;
  const bool one_by_one = compression_ == Compression::kOneByOne;
  std::sort(reservations.begin(), reservations.end(), [&](const auto& a, const auto& b) {
    if (!one_by_one && a.start != b.start) return a.start < b.start;
    return job(a.job).rank < job(b.job).rank;
  });
  for (NodeReservation& held : reservations) {
    if (held.start <= now_) continue;
    release(held);
    NodeReservation earlier = planned(held.job, now_, held.start);
    if (earlier.start < held.start) held = std::move(earlier);
    nodes_.pool.reserve(held.shares, held.slurm_partition, now_, held.start, held.end);
  }
}

}  // namespace foretime
