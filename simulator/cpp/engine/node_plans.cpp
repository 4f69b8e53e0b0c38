// Families on nodes in which every waiting job is planned; reference_node_plans.py is the
// specification.
#include <algorithm>

#include "engine/engine.hpp"

namespace foretime {

// Plans a job for the earliest place that is left.
void Engine::promise_nodes(JobIndex index) {
  auto& [searched_time, searched_start] =
      nodes_->searched[static_cast<std::size_t>(nodes_->request_of[static_cast<std::size_t>(index)])];
  const Seconds time = node_time(index);
  // With closures another time limit may do earlier.
  const bool known = time >= searched_time && !nodes_->request(index).meets_closures();
  const Seconds from = known ? searched_start : now_;
  NodeReservation held = planned_on_nodes(index, from, kNever);
  searched_time = time;
  searched_start = held.start;
  nodes_->pool.reserve(held.shares, held.slurm_partition, now_, held.start, held.end);
  nodes_->planned(held);
  nodes_->reservations.push_back(std::move(held));
}

void Engine::start_planned(const NodeReservation& held, StartedBy how) {
  release_nodes(held);
  start(held.job, how);
  const Job& started = job(held.job);
  nodes_->pool.start(held.job, held.slurm_partition, held.shares, now_, started.expected_end);
  if (started.expected_end != held.end) nodes_->changed = true;
  full_pass_ = true;
}

// To plan anew gives the same as long as nothing has happened to the others but time.
void Engine::plan_all_on_nodes(const NodeQueue& queue) {
  NodeScheduling& nodes = *nodes_;
  for (const auto& [place, index] : queue) {
    promise_nodes(index);
    for (auto& closed : nodes.closed_at) closed = place;
  }
  std::vector<NodeReservation> planned;
  planned.swap(nodes.reservations);
  std::fill(nodes.waiting.begin(), nodes.waiting.end(), 0);
  for (NodeReservation& held : planned) {
    const bool head = nodes.waiting[static_cast<std::size_t>(held.slurm_partition)] == 0;
    if (held.start <= now_ && nodes.pool.fits_now(held.shares, held.slurm_partition)) {
      start_planned(held, head ? StartedBy::kHead : StartedBy::kBackfilled);
      continue;
    }
    if (held.start <= now_) full_pass_ = true;
    for (const PartitionChoice& choice : nodes.request(held.job).choices) {
      ++nodes.waiting[static_cast<std::size_t>(choice.slurm_partition)];
    }
    nodes.reservations.push_back(std::move(held));
  }
}

void Engine::plan_conservatively_on_nodes(const NodeQueue& arrived) {
  NodeScheduling& nodes = *nodes_;
  const auto stuck = [this](const NodeReservation& held) { return held.start < now_; };
  const auto broken = [&nodes](const NodeReservation& held) {
    return !nodes.pool.holds(held.shares, held.slurm_partition, held.start, held.end);
  };
  auto& held = nodes.reservations;
  const bool late = std::any_of(held.begin(), held.end(), stuck);
  const bool changed = nodes.changed || late || availability_.any_overstaying();
  const bool by_submission = policy_.compression == Compression::kSubmissionOrder;
  if (changed && (by_submission || nodes.anew || late ||
                  std::any_of(held.begin(), held.end(), broken))) {
    reinsert_on_nodes(std::exchange(held, {}));
  } else if (changed) {
    compress_on_nodes();
  }
  nodes.changed = nodes.anew = false;
  for (const auto& [place, index] : arrived) promise_nodes(index);

  std::vector<NodeReservation> planned;
  planned.swap(held);
  std::sort(planned.begin(), planned.end(), [this](const auto& a, const auto& b) {
    return job(a.job).rank < job(b.job).rank;
  });
  std::fill(nodes.waiting.begin(), nodes.waiting.end(), 0);
  for (NodeReservation& next : planned) {
    const bool head = nodes.waiting[static_cast<std::size_t>(next.slurm_partition)] == 0;
    if (next.start <= now_ && nodes.pool.fits_now(next.shares, next.slurm_partition)) {
      start_planned(next, head ? StartedBy::kHead : StartedBy::kBackfilled);
      continue;
    }
    for (const PartitionChoice& choice : nodes.request(next.job).choices) {
      ++nodes.waiting[static_cast<std::size_t>(choice.slurm_partition)];
    }
    held.push_back(std::move(next));
  }
}

// All are removed and inserted anew; in this somebody may become later.
void Engine::reinsert_on_nodes(std::vector<NodeReservation> jobs) {
  const bool by_submission = policy_.compression == Compression::kSubmissionOrder;
  std::sort(jobs.begin(), jobs.end(), [&](const auto& a, const auto& b) {
    if (!by_submission && a.start != b.start) return a.start < b.start;
    return job(a.job).rank < job(b.job).rank;
  });
  for (const NodeReservation& held : jobs) release_nodes(held);
  for (const NodeReservation& held : jobs) promise_nodes(held.job);
}

// Each is moved alone, if it can start earlier, so nobody becomes later.
void Engine::compress_on_nodes() {
  auto& reservations = nodes_->reservations;
  const bool one_by_one = policy_.compression == Compression::kOneByOne;
  std::sort(reservations.begin(), reservations.end(), [&](const auto& a, const auto& b) {
    if (!one_by_one && a.start != b.start) return a.start < b.start;
    return job(a.job).rank < job(b.job).rank;
  });
  for (NodeReservation& held : reservations) {
    if (held.start <= now_) continue;
    release_nodes(held);
    NodeReservation earlier = planned_on_nodes(held.job, now_, held.start);
    if (earlier.start < held.start) held = std::move(earlier);
    nodes_->pool.reserve(held.shares, held.slurm_partition, now_, held.start, held.end);
  }
}

}  // namespace foretime
