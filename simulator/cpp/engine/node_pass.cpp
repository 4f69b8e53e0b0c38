// A scheduling pass on a machine of nodes; reference_nodes.py is the specification.
#include <algorithm>

#include "engine/engine.hpp"

namespace foretime {

void Engine::use_nodes(NodeMachine machine) {
  nodes_ = std::make_unique<NodeScheduling>(std::move(machine), now_);
  planner_.reset();
}

void Engine::use_nodes(NodeScheduling nodes) {
  nodes_ = std::make_unique<NodeScheduling>(std::move(nodes));
  planner_.reset();
}

void Engine::add_request(ResourceRequest request) {
  nodes_->note_closures(request);
  nodes_->requests->push_back(std::move(request));
}

void Engine::set_request(JobIndex index, std::int32_t request) {
  auto& request_of = nodes_->request_of;
  if (static_cast<std::size_t>(index) >= request_of.size()) {
    request_of.resize(static_cast<std::size_t>(index) + 1, 0);
  }
  request_of[static_cast<std::size_t>(index)] = request;
}

bool Engine::has_room(std::int32_t request) {
  const ResourceRequest& asked = (*nodes_->requests)[static_cast<std::size_t>(request)];
  return std::any_of(asked.choices.begin(), asked.choices.end(), [&](const auto& choice) {
    return nodes_->pool.place_now(asked, choice, now_, 0).has_value();
  });
}

// A job that runs already, and whose nodes are not known, gets some as if it started now. There must
// be room.
void Engine::resume_on_nodes(JobIndex index) {
  if (nodes_->pool.slurm_partition_of(index) >= 0) return;
  const ResourceRequest& asked = nodes_->request(index);
  for (const PartitionChoice& choice : asked.choices) {
    const auto shares = nodes_->pool.place_now(asked, choice, now_, 0);
    if (!shares) continue;
    const Seconds end = availability_.expected_end(index);
    nodes_->pool.start(index, choice.slurm_partition, *shares, now_, end);
    return;
  }
}

JobIndex Engine::add_running_on(const Job& started, std::int32_t slurm_partition,
                                const Shares& shares) {
  const auto index = static_cast<JobIndex>(jobs_.size());
  // When it is expected to end is known once it is added.
  nodes_->pool.start(index, slurm_partition, shares, now_, now_);
  add_running(started);
  nodes_->pool.set_end(index, now_, availability_.expected_end(index));
  return index;
}

// Reservations are taken over only where more than a head job is planned: those of head jobs are
// made anew in every pass that needs to know them.
std::optional<PlanNotes> Engine::node_plan_notes() const {
  if (head_only() || policy_.backfill == Backfill::kFirstFit) return std::nullopt;
  PlanNotes notes;
  notes.changed = nodes_->changed;
  notes.broken = nodes_->anew;
  return notes;
}

void Engine::resume_plans_on_nodes(const PlanNotes& notes, Seconds reached) {
  NodeScheduling& nodes = *nodes_;
  nodes.reached = reached;
  nodes.changed = notes.changed;
  nodes.anew = notes.broken;
  std::erase_if(arrived_, [&nodes](JobIndex index) {
    return std::any_of(nodes.reservations.begin(), nodes.reservations.end(),
                       [index](const NodeReservation& held) { return held.job == index; });
  });
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

// Where at most the head job of each slurm_partition is planned.
bool Engine::head_only() const {
  return policy_.backfill == Backfill::kNone || (is_easy(policy_.backfill) && policy_.depth == 1);
}

void Engine::release_nodes(const NodeReservation& held) {
  nodes_->pool.unreserve(held.shares, held.slurm_partition, now_, held.start, held.end);
}

void Engine::drop_reservation(JobIndex index) {
  std::erase(nodes_->deferred, index);
  auto& reservations = nodes_->reservations;
  const auto held = std::find_if(reservations.begin(), reservations.end(),
                                 [index](const auto& other) { return other.job == index; });
  if (held == reservations.end()) return;
  release_nodes(*held);
  reservations.erase(held);
}

// As on the flat pool, what is planned is an event where more than a head job is planned.
// So is the end of a closure.
Seconds Engine::next_moment_on_nodes() const {
  const auto& ends = nodes_->closure_ends;
  const auto opens = std::upper_bound(ends.begin(), ends.end(), nodes_->reached);
  Seconds next = opens == ends.end() ? kNever : *opens;
  if (head_only()) return next;
  for (const NodeReservation& held : nodes_->reservations) {
    if (held.start > nodes_->reached) next = std::min(next, held.start);
  }
  return next;
}

void Engine::reached_on_nodes() {
  const auto& ends = nodes_->closure_ends;
  const auto opens = std::upper_bound(ends.begin(), ends.end(), nodes_->reached);
  if (opens != ends.end() && *opens <= now_) full_pass_ = true;
  nodes_->reached = now_;
}

// Where the job fits from now on for the duration, on nodes that are open until its time limit.
std::optional<Shares> Engine::place_on_nodes(const ResourceRequest& request,
                                             const PartitionChoice& choice, Seconds duration,
                                             Seconds time_limit) {
  if (choice.closures.empty()) return nodes_->pool.place_now(request, choice, now_, duration);
  return nodes_->pool.place_now(request, choice.open_during(now_, now_ + time_limit), now_,
                                duration);
}

Seconds Engine::planned_start_on_nodes(JobIndex index) const {
  for (const NodeReservation& held : nodes_->reservations) {
    if (held.job == index) return std::max(now_, held.start);
  }
  return kNever;
}

// The waiting jobs in order, or those that have arrived.
Engine::NodeQueue Engine::node_queue(bool full) const {
  NodeQueue queue;
  if (full) {
    // They are kept in the policy's order, if that does not change with time: only tiers are to be
    // told apart.
    const bool changes = is_time_dependent(policy_.order);
    std::vector<std::pair<std::int64_t, NodeQueue>> tiers;
    for (const auto& block : queue_.blocks()) {
      for (const Pending& entry : block) {
        // What does not change with time is known without a look at the job.
        const QueuePlace place =
            changes ? queue_place(entry.job)
                    : QueuePlace{nodes_->request(entry.job).tier, 0.0, entry.key, entry.rank};
        auto tier = std::find_if(tiers.begin(), tiers.end(), [&place](const auto& known) {
          return known.first == place.tier;
        });
        if (tier == tiers.end()) tier = tiers.insert(tier, {place.tier, {}});
        tier->second.emplace_back(place, entry.job);
      }
    }
    std::sort(tiers.begin(), tiers.end(),
              [](const auto& a, const auto& b) { return a.first > b.first; });
    for (auto& [tier, waiting] : tiers) {
      if (queue.empty()) {
        queue = std::move(waiting);
      } else {
        queue.insert(queue.end(), waiting.begin(), waiting.end());
      }
    }
  } else {
    for (const JobIndex index : arrived_) queue.emplace_back(queue_place(index), index);
  }
  if (!std::is_sorted(queue.begin(), queue.end())) std::sort(queue.begin(), queue.end());
  return queue;
}

void Engine::pass_on_nodes() {
  NodeScheduling& nodes = *nodes_;
  const bool keeps = policy_.backfill == Backfill::kConservative;
  const bool due = !head_only() && std::any_of(nodes.reservations.begin(), nodes.reservations.end(),
                                               [this](const auto& held) { return held.start <= now_; });
  const bool full = due || full_pass_ || is_time_dependent(policy_.order) || availability_.drifts() ||
                    active_guards_ > 0 || now_ > nodes.next_deadline || !arrived_come_last();
  nodes.ends_changed |= availability_.drifts();
  if (full || keeps) set_node_ends(active_guards_ > 0);
  if (full && !keeps) {
    full_pass_ = false;
    for (const NodeReservation& held : nodes.reservations) release_nodes(held);
    nodes.reservations.clear();
    nodes.deferred.clear();
    if (!nodes.let_in.empty()) {
      nodes.let_in.clear();
      nodes.ends_changed = true;
      set_node_ends(active_guards_ > 0);
    }
    std::fill(nodes.waiting.begin(), nodes.waiting.end(), 0);
    std::fill(nodes.closed_at.begin(), nodes.closed_at.end(), std::nullopt);
    for (const std::int32_t failed : nodes.failed) {
      nodes.failed_time[static_cast<std::size_t>(failed)] = kNever;
    }
    nodes.failed.clear();
    nodes.next_deadline = kNever;
  }
  nodes.failed_time.resize(nodes.requests->size(), kNever);
  if (keeps || policy_.backfill == Backfill::kPlanning) {
    nodes.searched.assign(nodes.requests->size(), {kNever, now_});
  }
  if (keeps) {
    plan_conservatively_on_nodes(node_queue(false));
  } else if (policy_.backfill == Backfill::kPlanning) {
    plan_all_on_nodes(node_queue(full));
  } else {
    plan_first_on_nodes(node_queue(full));
  }
}

// Reservations for the first jobs of each slurm_partition that have to wait; of the others, those
// that fit now.
void Engine::plan_first_on_nodes(const NodeQueue& queue) {
  NodeQueue others;
  for (const auto& entry : queue) {
    if (comes_behind(entry.second)) {
      others.push_back(entry);
    } else if (!start_on_nodes(entry.second)) {
      reserve_nodes(entry.second, entry.first);
    }
  }
  if (policy_.backfill == Backfill::kNone) return;
  if (sorts_candidates(policy_.backfill)) {
    const auto key = [this](JobIndex index) {
      return nodes_->ends_by_requested ? job(index).requested
                                       : candidate_time(policy_.backfill, job(index));
    };
    std::stable_sort(others.begin(), others.end(), [&](const auto& a, const auto& b) {
      const Seconds key_a = key(a.second);
      const Seconds key_b = key(b.second);
      return key_a != key_b ? key_a < key_b : job(a.second).rank < job(b.second).rank;
    });
  }
  for (const auto& [place, index] : others) {
    if (never_fits(index) || !start_on_nodes(index)) note_waiting(index, place);
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

// Whether it is known in this pass that what the job asks for is not free for any time.
bool Engine::never_fits(JobIndex index) const {
  const std::int32_t asked = nodes_->request_of[static_cast<std::size_t>(index)];
  return nodes_->failed_time[static_cast<std::size_t>(asked)] == 0;
}

bool Engine::start_on_nodes(JobIndex index) {
  NodeScheduling& nodes = *nodes_;
  const ResourceRequest& request = nodes.request(index);
  const Seconds time = node_time(index);
  const std::int32_t asked = nodes.request_of[static_cast<std::size_t>(index)];
  Seconds& failed = nodes.failed_time[static_cast<std::size_t>(asked)];
  // Whom closures bar depends on the time limit, too.
  const bool meets_closures = request.meets_closures();
  if (time >= failed && !meets_closures) return false;
  const Seconds limit = job(index).time_limit;
  for (const PartitionChoice& choice : request.choices) {
    const bool head = nodes.waiting[static_cast<std::size_t>(choice.slurm_partition)] == 0;
    if (!head && policy_.backfill == Backfill::kNone) continue;
    if (!nodes.deferred.empty()) {
      if (!place_on_nodes(request, choice, 0, limit)) continue;
      reserve_deferred();
    }
    // First without the nodes that are reserved for later.
    StartedBy how = StartedBy::kHead;
    if (!head) how = head_only() ? StartedBy::kOutOfOrder : StartedBy::kBackfilled;
    auto shares = place_on_nodes(request, choice, head ? time : kNever, limit);
    if (!shares && !head && !nodes.reservations.empty()) {
      how = StartedBy::kBackfilled;
      shares = place_on_nodes(request, choice, time, limit);
    }
    if (!shares) continue;
    start(index, how);
    const Job& started = job(index);
    Seconds end = nodes.ends_by_requested ? started.hard_end() : started.expected_end;
    if (!head || !head_only()) {
      if (now_ + time != end) nodes.ends_changed = true;
      end = now_ + time;
      nodes.let_in.push_back(index);
    }
    nodes.pool.start(index, choice.slurm_partition, *shares, now_, end);
    full_pass_ = true;
    return true;
  }
  if (meets_closures) return false;
  if (failed == kNever) nodes.failed.push_back(asked);
  const bool for_no_time =
      std::none_of(request.choices.begin(), request.choices.end(), [&](const auto& choice) {
        return nodes.pool.has_free_cpus(request, choice);
      });
  failed = for_no_time ? 0 : time;
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
  nodes.deferred.push_back(index);
  if (!head_only()) reserve_deferred();
}

// A head job's reservation is made when a job comes up that could start but for it.
void Engine::reserve_deferred() {
  NodeScheduling& nodes = *nodes_;
  for (const JobIndex index : nodes.deferred) {
    NodeReservation held = planned_on_nodes(index, now_, kNever);
    nodes.pool.reserve(held.shares, held.slurm_partition, now_, held.start, held.end);
    nodes.reservations.push_back(std::move(held));
  }
  nodes.deferred.clear();
}

// The earliest start in any of its slurm_partitions; kNever if there is none before `before`.
NodeReservation Engine::planned_on_nodes(JobIndex index, Seconds from, Seconds before) {
  const ResourceRequest& request = nodes_->request(index);
  const Seconds time = node_time(index);
  NodeReservation best{index, 0, kNever, kNever, {}};
  const auto plan = [&](const PartitionChoice& choice, Seconds since, Seconds until) {
    PlannedPlace place =
        nodes_->pool.earliest(request, choice, since, std::min(until, best.start), time);
    if (place.start >= best.start) return;
    best = {index, choice.slurm_partition, place.start, place.start + time,
            std::move(place.shares)};
  };
  const Seconds limit = job(index).time_limit;
  for (const PartitionChoice& choice : request.choices) {
    if (choice.closures.empty()) {
      plan(choice, from, before);
      continue;
    }
    // From one of these moments to the next the same groups are open to a start.
    std::vector<Seconds> moments{from, before};
    for (const Closure& closure : choice.closures) {
      for (const Seconds moment : {closure.start - limit + 1, closure.end}) {
        if (moment > from && moment < before) moments.push_back(moment);
      }
    }
    std::sort(moments.begin(), moments.end());
    for (std::size_t i = 0; i + 1 < moments.size() && moments[i] < best.start; ++i) {
      const PartitionChoice open = choice.open_during(moments[i], moments[i] + limit);
      if (!open.groups.empty()) plan(open, moments[i], moments[i + 1]);
    }
  }
  return best;
}

// As on the flat pool, for the head job of each slurm_partition.
void Engine::guard_on_nodes(JobIndex head) {
  if (!policy_.guard) return;
  Job& blocked = job(head);
  if (blocked.planned_start == kNever) {
    reserve_deferred();
    set_node_ends(true);
    blocked.planned_start = planned_on_nodes(head, now_, kNever).start;
  }
  const Seconds deadline = blocked.planned_start + policy_.guard->bound;
  if (!blocked.guarded && now_ > deadline) {
    reserve_deferred();
    blocked.guarded = true;
    ++active_guards_;
    ++counters_.guard_activations;
  }
  if (!blocked.guarded) nodes_->next_deadline = std::min(nodes_->next_deadline, deadline);
  set_node_ends(active_guards_ > 0);
}

}  // namespace foretime
