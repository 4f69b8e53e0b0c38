// A walk through the jobs of a ScoredQueue, the highest scores first, of which mostly only the
// first few are wanted.
//
// Of every block one job is in a heap: its best. The next of a block is looked for once its best
// was given. Blocks of which every job is allowed have their best at hand.
#pragma once

#include <algorithm>
#include <vector>

#include "core/scored_queue.hpp"
#include "core/types.hpp"

namespace foretime {

// Which jobs are wanted: those that fit and leave the extra processors alone or end in time.
struct Room {
  Processors free = std::numeric_limits<Processors>::max();
  Processors extra = std::numeric_limits<Processors>::max();
  Seconds time = kNever;

  bool allows(Processors processors, Seconds backfill_time) const {
    return processors <= free && (processors <= extra || backfill_time <= time);
  }
  bool allows(const ScoredJob& job) const { return allows(job.processors, job.backfill_time); }
};

class ScoreWalk {
 public:
  // The queue must not change during the walk.
  void begin(const ScoredQueue& queue, Seconds now, const Room& room) {
    order_ = queue.order();
    now_ = now;
    heap_.clear();
    given_ = {};
    for (const ScoredQueue::Block& block : queue.blocks()) {
      const Processors least = block.begin()->processors;
      if (least > room.free) break;
      if (!room.allows(least, block.summary.least_backfill_time)) continue;
      if (room.allows(block.last().processors, block.summary.most_backfill_time)) {
        const ScoredJob& leader = queue.leader_of(block, now);
        heap_.push_back({leader.score(order_, now), leader.rank, &leader, &block});
      } else {
        push_best(block, nullptr, room);
      }
    }
    std::make_heap(heap_.begin(), heap_.end());
  }

  // The first of those that were not given yet and are allowed; null if there is none. From call to
  // call less may be allowed, never more.
  const ScoredJob* next(const Room& room) {
    while (true) {
      if (given_.block != nullptr && push_best(*given_.block, &given_, room)) {
        std::push_heap(heap_.begin(), heap_.end());
      }
      given_ = {};
      if (heap_.empty()) return nullptr;
      given_ = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
      if (room.allows(*given_.job)) return given_.job;
    }
  }

 private:
  struct Best {
    double score = 0;
    std::int64_t rank = 0;
    const ScoredJob* job = nullptr;
    const ScoredQueue::Block* block = nullptr;
    // For a heap whose top comes first.
    friend bool operator<(const Best& a, const Best& b) {
      return a.score != b.score ? a.score < b.score : a.rank > b.rank;
    }
  };

  // Of the jobs of a block that are allowed and come after the given one; whether there is any.
  bool push_best(const ScoredQueue::Block& block, const Best* after, const Room& room) {
    Best best;
    for (const ScoredJob& job : block) {
      if (job.processors > room.free) break;
      if (!room.allows(job)) continue;
      const Best found{job.score(order_, now_), job.rank, &job, &block};
      if (after != nullptr && !(found < *after)) continue;
      if (best.job == nullptr || best < found) best = found;
    }
    if (best.job == nullptr) return false;
    heap_.push_back(best);
    return true;
  }

  Order order_ = Order::kWfp;
  Seconds now_ = 0;
  std::vector<Best> heap_;
  Best given_;
};

}  // namespace foretime
