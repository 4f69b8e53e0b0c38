// What the families on a machine of nodes have in common: who has which nodes, what is reserved,
// and where a job fits. foretime_sim.reference.nodes is the specification.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "nodes/node_scheduling.hpp"
#include "planning/nodes/on_nodes.hpp"
#include "planning/queue_planner.hpp"

namespace foretime {

class NodePlanner : public QueuePlanner, public OnNodes {
 public:
  NodePlanner(const Scheduling& engine, NodeScheduling nodes)
      : QueuePlanner(engine), nodes_(std::move(nodes)) {}

  const NodeScheduling& nodes() const { return nodes_; }
  void record() override { nodes_.pool.record(true); }
  const std::vector<std::int64_t>& records() const override { return nodes_.pool.records(); }
  std::int32_t add_request(ResourceRequest request) override;
  void set_request(JobIndex index, std::int32_t request) override;
  const std::vector<std::int32_t>& request_of() const override { return nodes_.request_of; }
  bool has_room(std::int32_t request) override;
  std::int32_t slurm_partition_of(JobIndex index) const override {
    return nodes_.pool.slurm_partition_of(index);
  }
  std::vector<NodeRow> rows_of(JobIndex index) const override;
  const std::vector<NodeReservation>* node_reservations() const override {
    return &nodes_.reservations;
  }
  // A job that runs already, and is told of next, has these. One that is given none gets some as if
  // it started then; there must be room.
  void place(JobIndex index, std::int32_t slurm_partition, const Shares& shares);
  // Once it runs.
  void end_is_known(JobIndex index);

  void cancelled(JobIndex index) override;
  void runs_already(JobIndex index, Seconds now) override;
  void changed_running(JobIndex, Seconds /*now*/) override {
    nodes_.changed = nodes_.ends_changed = true;
  }
  void finished(JobIndex index, Seconds now) override;
  void changed_from_outside() override {
    nodes_.changed = nodes_.anew = nodes_.ends_changed = true;
  }
  void resume(const PlanNotes& notes, Seconds reached) override;
  std::optional<PlanNotes> notes() const override;
  Seconds next_moment() const override;
  void reached(Seconds now) override;
  Seconds planned_start(JobIndex index) const override;
  Seconds first_planned_start(JobIndex index) const override {
    return nodes_.first_planned_start(index);
  }
  std::optional<std::vector<JobIndex>> own_queue() const override;

 protected:
  using NodeQueue = std::vector<std::pair<QueuePlace, JobIndex>>;

  // Whether reservations hold from one pass to the next, and their starts are events.
  virtual bool keeps_plans() const { return true; }
  QueuePlace queue_place(JobIndex index) const;
  NodeQueue whole_queue() const;
  NodeQueue arrivals() const;
  // Whether everything must be looked at again: there is nothing to be kept of the last pass.
  bool all_has_changed() const;
  // Forgets all reservations, and what the last pass found.
  void begin_anew();

  void release(const NodeReservation& held);
  std::optional<Shares> place_now(const ResourceRequest& request, const PartitionChoice& choice,
                                  Seconds duration, Seconds time_limit);
  Seconds planned_time(JobIndex index) const;
  void set_ends(bool by_requested);
  NodeReservation planned(JobIndex index, Seconds from, Seconds before);

  NodeScheduling nodes_;
};

std::unique_ptr<NodePlanner> make_node_planner(const Scheduling& engine, NodeScheduling nodes);

}  // namespace foretime
