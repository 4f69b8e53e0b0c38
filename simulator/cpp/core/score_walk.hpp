// A walk through the jobs of a ScoredQueue, the highest scores first, of which mostly only the
// first few are wanted.
//
// Of every block one job is in a heap: its best. The next of a block is looked for once its best
// was given. Blocks of which every job is allowed have their best at hand.
#pragma once

#include <algorithm>
#include <limits>
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
    bests_.clear();
    given_ = {};
    calls_ = 0;
    for (const ScoredQueue::Block& block : queue.blocks()) {
      const auto& bounds = block.summary;
      if (bounds.least_processors > room.free) break;
      if (room.allows(bounds.most_processors, bounds.most_backfill_time)) {
        const ScoredJob& leader = queue.leader_of(block, now);
        bests_.push_back({leader.score(order_, now), leader.rank, &leader, &block});
      } else {
        add_best(block, nullptr, room);
      }
    }
  }

  // The first of those that were not given yet and are allowed; null if there is none. From call to
  // call less may be allowed, never more.
  const ScoredJob* next(const Room& room) {
    if (given_.block != nullptr) add_best(*given_.block, &given_, room);
    given_ = {};
    if (calls_ == kFew) std::make_heap(bests_.begin(), bests_.end());
    ++calls_;
    if (calls_ > kFew) {
      take_from_heap(room);
    } else {
      take_first(room);
    }
    return given_.job;
  }

 private:
  static constexpr int kFew = 8;

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

  void take_first(const Room& room) {
    std::size_t first = 0;
    for (std::size_t i = 0; i < bests_.size();) {
      Best& best = bests_[i];
      if (!room.allows(*best.job) && !find_best(best, *best.block, &best, room)) {
        best = bests_.back();
        bests_.pop_back();
        continue;
      }
      if (bests_[first] < best) first = i;
      ++i;
    }
    if (bests_.empty()) return;
    given_ = bests_[first];
    bests_[first] = bests_.back();
    bests_.pop_back();
  }

  void take_from_heap(const Room& room) {
    while (!bests_.empty()) {
      const Best best = bests_.front();
      std::pop_heap(bests_.begin(), bests_.end());
      bests_.pop_back();
      if (room.allows(*best.job)) {
        given_ = best;
        return;
      }
      add_best(*best.block, &best, room);
    }
  }

  // Of the jobs of a block that are allowed and come after the given one; whether there is any.
  bool find_best(Best& best, const ScoredQueue::Block& block, const Best* after,
                 const Room& room) const {
    const auto& bounds = block.summary;
    if (!room.allows(bounds.least_processors, bounds.least_backfill_time)) return false;
    Best first;
    for (const ScoredJob& job : block) {
      if (job.processors > room.free) break;
      if (!room.allows(job)) continue;
      const Best found{job.score(order_, now_), job.rank, &job, &block};
      if (after != nullptr && !(found < *after)) continue;
      if (first.job == nullptr || first < found) first = found;
    }
    if (first.job == nullptr) return false;
    best = first;
    return true;
  }

  void add_best(const ScoredQueue::Block& block, const Best* after, const Room& room) {
    Best best;
    if (!find_best(best, block, after, room)) return;
    bests_.push_back(best);
    if (calls_ > kFew) std::push_heap(bests_.begin(), bests_.end());
  }

  Order order_ = Order::kWfp;
  Seconds now_ = 0;
  std::vector<Best> bests_;
  Best given_;
  int calls_ = 0;  // of next(); from the ninth on bests_ is a heap
};

}  // namespace foretime
