#pragma once

#include "planning/profile_planner.hpp"

namespace foretime {

class DepthLimited final : public ProfilePlanner {
 public:
  using ProfilePlanner::ProfilePlanner;

 private:
  void plan(Seconds now, const QueueInOrder& queue, Starts& starts) override;
  Seconds next_planned_start() const override;
  void resumed(JobIndex index) override { reserved_.push_back(index); }
  bool needs_order() const override { return true; }

  bool holds(Seconds now, const QueueInOrder& queue, const std::vector<JobIndex>& arrivals) const;
  void start_or_reserve(Seconds now, const Pending& entry, Starts& starts);
  void start_sorted(Seconds now, Starts& starts);
  bool may_start(Seconds now, const Pending& entry);
  void start_now(Seconds now, const Pending& entry, Starts& starts);

  const std::size_t depth_ =
      is_easy(policy().backfill)
          ? static_cast<std::size_t>(settings_of<EasySettings>(policy().settings).depth)
          : 0;
  std::vector<JobIndex> reserved_;  // of the last pass, in queue order
  Processors free_ = 0;             // in this pass
  bool blocked_ = false;            // a job of this pass has to wait
  Pending last_;                    // of the last pass: the last one that got a reservation
  Seconds due_ = kLongAgo;          // when the reservations must be looked at again
  std::vector<Pending> candidates_;
};

}  // namespace foretime
