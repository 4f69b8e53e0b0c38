// No backfilling, EASY with any depth and first-fit on nodes: in each slurm_partition the first
// jobs that have to wait hold reservations.
#pragma once

#include "planning/nodes/node_planner.hpp"

namespace foretime {

class NodeFirst final : public NodePlanner {
 public:
  using NodePlanner::NodePlanner;

  void schedule(Seconds now, const Queue& queue, Pass& pass) override;
  std::optional<PlanNotes> notes() const override;

 private:
  bool keeps_plans() const override { return !head_only(); }
  bool head_only() const;
  bool comes_behind(JobIndex index) const;
  void note_waiting(JobIndex index, const QueuePlace& place);
  void plan_first(const NodeQueue& queue, Pass& pass);
  bool never_fits(JobIndex index) const;
  bool start_if_possible(JobIndex index, Pass& pass);
  void reserve(JobIndex index, const QueuePlace& place);
  void reserve_deferred();
  void guard(JobIndex head);

  const std::int64_t depth_ = policy_.backfill == Backfill::kFirstFit
                                  ? 0
                                  : settings_of<EasySettings>(policy_.settings).depth;
};

}  // namespace foretime
