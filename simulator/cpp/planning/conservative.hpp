#pragma once

#include "planning/profile_planner.hpp"

namespace foretime {

class Conservative : public ProfilePlanner {
 public:
  using ProfilePlanner::ProfilePlanner;

 protected:
  struct Promise {
    Seconds start = 0;
    std::int64_t rank = 0;
    JobIndex job = 0;
    Processors processors = 0;
    friend bool operator<(const Promise& a, const Promise& b) {
      return a.start != b.start ? a.start < b.start : a.rank < b.rank;
    }
  };
  struct LeastProcessors {
    Processors processors = std::numeric_limits<Processors>::max();
    void add(const Promise& promise) { processors = std::min(processors, promise.processors); }
    bool remove(const Promise& promise) const { return promise.processors > processors; }
  };

  void plan(Seconds now, const QueueInOrder& queue, Starts& starts) override;
  bool needs_order() const override { return arrivals().size() > 1; }

  // Jobs that have joined those that wait.
  void wait(const std::vector<JobIndex>& jobs);
  // Whose planned start is past could not start then.
  bool is_stuck(Seconds now) const { return !promises_.empty() && promises_.front().start < now; }
  std::vector<JobIndex> promised(bool by_submission);
  bool all_hold() const;
  void reinsert(Seconds now, const std::vector<JobIndex>& jobs);
  // Moves jobs up into what has been gained, in the order of their planned starts.
  void compress_in_order(Seconds now);
  void start_due(Seconds now, Starts& starts);
  // Gives what is free once room has been made for a job that is due, if it can be.
  virtual Processors make_room(Processors /*needed*/, Processors free) { return free; }
  const BlockList<Promise, LeastProcessors>& promises() const { return promises_; }

 private:
  void now_planned(JobIndex index) override;
  void no_longer_planned(JobIndex index) override;
  void resumed(JobIndex index) override;
  Seconds next_planned_start() const override;

  Promise promise_of(JobIndex index) const;
  void renew(Seconds now, bool stuck);
  void compress(Seconds now);
  void compress_one_by_one(Seconds now);
  bool try_to_move(JobIndex index, Seconds from);
  void apply_moves();
  void insert_arrivals(Seconds now, const QueueInOrder& queue);

  // A family that builds on this one has settings of its own.
  const Compression compression_ =
      policy().backfill == Backfill::kConservative
          ? settings_of<ConservativeSettings>(policy().settings).compression
          : Compression::kReservationOrder;
  BlockList<Promise, LeastProcessors> promises_;  // by planned start
  std::vector<JobIndex> waiting_;                 // by submission; some have started since
  std::vector<Promise> moved_;                    // as they were before
  // Submission order: some were inserted in another order.
  bool out_of_order_ = false;
  // One by one: within these something was given up after others had been tried.
  Seconds left_over_from_ = kNever;
  Seconds left_over_until_ = kLongAgo;
};

}  // namespace foretime
