#include "planning/nodes/node_first.hpp"

#include <algorithm>

namespace foretime {

void NodeFirst::schedule(Seconds /*now*/, const Queue& /*queue*/, Pass& pass) {
  const bool full = all_has_changed();
  nodes_.ends_changed |= availability_.drifts();
  if (full) begin_anew();
  nodes_.failed_time.resize(nodes_.requests->size(), kNever);
  plan_first(full ? whole_queue() : arrivals(), pass);
}

// Reservations are taken over only where more than a head job is planned: those of head jobs are
// made anew in every pass that needs to know them.
std::optional<PlanNotes> NodeFirst::notes() const {
  return head_only() || depth_ == 0 ? std::nullopt : NodePlanner::notes();
}

// Most jobs that hold a reservation in each slurm_partition.
// Where at most the head job of each slurm_partition is planned.
bool NodeFirst::head_only() const { return depth_ == 1; }

// Reservations for the first jobs of each slurm_partition that have to wait; of the others, those
// that fit now.
void NodeFirst::plan_first(const NodeQueue& queue, Pass& pass) {
  NodeQueue others;
  for (const auto& entry : queue) {
    if (comes_behind(entry.second)) {
      others.push_back(entry);
    } else if (!start_if_possible(entry.second, pass)) {
      reserve(entry.second, entry.first);
    }
  }
  if (policy_.backfill == Backfill::kNone) return;
  if (sorts_candidates(policy_.backfill)) {
    const auto key = [this](JobIndex index) {
      return nodes_.ends_by_requested ? job(index).requested
                                      : candidate_time(policy_.backfill, job(index));
    };
    std::stable_sort(others.begin(), others.end(), [&](const auto& a, const auto& b) {
      const Seconds key_a = key(a.second);
      const Seconds key_b = key(b.second);
      return key_a != key_b ? key_a < key_b : job(a.second).rank < job(b.second).rank;
    });
  }
  for (const auto& [place, index] : others) {
    if (never_fits(index) || !start_if_possible(index, pass)) note_waiting(index, place);
  }
}

bool NodeFirst::comes_behind(JobIndex index) const {
  const auto& choices = nodes_.request(index).choices;
  return std::all_of(choices.begin(), choices.end(), [this](const PartitionChoice& choice) {
    return nodes_.waiting[static_cast<std::size_t>(choice.slurm_partition)] >= depth_;
  });
}

void NodeFirst::note_waiting(JobIndex index, const QueuePlace& place) {
  const std::int64_t closing = std::max<std::int64_t>(1, depth_);
  for (const PartitionChoice& choice : nodes_.request(index).choices) {
    const auto partition = static_cast<std::size_t>(choice.slurm_partition);
    if (++nodes_.waiting[partition] == closing) nodes_.closed_at[partition] = place;
  }
}

// Whether it is known in this pass that what the job asks for is not free for any time.
bool NodeFirst::never_fits(JobIndex index) const {
  const std::int32_t asked = nodes_.request_of[static_cast<std::size_t>(index)];
  return nodes_.failed_time[static_cast<std::size_t>(asked)] == 0;
}

bool NodeFirst::start_if_possible(JobIndex index, Pass& pass) {
  const ResourceRequest& request = nodes_.request(index);
  const Seconds time = planned_time(index);
  const std::int32_t asked = nodes_.request_of[static_cast<std::size_t>(index)];
  Seconds& failed = nodes_.failed_time[static_cast<std::size_t>(asked)];
  // Whom closures bar depends on the time limit, too.
  const bool meets_closures = request.meets_closures();
  if (time >= failed && !meets_closures) return false;
  const Seconds limit = job(index).time_limit;
  for (const PartitionChoice& choice : request.choices) {
    const bool head = nodes_.waiting[static_cast<std::size_t>(choice.slurm_partition)] == 0;
    if (!head && policy_.backfill == Backfill::kNone) continue;
    if (!nodes_.deferred.empty()) {
      if (!place_now(request, choice, 0, limit)) continue;
      reserve_deferred();
    }
    // First without the nodes that are reserved for later.
    StartedBy how = StartedBy::kHead;
    if (!head) how = head_only() ? StartedBy::kOutOfOrder : StartedBy::kBackfilled;
    auto shares = place_now(request, choice, head ? time : kNever, limit);
    if (!shares && !head && !nodes_.reservations.empty()) {
      how = StartedBy::kBackfilled;
      shares = place_now(request, choice, time, limit);
    }
    if (!shares) continue;
    pass.start(index, how);
    const Job& started = job(index);
    Seconds end = nodes_.ends_by_requested ? started.hard_end() : started.expected_end;
    if (!head || !head_only()) {
      if (now_ + time != end) nodes_.ends_changed = true;
      end = now_ + time;
      nodes_.let_in.push_back(index);
    }
    nodes_.pool.start(index, choice.slurm_partition, *shares, now_, end);
    full_pass_ = true;
    return true;
  }
  if (meets_closures) return false;
  if (failed == kNever) nodes_.failed.push_back(asked);
  const bool for_no_time = std::none_of(
      request.choices.begin(), request.choices.end(),
      [this, &request](const auto& c) { return nodes_.pool.has_free_cpus(request, c); });
  failed = for_no_time ? 0 : time;
  return false;
}

void NodeFirst::reserve(JobIndex index, const QueuePlace& place) {
  const ResourceRequest& request = nodes_.request(index);
  bool first = false;
  for (const PartitionChoice& choice : request.choices) {
    first |= nodes_.waiting[static_cast<std::size_t>(choice.slurm_partition)] == 0;
  }
  note_waiting(index, place);
  if (policy_.backfill == Backfill::kNone) return;
  if (first) guard(index);
  nodes_.deferred.push_back(index);
  if (!head_only()) reserve_deferred();
}

// A head job's reservation is made when a job comes up that could start but for it.
void NodeFirst::reserve_deferred() {
  for (const JobIndex index : nodes_.deferred) {
    NodeReservation held = planned(index, now_, kNever);
    nodes_.pool.reserve(held.shares, held.slurm_partition, now_, held.start, held.end);
    nodes_.reservations.push_back(std::move(held));
  }
  nodes_.deferred.clear();
}

// As on the flat pool, for the head job of each slurm_partition.
void NodeFirst::guard(JobIndex head) {
  if (!policy_.guard) return;
  Job& blocked = job(head);
  if (blocked.planned_start == kNever) {
    reserve_deferred();
    set_ends(true);
    blocked.planned_start = planned(head, now_, kNever).start;
  }
  const Seconds deadline = blocked.planned_start + policy_.guard->bound;
  if (!blocked.guarded && now_ > deadline) {
    reserve_deferred();
    activate_guard(blocked);
  }
  if (!blocked.guarded) nodes_.next_deadline = std::min(nodes_.next_deadline, deadline);
  set_ends(active_guards_ > 0);
}

}  // namespace foretime
