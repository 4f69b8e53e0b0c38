#pragma once

#include "planner.hpp"

namespace foretime {

class DepthLimited final : public Planner {
 public:
  using Planner::Planner;

 private:
  void plan(Seconds now, const QueueInOrder& queue, Starts& starts) override;
  Seconds next_planned_start() const override;
  bool needs_order() const override { return true; }

  std::size_t depth() const;
  void start_or_reserve(Seconds now, const Pending& entry, Starts& starts);
  void start_behind(Seconds now, std::vector<Pending>& candidates, Starts& starts);
  bool may_start(Seconds now, const Pending& entry) const;
  void start_now(Seconds now, const Pending& entry, Starts& starts);

  std::vector<JobIndex> reserved_;  // of the last pass, in queue order
  Processors free_ = 0;             // in this pass
  bool blocked_ = false;            // a job of this pass has to wait
};

}  // namespace foretime
