// The pending jobs, in queue order.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "core/block_list.hpp"
#include "core/queue_score.hpp"
#include "core/scored_queue.hpp"
#include "core/types.hpp"

namespace foretime {

// Smaller keys come first. Under a time-dependent order the list is kept by submission.
inline std::int64_t queue_key(Order order, const Job& job) {
  switch (order) {
    case Order::kSjf:
      return job.queue_time;
    case Order::kLjf:
      return -job.queue_time;
    case Order::kPriority:
      return -job.priority;
    default:
      return 0;
  }
}

// The t_sched that orders candidates for backfilling; smaller comes first.
inline Seconds candidate_time(Backfill backfill, const Job& job) {
  return backfill == Backfill::kEasyWspt ? job.queue_time : job.backfill_time;
}

// Of candidates with ageing: greater scores come first. Their times count as time / (1 + wait /
// ageing).
inline double aged_score(Seconds time, Seconds wait, Seconds ageing) {
  return static_cast<double>(wait + ageing) / static_cast<double>(time);
}

struct Pending {
  std::int64_t key = 0;
  std::int64_t rank = 0;
  JobIndex job = 0;
  Processors processors = 0;
  Seconds backfill_time = 0;
  friend bool operator<(const Pending& a, const Pending& b) {
    return a.key != b.key ? a.key < b.key : a.rank < b.rank;
  }
};

// The least that any of a block's jobs needs.
struct Least {
  Processors processors = std::numeric_limits<Processors>::max();
  Seconds backfill_time = kNever;
  void add(const Pending& entry) {
    processors = std::min(processors, entry.processors);
    backfill_time = std::min(backfill_time, entry.backfill_time);
  }
  bool remove(const Pending& entry) const {
    return entry.processors > processors && entry.backfill_time > backfill_time;
  }
};

class Queue {
 public:
  // Under a backfilling that sorts candidates the jobs are also kept in that order, ties by
  // submission; under XF and WFP so that their scores are quickly found.
  Queue(Order order, Backfill backfill) : order_(order), backfill_(backfill) {
    if (grows_with_time(order)) scored_ = std::make_unique<ScoredQueue>(order);
  }

  bool empty() const { return list_.empty(); }
  std::size_t size() const { return list_.size(); }
  using Blocks = std::vector<BlockList<Pending, Least>::Block>;
  const Blocks& blocks() const { return list_.blocks(); }
  const Blocks& blocks_of_candidates() const { return candidates_.blocks(); }
  // Under XF and WFP.
  const ScoredQueue& by_score() const { return *scored_; }
  const Pending& front() const { return list_.front(); }
  void insert(JobIndex index, const Job& job) {
    list_.insert(entry(index, job));
    if (sorts_candidates(backfill_)) candidates_.insert(candidate(index, job));
    if (scored_) scored_->insert(index, job);
  }
  void erase(JobIndex index, const Job& job) {
    list_.erase(entry(index, job));
    if (sorts_candidates(backfill_)) candidates_.erase(candidate(index, job));
    if (scored_) scored_->erase(index, job);
  }
  Pending entry(JobIndex index, const Job& job) const {
    return {queue_key(order_, job), job.rank, index, job.processors, job.backfill_time};
  }
  Processors least_processors() const {
    if (scored_) return scored_->least_processors();
    Processors least = std::numeric_limits<Processors>::max();
    for (const auto& block : list_.blocks()) least = std::min(least, block.summary.processors);
    return least;
  }

 private:
  Pending candidate(JobIndex index, const Job& job) const {
    return {candidate_time(backfill_, job), job.rank, index, job.processors, job.backfill_time};
  }

  Order order_;
  Backfill backfill_;
  BlockList<Pending, Least> list_;
  BlockList<Pending, Least> candidates_;
  std::unique_ptr<ScoredQueue> scored_;  // under XF and WFP
};

// A pending job in an order that only holds for one pass.
struct Candidate {
  double score = 0;      // greater first
  std::int64_t key = 0;  // smaller first
  Pending entry;
  // For a heap whose top comes first.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    if (a.score != b.score) return a.score < b.score;
    return a.key != b.key ? a.key > b.key : a.entry.rank > b.entry.rank;
  }
};

}  // namespace foretime
