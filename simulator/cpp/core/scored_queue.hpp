// The pending jobs under an order whose scores grow with time (XF, WFP): who is first now, and who
// needs little, without a look at all of them.
//
// Under both orders the place of a job goes by a line in time, slope * (now - zero): the score of
// XF is one, that of WFP the third power of one. Two lines cross once at most. So whoever leads the
// jobs of a block leads them until a moment that can be worked out beforehand (a kinetic
// tournament: Basch, Guibas and Hershberger 1999). Who leads is decided by the scores themselves;
// the lines only say for how long, with a margin far wider than the rounding of the scores.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/block_list.hpp"
#include "core/queue_score.hpp"
#include "core/types.hpp"

namespace foretime {

// A pending job: its needs, and its line.
struct ScoredJob {
  Processors processors = 0;
  Seconds backfill_time = 0;
  std::int64_t rank = 0;
  JobIndex job = 0;
  Seconds submit = 0;
  Seconds queue_time = 0;
  double slope = 0;
  Seconds zero = 0;

  double score(Order order, Seconds now) const {
    return queue_score(order, now - submit, queue_time, processors);
  }
  bool scores_as(const ScoredJob& other) const {
    return submit == other.submit && queue_time == other.queue_time &&
           processors == other.processors;
  }
  double line_at(Seconds now) const { return slope * static_cast<double>(now - zero); }
  // By what they need.
  friend bool operator<(const ScoredJob& a, const ScoredJob& b) {
    if (a.processors != b.processors) return a.processors < b.processors;
    return a.backfill_time != b.backfill_time ? a.backfill_time < b.backfill_time : a.rank < b.rank;
  }
};

class ScoredQueue {
 private:
  static constexpr Seconds kUnknown = std::numeric_limits<Seconds>::min();
  static constexpr Processors kMost = std::numeric_limits<Processors>::max();
  static constexpr std::size_t kMostUnseen = 64;
  static constexpr double kLongest = 1e15;  // seconds; more is for ever

  // Of a block: bounds of what its jobs need; who leads it, and how long for certain, which is
  // worked out when it is asked for.
  struct Lead {
    mutable Processors least_processors = kMost;  // or less; the others alike
    mutable Processors most_processors = 0;
    mutable Seconds least_backfill_time = kNever;
    mutable Seconds most_backfill_time = 0;
    mutable Seconds until = kUnknown;
    mutable ScoredJob leader;
    void add(const ScoredJob& entry) {
      widen(entry);
      until = kUnknown;
    }
    void widen(const ScoredJob& entry) const {
      least_processors = std::min(least_processors, entry.processors);
      most_processors = std::max(most_processors, entry.processors);
      least_backfill_time = std::min(least_backfill_time, entry.backfill_time);
      most_backfill_time = std::max(most_backfill_time, entry.backfill_time);
    }
    bool remove(const ScoredJob& entry) {
      if (entry.job == leader.job) until = kUnknown;
      return true;
    }
  };
  using List = BlockList<ScoredJob, Lead>;

 public:
  explicit ScoredQueue(Order order) : order_(order) {}

  Order order() const { return order_; }
  using Block = List::Block;
  // By what their jobs need.
  const std::vector<Block>& blocks() const { return list_.blocks(); }

  ScoredJob entry(JobIndex index, const Job& job) const {
    const auto time = static_cast<double>(job.queue_time);
    const bool is_xf = order_ == Order::kXf;
    const double slope = (is_xf ? 1.0 : std::cbrt(static_cast<double>(job.processors))) / time;
    return {job.processors, job.backfill_time,
            job.rank,       index,
            job.submit,     job.queue_time,
            slope,          is_xf ? job.submit - job.queue_time : job.submit};
  }

  void insert(JobIndex index, const Job& job) {
    const ScoredJob added = entry(index, job);
    list_.insert(added);
    if (leads_until_ == kUnknown) return;
    if (unseen_.size() < kMostUnseen) {
      unseen_.push_back(added);
    } else {
      forget_leader();
    }
  }

  void erase(JobIndex index, const Job& job) {
    list_.erase({job.processors, job.backfill_time, job.rank, index});
    if (leader_.job == index) forget_leader();
  }

