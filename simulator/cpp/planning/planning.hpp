#pragma once

#include <algorithm>

#include "planning/profile_planner.hpp"

namespace foretime {

class Planning final : public ProfilePlanner {
 public:
  using ProfilePlanner::ProfilePlanner;

 private:
  void plan(Seconds now, const QueueInOrder& queue, Starts& starts) override;
  Seconds next_planned_start() const override {
    return next_start_ > reached() ? next_start_ : kNever;
  }
  bool needs_order() const override { return true; }
  // Whether it stands where the order puts it is not known: all are planned anew.
  void resumed(JobIndex index) override {
    if (planned_start(index) > reached()) {
      next_start_ = std::min(next_start_, planned_start(index));
    }
    stuck_ = true;
  }

  void plan_all(Seconds now, const QueueInOrder& queue);

  Pending last_;  // nobody who is planned comes later in the queue
  bool any_planned_ = false;
  Seconds next_start_ = kNever;  // earliest planned start after the last pass
  bool stuck_ = false;           // somebody was planned for the last pass, but could not start
};

}  // namespace foretime
