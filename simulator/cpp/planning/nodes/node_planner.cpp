#include "planning/nodes/node_planner.hpp"

#include <algorithm>

#include "planning/nodes/node_first.hpp"
#include "planning/nodes/node_plans.hpp"

namespace foretime {

std::int32_t NodePlanner::add_request(ResourceRequest request) {
  nodes_.note_closures(request);
  nodes_.requests->push_back(std::move(request));
  return static_cast<std::int32_t>(nodes_.requests->size()) - 1;
}

void NodePlanner::set_request(JobIndex index, std::int32_t request) {
  auto& request_of = nodes_.request_of;
  if (static_cast<std::size_t>(index) >= request_of.size()) {
    request_of.resize(static_cast<std::size_t>(index) + 1, 0);
  }
  request_of[static_cast<std::size_t>(index)] = request;
}

bool NodePlanner::has_room(std::int32_t request) {
  const ResourceRequest& asked = (*nodes_.requests)[static_cast<std::size_t>(request)];
  return std::any_of(asked.choices.begin(), asked.choices.end(), [&](const auto& choice) {
    return nodes_.pool.place_now(asked, choice, now_, 0).has_value();
  });
}

std::vector<NodeRow> NodePlanner::rows_of(JobIndex index) const {
  std::vector<NodeRow> rows;
  for (const Share& share : nodes_.pool.shares_of(index)) {
    rows.push_back({nodes_.pool.first_node_of(share.unit), share.nodes, share.node});
  }
  return rows;
}

void NodePlanner::place(JobIndex index, std::int32_t slurm_partition, const Shares& shares) {
  nodes_.pool.start(index, slurm_partition, shares, now_, now_);
}

void NodePlanner::end_is_known(JobIndex index) {
  nodes_.pool.set_end(index, now_, availability_.expected_end(index));
}

void NodePlanner::cancelled(JobIndex index) {
  std::erase(nodes_.deferred, index);
  auto& reservations = nodes_.reservations;
  const auto held = std::find_if(reservations.begin(), reservations.end(),
                                 [index](const auto& other) { return other.job == index; });
  if (held == reservations.end()) return;
  release(*held);
  reservations.erase(held);
}

void NodePlanner::runs_already(JobIndex index, Seconds now) {
  if (nodes_.pool.slurm_partition_of(index) >= 0) return;
  const ResourceRequest& asked = nodes_.request(index);
  for (const PartitionChoice& choice : asked.choices) {
    const auto shares = nodes_.pool.place_now(asked, choice, now, 0);
    if (!shares) continue;
    const Seconds end = availability_.expected_end(index);
    nodes_.pool.start(index, choice.slurm_partition, *shares, now, end);
    return;
  }
}

void NodePlanner::finished(JobIndex index, Seconds now) {
  nodes_.pool.finish(index, now);
  nodes_.changed = true;
}

std::optional<PlanNotes> NodePlanner::notes() const {
  PlanNotes notes;
  notes.changed = nodes_.changed;
  notes.broken = nodes_.anew;
  return notes;
}

void NodePlanner::resume(const PlanNotes& notes, Seconds reached) {
  nodes_.reached = reached;
  nodes_.changed = notes.changed;
  nodes_.anew = notes.broken;
  std::erase_if(arrived_, [this](JobIndex index) {
    return std::any_of(nodes_.reservations.begin(), nodes_.reservations.end(),
                       [index](const NodeReservation& held) { return held.job == index; });
  });
}

QueuePlace NodePlanner::queue_place(JobIndex index) const {
  const Job& waiting = job(index);
  const double score =
      is_time_dependent(policy_.order) ? queue_score(policy_.order, waiting, now_) : 0.0;
  return {nodes_.request(index).tier, score, queue_key(policy_.order, waiting), waiting.rank};
}

// The waiting jobs in order.
NodePlanner::NodeQueue NodePlanner::whole_queue() const {
  NodeQueue queue;
  // They are kept in the policy's order, if that does not change with time: only tiers are to be
  // told apart.
  const bool changes = is_time_dependent(policy_.order);
  std::vector<std::pair<std::int64_t, NodeQueue>> tiers;
  for (const auto& block : queue_.blocks()) {
    for (const Pending& entry : block) {
      // What does not change with time is known without a look at the job.
      const QueuePlace place =
          changes ? queue_place(entry.job)
                  : QueuePlace{nodes_.request(entry.job).tier, 0.0, entry.key, entry.rank};
      auto tier = std::find_if(tiers.begin(), tiers.end(),
                               [&place](const auto& known) { return known.first == place.tier; });
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
  if (!std::is_sorted(queue.begin(), queue.end())) std::sort(queue.begin(), queue.end());
  return queue;
}

// Those that have arrived since the last pass, in order.
NodePlanner::NodeQueue NodePlanner::arrivals() const {
  NodeQueue queue;
  for (const JobIndex index : arrived_) queue.emplace_back(queue_place(index), index);
  if (!std::is_sorted(queue.begin(), queue.end())) std::sort(queue.begin(), queue.end());
  return queue;
}

std::optional<std::vector<JobIndex>> NodePlanner::own_queue() const {
  std::vector<JobIndex> jobs;
  for (const auto& [place, index] : whole_queue()) jobs.push_back(index);
  return jobs;
}

// As on the flat pool, what is planned is an event where more than a head job is planned.
// So is the end of a closure.
Seconds NodePlanner::next_moment() const {
  const auto& ends = nodes_.closure_ends;
  const auto opens = std::upper_bound(ends.begin(), ends.end(), nodes_.reached);
  Seconds next = opens == ends.end() ? kNever : *opens;
  if (!keeps_plans()) return next;
  for (const NodeReservation& held : nodes_.reservations) {
    if (held.start > nodes_.reached) next = std::min(next, held.start);
  }
  return next;
}

void NodePlanner::reached(Seconds now) {
  const auto& ends = nodes_.closure_ends;
  const auto opens = std::upper_bound(ends.begin(), ends.end(), nodes_.reached);
  if (opens != ends.end() && *opens <= now) full_pass_ = true;
  nodes_.reached = now;
}

Seconds NodePlanner::planned_start(JobIndex index) const {
  for (const NodeReservation& held : nodes_.reservations) {
    if (held.job == index) return held.start;
  }
  return kNever;
}

// A pass over the jobs that have arrived is enough if they stand behind the reservations.
bool NodePlanner::all_has_changed() const {
  if (full_pass_ || is_time_dependent(policy_.order) || availability_.drifts() ||
      active_guards_ > 0 || now_ > nodes_.next_deadline) {
    return true;
  }
  if (keeps_plans() &&
      std::any_of(nodes_.reservations.begin(), nodes_.reservations.end(),
                  [this](const NodeReservation& held) { return held.start <= now_; })) {
    return true;
  }
  return std::any_of(arrived_.begin(), arrived_.end(), [this](JobIndex index) {
    const QueuePlace place = queue_place(index);
    const auto& choices = nodes_.request(index).choices;
    return std::any_of(choices.begin(), choices.end(), [&](const PartitionChoice& choice) {
      const auto& closed = nodes_.closed_at[static_cast<std::size_t>(choice.slurm_partition)];
      return !closed || place < *closed;
    });
  });
}

void NodePlanner::begin_anew() {
  set_ends(active_guards_ > 0);
  full_pass_ = false;
  for (const NodeReservation& held : nodes_.reservations) release(held);
  nodes_.reservations.clear();
  nodes_.deferred.clear();
  if (!nodes_.let_in.empty()) {
    nodes_.let_in.clear();
    nodes_.ends_changed = true;
    set_ends(active_guards_ > 0);
  }
  std::fill(nodes_.waiting.begin(), nodes_.waiting.end(), 0);
  std::fill(nodes_.closed_at.begin(), nodes_.closed_at.end(), std::nullopt);
  for (const std::int32_t failed : nodes_.failed) {
    nodes_.failed_time[static_cast<std::size_t>(failed)] = kNever;
  }
  nodes_.failed.clear();
  nodes_.next_deadline = kNever;
}

void NodePlanner::release(const NodeReservation& held) {
  nodes_.pool.unreserve(held.shares, held.slurm_partition, now_, held.start, held.end);
}

// Where the job fits from now on for the duration, on nodes that are open until its time limit.
std::optional<Shares> NodePlanner::place_now(const ResourceRequest& request,
                                             const PartitionChoice& choice, Seconds duration,
                                             Seconds time_limit) {
  if (choice.closures.empty()) return nodes_.pool.place_now(request, choice, now_, duration);
  return nodes_.pool.place_now(request, choice.open_during(now_, now_ + time_limit), now_,
                               duration);
}

Seconds NodePlanner::planned_time(JobIndex index) const {
  const Job& planned = job(index);
  return nodes_.ends_by_requested ? planned.requested : planned.backfill_time;
}

// When the plans take running jobs to end.
void NodePlanner::set_ends(bool by_requested) {
  if (!nodes_.ends_changed && nodes_.ends_by_requested == by_requested) return;
  nodes_.ends_changed = false;
  nodes_.ends_by_requested = by_requested;
  for (const JobIndex index : availability_.running()) {
    if (std::find(nodes_.let_in.begin(), nodes_.let_in.end(), index) != nodes_.let_in.end())
      continue;
    nodes_.pool.set_end(index, now_,
                        by_requested ? job(index).hard_end() : availability_.expected_end(index));
  }
}

// The earliest start in any of its slurm_partitions; kNever if there is none before `before`.
NodeReservation NodePlanner::planned(JobIndex index, Seconds from, Seconds before) {
  const ResourceRequest& request = nodes_.request(index);
  const Seconds time = planned_time(index);
  NodeReservation best{index, 0, kNever, kNever, {}};
  const auto plan = [&](const PartitionChoice& choice, Seconds since, Seconds until) {
    PlannedPlace place =
        nodes_.pool.earliest(request, choice, since, std::min(until, best.start), time);
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

std::unique_ptr<NodePlanner> make_node_planner(const Scheduling& engine, NodeScheduling nodes) {
  switch (engine.policy.backfill) {
    case Backfill::kConservative:
      return std::make_unique<NodeConservative>(engine, std::move(nodes));
    case Backfill::kPlanning:
      return std::make_unique<NodePlanning>(engine, std::move(nodes));
    default:
      return std::make_unique<NodeFirst>(engine, std::move(nodes));
  }
}

}  // namespace foretime
