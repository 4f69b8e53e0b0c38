// Nodes that plans leave free for a time that moves on: each move costs little, however many plans
// there are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "planning/slurm/node_space.hpp"

namespace foretime {

class FreeWindow {
 public:
  // Of these nodes, from start to end as NodeSpace::leave_free() has it; all are to outlive it.
  void begin(const NodeSpace& space, const NodeSet& nodes, Seconds start, Seconds end) {
    space_ = &space;
    nodes_ = &nodes;
    work_out(start, end);
  }
  // Neither goes back.
  void move(Seconds start, Seconds end) {
    for (; next_ < space_->planned() && space_->plan(next_).begin <= end; ++next_) {
      const NodeSpace::Plan& plan = space_->plan(next_);
      entered_.add(plan.nodes, plan.extent);
      entered_until_ = std::min(entered_until_, plan.end);
    }
    const std::size_t gone_before = gone_;
    while (gone_ < plans_.size() && plans_[gone_]->end <= start) ++gone_;
    if (entered_until_ <= start) {
      work_out(start, end);
    } else if (gone_ > gone_before) {
      take_those_left();
    }
  }
  void leave_free(NodeSet& free) const {
    free = *nodes_;
    free -= entered_;
    free -= left_;
  }

 private:
  static constexpr std::size_t kBlock = 16;

  void work_out(Seconds start, Seconds end) {
    plans_.clear();
    for (std::size_t place = 0; place < space_->planned(); ++place) {
      const NodeSpace::Plan& plan = space_->plan_by_end(place);
      if (plan.end > start && plan.begin <= end) plans_.push_back(&plan);
    }
    next_ = space_->first_beginning_after(end);
    const std::size_t blocks = plans_.size() / kBlock;
    if (taken_.size() <= blocks) taken_.resize(blocks + 1, NodeSet(space_->nodes()));
    taken_[blocks].clear();
    take(blocks * kBlock, plans_.size(), taken_[blocks]);
    for (std::size_t block = blocks; block-- > 0;) {
      taken_[block] = taken_[block + 1];
      take(block * kBlock, (block + 1) * kBlock, taken_[block]);
    }
    gone_ = 0;
    take_those_left();
    entered_ = *nodes_;
    entered_.clear();
    entered_until_ = kNever;
  }
  void take_those_left() {
    const std::size_t block = gone_ / kBlock + 1;
    if (block < taken_.size() && block * kBlock <= plans_.size()) {
      left_ = taken_[block];
      take(gone_, block * kBlock, left_);
    } else {
      left_ = *nodes_;
      left_.clear();
      take(gone_, plans_.size(), left_);
    }
  }
  void take(std::size_t first, std::size_t last, NodeSet& nodes) const {
    for (std::size_t place = first; place < last; ++place) {
      nodes.add(plans_[place]->nodes, plans_[place]->extent);
    }
  }

  const NodeSpace* space_ = nullptr;
  const NodeSet* nodes_ = nullptr;
  std::vector<const NodeSpace::Plan*> plans_;  // that were there as it was worked out, by ends
  std::vector<NodeSet> taken_;                 // by all of them from each block's first on
  std::size_t gone_ = 0;
  NodeSet left_;          // taken by those that are not gone
  std::size_t next_ = 0;  // of all plans, by begins
  NodeSet entered_;       // taken by those that came in since
  Seconds entered_until_ = kNever;
};

}  // namespace foretime
