// Planning and conservative backfilling on nodes: every waiting job is planned.
#pragma once

#include "planning/nodes/node_planner.hpp"

namespace foretime {

class NodePlans : public NodePlanner {
 public:
  using NodePlanner::NodePlanner;

 protected:
  void forget_searches();
  void promise(JobIndex index);
  // Starts who is planned for now and can; the others stay planned.
  void start_planned(Pass& pass);
};

class NodePlanning final : public NodePlans {
 public:
  using NodePlans::NodePlans;
  void schedule(Seconds now, const Queue& queue, Pass& pass) override;
};

class NodeConservative final : public NodePlans {
 public:
  using NodePlans::NodePlans;
  void schedule(Seconds now, const Queue& queue, Pass& pass) override;

 private:
  bool by_submission() const { return compression_ == Compression::kSubmissionOrder; }
  void reinsert(std::vector<NodeReservation> jobs);
  void compress();

  const Compression compression_ = settings_of<ConservativeSettings>(policy_.settings).compression;
};

}  // namespace foretime
