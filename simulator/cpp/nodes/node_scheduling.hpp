// What the engine keeps besides when the machine has nodes: who asks for what, and the
// reservations.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "nodes/node_pool.hpp"

namespace foretime {

// A place in the queue of all slurm_partitions: higher tiers first, then as the policy says.
struct QueuePlace {
  std::int64_t tier = 0;
  double score = 0;      // greater first
  std::int64_t key = 0;  // smaller first
  std::int64_t rank = 0;
  friend bool operator<(const QueuePlace& a, const QueuePlace& b) {
    if (a.tier != b.tier) return a.tier > b.tier;
    if (a.score != b.score) return a.score > b.score;
    return a.key != b.key ? a.key < b.key : a.rank < b.rank;
  }
};

struct NodeReservation {
  JobIndex job = 0;
  std::int32_t slurm_partition = 0;
  Seconds start = 0;
  Seconds end = 0;
  Shares shares;
};

struct NodeScheduling {
  NodeScheduling(const NodeMachine& machine, Seconds now)
      : pool(machine, now),
        waiting(machine.most_nodes_in_use.size(), 0),
        closed_at(machine.most_nodes_in_use.size()) {}

  Seconds first_planned_start(JobIndex job) const {
    const auto index = static_cast<std::size_t>(job);
    return index < first_planned.size() ? first_planned[index] : kNever;
  }
  void planned(const NodeReservation& held) {
    const auto index = static_cast<std::size_t>(held.job);
    if (index >= first_planned.size()) first_planned.resize(index + 1, kNever);
    if (first_planned[index] == kNever) first_planned[index] = held.start;
  }

  void note_closures(const ResourceRequest& request) {
    for (const PartitionChoice& choice : request.choices) {
      for (const Closure& closure : choice.closures) {
        const auto place = std::lower_bound(closure_ends.begin(), closure_ends.end(), closure.end);
        if (place == closure_ends.end() || *place != closure.end) {
          closure_ends.insert(place, closure.end);
        }
      }
    }
  }

  const ResourceRequest& request(JobIndex job) const {
    return (*requests)[static_cast<std::size_t>(request_of[static_cast<std::size_t>(job)])];
  }

  NodePool pool;
  // Shared by all engines that begin from one snapshot, which add none.
  std::shared_ptr<std::vector<ResourceRequest>> requests =
      std::make_shared<std::vector<ResourceRequest>>();
  std::vector<std::int32_t> request_of;  // by job
  std::vector<Seconds> closure_ends;     // ascending: when jobs may have nodes that they might not

  std::vector<Seconds> first_planned;  // by job; kNever where nothing is

  // Since the last pass of a family that keeps reservations:
  bool changed = false;  // nodes were given back, or a running job's estimate has changed
  bool anew = false;     // a job was changed from outside
  Seconds reached = std::numeric_limits<Seconds>::min();  // moments up to then are over

  // Kept from one full pass to the next.
  std::vector<NodeReservation> reservations;
  std::vector<JobIndex> deferred;     // whose reservations nobody has asked for yet
  std::vector<std::int64_t> waiting;  // by slurm_partition: jobs that could not start in it
  // By slurm_partition: the last job that held a reservation in it or was at its head. Jobs behind
  // it may only start if they delay nobody.
  std::vector<std::optional<QueuePlace>> closed_at;
  Seconds next_deadline = kNever;  // of the starvation guard
  bool ends_by_requested = false;  // when running jobs are taken to end
  bool ends_changed = false;
  std::vector<JobIndex> let_in;  // in this pass before others, for the time they were let in for
  // By request: the shortest time for which it did not fit in this pass.
  std::vector<Seconds> failed_time;
  std::vector<std::int32_t> failed;  // those for which there is one
  // By request, while reservations are only added: a time for which it was searched for a place,
  // and the start that was found. Nobody who needs as long can start before.
  std::vector<std::pair<Seconds, Seconds>> searched;
};

}  // namespace foretime
