// A scheduling pass on a machine of nodes; reference_nodes.py is the specification.
#include <algorithm>

#include "engine.hpp"

namespace foretime {

void Engine::use_nodes(NodeMachine machine) {
  nodes_ = std::make_unique<NodeScheduling>(std::move(machine), now_);
}

void Engine::add_request(ResourceRequest request) {
  nodes_->requests.push_back(std::move(request));
}

void Engine::ask(JobIndex index, std::int32_t request) {
  auto& request_of = nodes_->request_of;
  if (static_cast<std::size_t>(index) >= request_of.size()) {
    request_of.resize(static_cast<std::size_t>(index) + 1, 0);
  }
  request_of[static_cast<std::size_t>(index)] = request;
}

bool Engine::has_room(std::int32_t request) {
  const ResourceRequest& asked = nodes_->requests[static_cast<std::size_t>(request)];
  return std::any_of(asked.choices.begin(), asked.choices.end(), [&](const auto& choice) {
    return nodes_->pool.place_now(asked, choice, now_, 0).has_value();
  });
}

// A job that runs already gets nodes as if it started now. There must be room.
void Engine::resume_on_nodes(JobIndex index) {
  const ResourceRequest& asked = nodes_->request(index);
  for (const PartitionChoice& choice : asked.choices) {
    const auto shares = nodes_->pool.place_now(asked, choice, now_, 0);
    if (!shares) continue;
    const Seconds end = availability_.expected_end(index);
    nodes_->pool.start(index, choice.slurm_partition, *shares, now_, end);
    return;
  }
}

QueuePlace Engine::queue_place(JobIndex index) const {
  const Job& waiting = job(index);
  const double score =
      is_time_dependent(policy_.order) ? queue_score(policy_.order, waiting, now_) : 0.0;
  const std::int64_t tier = nodes_ ? nodes_->request(index).tier : 0;
  return {tier, score, queue_key(policy_.order, waiting), waiting.rank};
}

// Most jobs that hold a reservation in each slurm_partition.
std::int64_t Engine::reservation_depth() const {
  return policy_.backfill == Backfill::kFirstFit ? 0 : policy_.depth;
}

void Engine::pass_on_nodes() {
  NodeScheduling& nodes = *nodes_;
  const bool full = full_pass_ || is_time_dependent(policy_.order) || availability_.drifts() ||
                    active_guards_ > 0 || now_ > nodes.next_deadline || !arrived_come_last();
  std::vector<std::pair<QueuePlace, JobIndex>> queue;
  if (full) {
    full_pass_ = false;
    for (const NodeReservation& held : nodes.reservations) {
      nodes.pool.unreserve(held.shares, held.slurm_partition, now_, held.start, held.end);
    }
    nodes.reservations.clear();
    nodes.let_in.clear();
    nodes.ends_changed |= availability_.drifts();
    set_node_ends(active_guards_ > 0);
    std::fill(nodes.waiting.begin(), nodes.waiting.end(), 0);
    std::fill(nodes.closed_at.begin(), nodes.closed_at.end(), std::nullopt);
    nodes.failed_time.assign(nodes.requests.size(), kNever);
    nodes.next_deadline = kNever;
    for (const auto& block : queue_.blocks()) {
      for (const Pending& entry : block) queue.emplace_back(queue_place(entry.job), entry.job);
    }
  } else {
    nodes.failed_time.resize(nodes.requests.size(), kNever);
    for (const JobIndex index : arrived_) queue.emplace_back(queue_place(index), index);
  }
  std::sort(queue.begin(), queue.end());

  // Who may hold a reservation, then who may start besides.
  std::vector<std::pair<QueuePlace, JobIndex>> others;
  for (const auto& entry : queue) {
    if (comes_behind(entry.second)) {
      others.push_back(entry);
    } else if (!start_on_nodes(entry.second)) {
      reserve_nodes(entry.second, entry.first);
    }
  }
  if (policy_.backfill == Backfill::kNone) return;
  if (policy_.backfill == Backfill::kEasySjbf) {
    std::stable_sort(others.begin(), others.end(), [this](const auto& a, const auto& b) {
      const Seconds time_a = node_time(a.second);
      const Seconds time_b = node_time(b.second);
      return time_a != time_b ? time_a < time_b : job(a.second).rank < job(b.second).rank;
    });
  }
  for (const auto& [place, index] : others) {
    if (!start_on_nodes(index)) note_waiting(index, place);
  }
}

// Whether a pass over the jobs that have arrived is enough: they stand behind the reservations.
bool Engine::arrived_come_last() const {
  for (const JobIndex index : arrived_) {
    const QueuePlace place = queue_place(index);
    for (const PartitionChoice& choice : nodes_->request(index).choices) {
      const auto& closed = nodes_->closed_at[static_cast<std::size_t>(choice.slurm_partition)];
      if (!closed || place < *closed) return false;
    }
  }
  return true;
}

bool Engine::comes_behind(JobIndex index) const {
  for (const PartitionChoice& choice : nodes_->request(index).choices) {
    if (nodes_->waiting[static_cast<std::size_t>(choice.slurm_partition)] < reservation_depth()) {
      return false;
    }
  }
  return true;
}

void Engine::note_waiting(JobIndex index, const QueuePlace& place) {
  const std::int64_t closing = std::max<std::int64_t>(1, reservation_depth());
  for (const PartitionChoice& choice : nodes_->request(index).choices) {
    const auto partition = static_cast<std::size_t>(choice.slurm_partition);
    if (++nodes_->waiting[partition] == closing) nodes_->closed_at[partition] = place;
  }
}

Seconds Engine::node_time(JobIndex index) const {
  const Job& planned = job(index);
  return nodes_->ends_by_requested ? planned.requested : planned.backfill_time;
}

// When the plans take running jobs to end.
void Engine::set_node_ends(bool by_requested) {
  NodeScheduling& nodes = *nodes_;
  if (!nodes.ends_changed && nodes.ends_by_requested == by_requested) return;
  nodes.ends_changed = false;
  nodes.ends_by_requested = by_requested;
  for (const JobIndex index : availability_.running()) {
    if (std::find(nodes.let_in.begin(), nodes.let_in.end(), index) != nodes.let_in.end()) continue;
    nodes.pool.set_end(index, now_,
                       by_requested ? job(index).hard_end() : availability_.expected_end(index));
  }
}

bool Engine::start_on_nodes(JobIndex index) {
  NodeScheduling& nodes = *nodes_;
  const ResourceRequest& request = nodes.request(index);
  const Seconds time = node_time(index);
  Seconds& failed =
      nodes.failed_time[static_cast<std::size_t>(nodes.request_of[static_cast<std::size_t>(index)])];
  if (time >= failed) return false;
  for (const PartitionChoice& choice : request.choices) {
    const bool head = nodes.waiting[static_cast<std::size_t>(choice.slurm_partition)] == 0;
    if (!head && policy_.backfill == Backfill::kNone) continue;
    // First without the nodes that are reserved for later.
    StartedBy how = head ? StartedBy::kHead : StartedBy::kOutOfOrder;
    auto shares = nodes.pool.place_now(request, choice, now_, head ? time : kNever);
    if (!shares && !head && !nodes.reservations.empty()) {
      how = StartedBy::kBackfilled;
      shares = nodes.pool.place_now(request, choice, now_, time);
    }
    if (!shares) continue;
    start(index, how);
    const Job& started = job(index);
    Seconds end = nodes.ends_by_requested ? started.hard_end() : started.expected_end;
    if (!head) {
      if (now_ + time != end) nodes.ends_changed = true;
      end = now_ + time;
      nodes.let_in.push_back(index);
    }
    nodes.pool.start(index, choice.slurm_partition, *shares, now_, end);
    full_pass_ = true;
    return true;
  }
  failed = time;
  return false;
}

void Engine::reserve_nodes(JobIndex index, const QueuePlace& place) {
  NodeScheduling& nodes = *nodes_;
  const ResourceRequest& request = nodes.request(index);
  bool first = false;
  for (const PartitionChoice& choice : request.choices) {
    first |= nodes.waiting[static_cast<std::size_t>(choice.slurm_partition)] == 0;
  }
  note_waiting(index, place);
  if (policy_.backfill == Backfill::kNone) return;
  if (first) guard_on_nodes(index);
  NodeReservation held = planned_on_nodes(index);
  nodes.pool.reserve(held.shares, held.slurm_partition, now_, held.start, held.end);
  nodes.reservations.push_back(std::move(held));
}

// The earliest start in any of its slurm_partitions.
NodeReservation Engine::planned_on_nodes(JobIndex index) {
  const ResourceRequest& request = nodes_->request(index);
  const Seconds time = node_time(index);
  NodeReservation best{index, 0, kNever, kNever, {}};
  for (const PartitionChoice& choice : request.choices) {
    PlannedPlace place = nodes_->pool.earliest(request, choice, now_, time);
    if (place.start >= best.start) continue;
    best = {index, choice.slurm_partition, place.start, place.start + time,
            std::move(place.shares)};
  }
  return best;
}

// As on the flat pool, for the head job of each slurm_partition.
void Engine::guard_on_nodes(JobIndex head) {
  if (!policy_.guard) return;
  Job& blocked = job(head);
  const bool by_requested = nodes_->ends_by_requested;
  if (blocked.planned_start == kNever) {
    set_node_ends(true);
    blocked.planned_start = planned_on_nodes(head).start;
  }
  const Seconds deadline = blocked.planned_start + *policy_.guard;
  if (!blocked.guarded && now_ > deadline) {
    blocked.guarded = true;
    ++active_guards_;
    ++counters_.guard_activations;
  }
  if (!blocked.guarded) nodes_->next_deadline = std::min(nodes_->next_deadline, deadline);
  set_node_ends(by_requested || active_guards_ > 0);
}

}  // namespace foretime
