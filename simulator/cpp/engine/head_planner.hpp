// Where at most the head job of a flat pool is planned: no backfilling, EASY, first-fit, and
// backfilling from outside.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/score_walk.hpp"
#include "engine/plain_easy.hpp"
#include "planning/queue_planner.hpp"

namespace foretime {

class HeadPlanner final : public QueuePlanner {
 public:
  HeadPlanner(const Scheduling& engine, Processors machine);
  // From when on the head jobs are blocked is noted, even where nothing can start.
  void watch_heads() { watches_ = true; }

  void submitted(JobIndex index) override;
  void started(JobIndex index, Seconds now) override;
  void runs_already(JobIndex, Seconds /*now*/) override {}
  void finished(JobIndex index, Seconds now) override;
  void updated(JobIndex index) override;
  void withdrawn(JobIndex index) override;
  void schedule(Seconds now, const Queue& queue, Pass& pass) override;
  bool plans_head_alone() const override { return true; }
  Seconds planned_start(JobIndex head) const override;

 private:
  // head_planner.cpp: starting jobs in queue order until one does not fit
  void pass_in_order(bool full, Pass& pass);
  void pass_by_score(Pass& pass);
  void start_first_by_score(Pass& pass);
  void score_all();
  static Pending pending(const ScoredJob& scored) {
    return {0, scored.rank, scored.job, scored.processors, scored.backfill_time};
  }
  bool guard(JobIndex head);
  bool has_own_order(bool on_requested) const;
  std::vector<Pending> queue_in_order();
  void backfill_outside(bool on_requested, Pass& pass);

  // easy.cpp: what may start before the head job
  void backfill_blocks(const Queue::Blocks& blocks, JobIndex head, bool on_requested, Pass& pass);
  void backfill_candidates(bool on_requested, Pass& pass);
  void backfill_by_score(JobIndex head, Pass& pass);
  void make_plan(JobIndex head, bool on_requested);
  bool may_start(JobIndex head, Processors processors, Seconds time, bool on_requested);
  bool none_may_start(const Least& least, Processors free, bool on_requested) const;
  StartedBy reserve_extra(Processors processors, Seconds time);
  void add_candidate(JobIndex head, const Pending& entry, double score, bool on_requested);
  void add_scored_candidates(JobIndex head, bool on_requested);
  void start_before_head(const Pending& entry, StartedBy how, bool on_requested, Pass& pass);
  Seconds backfill_time(const Pending& entry, bool on_requested) const;

  // first_fit.cpp
  void first_fit_queue(Pass& pass);
  void first_fit_candidates(Pass& pass);
  void first_fit_by_score(Pass& pass);

  const std::optional<Seconds> ageing_ = settings_of<EasySettings>(policy_.settings).ageing;
  // Without a full pass only who has arrived needs testing, and plan_ (if valid) still holds.
  bool plan_valid_ = false;
  Plan plan_;
  std::unique_ptr<PlainEasy> beside_;  // where the guard goes by a plain EASY
  bool watches_ = false;
  PlainEasy::Lateness easing_;  // the head job's in this pass, under a gradual guard
  std::vector<Candidate> scored_;
  ScoreWalk walk_;
  std::vector<Candidate> candidates_;
  std::vector<std::pair<Pending, StartedBy>> picked_;
};

}  // namespace foretime