  // The least that any job needs.
  Processors least_processors() const { return list_.empty() ? kMost : list_.front().processors; }

  // Who comes first now; there must be somebody.
  const ScoredJob& first(Seconds now) const {
    if (!still_leads(now)) find_leader(now);
    return leader_;
  }

  // The same of the jobs of a block.
  const ScoredJob& leader_of(const Block& block, Seconds now) const {
    if (block.summary.until < now) lead(block, now);
    return block.summary.leader;
  }

  // Those that need no more than so many processors, in no order that matters. Blocks of which
  // `skip` says so by the least that their jobs need are left out.
  template <class Skip, class Visit>
  void for_each_within(Processors processors, Skip skip, Visit visit) const {
    for (const auto& block : list_.blocks()) {
      if (block.summary.least_processors > processors) return;
      if (skip(block.summary.least_processors, block.summary.least_backfill_time)) continue;
      for (const ScoredJob& entry : block) {
        if (entry.processors > processors) return;
        visit(entry);
      }
    }
  }

 private:
  bool is_ahead(const ScoredJob& a, const ScoredJob& b, Seconds now) const {
    const double score_a = a.score(order_, now);
    const double score_b = b.score(order_, now);
    return score_a != score_b ? score_a > score_b : a.rank < b.rank;
  }

  // Until when a job stays ahead of another for certain: now, if that is too close to be told.
  static Seconds leads_until(const ScoredJob& leader, const ScoredJob& other, Seconds now) {
    if (leader.scores_as(other)) return kNever;
    // Scores are rounded by less than 1e-15 of themselves.
    constexpr double kSurely = 1 - 1e-11;
    const double at_leader = leader.line_at(now);
    const double ahead = at_leader * kSurely - other.line_at(now);
    if (!(at_leader > 0) || !(ahead > 0)) return now;
    const double gains = other.slope - leader.slope * kSurely;  // the other, in each second
    if (gains * kLongest <= ahead) return kNever;
    return now + static_cast<Seconds>(ahead / gains);
  }

  void forget_leader() {
    leads_until_ = kUnknown;
    unseen_.clear();
  }

  // With those that have come since it was found.
  bool still_leads(Seconds now) const {
    if (leads_until_ < now) return false;
    for (const ScoredJob& other : unseen_) {
      if (is_ahead(other, leader_, now)) return false;
      leads_until_ = std::min(leads_until_, leads_until(leader_, other, now));
    }
    unseen_.clear();
    return true;
  }

  void find_leader(Seconds now) const {
    const ScoredJob* best = nullptr;
    double best_score = 0;
    for (const auto& block : list_.blocks()) {
      const ScoredJob& leader = leader_of(block, now);
      const double score = leader.score(order_, now);
      if (best == nullptr || score > best_score ||
          (score == best_score && leader.rank < best->rank)) {
        best = &leader;
        best_score = score;
      }
    }
    leader_ = *best;
    leads_until_ = kNever;
    for (const auto& block : list_.blocks()) {
      const Seconds until = leads_until(leader_, block.summary.leader, now);
      leads_until_ = std::min({leads_until_, until, block.summary.until});
    }
    unseen_.clear();
  }

  void lead(const Block& block, Seconds now) const {
    const ScoredJob* best = block.begin();
    for (const ScoredJob& entry : block) {
      if (is_ahead(entry, *best, now)) best = &entry;
    }
    const Lead& found = block.summary;
    found.leader = *best;
    found.until = kNever;
    found.least_processors = block.begin()->processors;
    found.most_processors = block.last().processors;
    found.least_backfill_time = found.most_backfill_time = best->backfill_time;
    for (const ScoredJob& entry : block) {
      found.until = std::min(found.until, leads_until(*best, entry, now));
      found.least_backfill_time = std::min(found.least_backfill_time, entry.backfill_time);
      found.most_backfill_time = std::max(found.most_backfill_time, entry.backfill_time);
    }
  }

  Order order_;
  List list_;
  // Who leads all but the unseen, and how long for certain.
  mutable ScoredJob leader_;
  mutable Seconds leads_until_ = kUnknown;
  mutable std::vector<ScoredJob> unseen_;
};

}  // namespace foretime
