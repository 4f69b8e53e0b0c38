// One cycle of the backfill loop: a plan for each job that it looks at, and starts that delay no
// plan. reference/slurm/loops/backfill_loop.py is the specification (`_attempt_backfill`,
// backfill.c).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "planning/slurm/free_by_ends.hpp"
#include "planning/slurm/free_window.hpp"
#include "planning/slurm/main_loop.hpp"
#include "planning/slurm/node_space.hpp"
#include "planning/slurm/slurm_controller.hpp"

namespace foretime {

// What a cycle works with, kept from one to the next.
struct BackfillScratch {
  NodeSpace space;
  NodeSet free;
  NodeSet within;  // the nodes that a job may have
  NodeSet closed;
  NodeSet found;
  NodeSet wanted;
  FreeByEnds outlook;
  FreeWindow window;
  std::vector<Seconds> passed_over;  // starts of the job that is tested

  explicit BackfillScratch(const NodeTable& table)
      : space(table),
        free(table.nodes()),
        within(table.nodes()),
        closed(table.nodes()),
        found(table.nodes()),
        wanted(table.nodes()) {}
};

// How far a cycle plans: as far as Slurm does, or only as far as it may start a job; and, coarsely,
// for few jobs of each partition, after which others are only tested for a start at once.
struct BackfillReach {
  bool all_plans = false;
  bool coarse = false;
};

class BackfillCycle {
 public:
  BackfillCycle(SlurmController& controller, BackfillScratch& scratch, Seconds now,
                BackfillReach reach, Pass& pass);

  void run();
  std::int64_t started() const { return started_; }
  bool left_marks() const { return controller_.marks() != marks_before_; }
  // Whether it has planned for any job; before 24.11 only on idle nodes.
  bool planned() const;
  // When it would do something else though nothing has happened; kNever: never.
  Seconds next_change() const;

 private:
  enum class Next : std::uint8_t { kJob, kStop };
  // A running job, and when it is thought to end: as it was at its start, and now.
  struct End {
    Seconds first = 0;
    JobIndex job = 0;
    Seconds end = 0;
  };
  struct WillRun {
    Seconds start = 0;
    std::vector<NodeRow> rows;
  };
  // The job that is tested.
  struct Test {
    const QueueEntry* entry = nullptr;
    const Wish* wish = nullptr;
    const LicenseCounts* licenses = nullptr;  // those that are planned
    bool now_only = false;
    bool counted = false;
    bool window_began = false;
    Seconds estimate_before = kNever;
    Seconds time_limit_before = 0;
    Seconds time_limit = 0;
    Next next = Next::kJob;
  };
  using Later = std::optional<Seconds>;

  static Seconds floor_mod(Seconds value, Seconds by) {
    const Seconds rest = value % by;
    return rest < 0 ? rest + by : rest;
  }
  void collect_ends();
  std::size_t last_candidate(std::size_t before);
  bool may_start(const QueueEntry& entry);
  Next look_at(const QueueEntry& entry);
  bool is_tested_now_only(const QueueEntry& entry, const Wish& wish);
  bool is_kept(JobIndex job, const Wish& wish);
  // Whether its tests count even if they find nothing.
  bool leaves_marks(const Wish& wish) const { return wish.gpus > 0 && controller_.marks().count(); }
  // Whether it is known already that a limit keeps a job.
  bool is_known_kept(const QueueEntry& entry) {
    return passes_kept_ && controller_.known_kept_in(entry.job) >= 0;
  }
  bool has_plans_enough(std::int32_t partition) const;
  bool looked_at_enough(const QueueEntry& entry, std::int32_t partition);
  void reserve_running(JobIndex job);
  std::pair<Seconds, Seconds> slot_of(Seconds start, Seconds time_limit) const;
  Seconds round_down(Seconds time) const;
  Seconds round_up(Seconds time) const;

  Next run_test(Test& test);
  Later test_from(Test& test, Seconds start);
  Later give_up(Test& test, Later later);
  Later pass_over(Test& test, Seconds start);
  bool is_passed_over_counted(const Test& test);
  bool may_hold(const Wish& wish, const NodeSet& nodes, Later later);
  Later next_start(std::size_t first, Seconds end) const;
  void note_next_plan(std::size_t first, Seconds start, Seconds end);
  // The end of the first record in which a test lacks licenses; nothing: there is none.
  Later lacks_licenses(const Test& test, std::size_t first, Seconds end);
  bool overlaps(const Test& test, std::pair<Seconds, Seconds> slot, const NodeSet& nodes) const;
  Later end_of_reservation(Seconds start, Later later);
  std::optional<WillRun> will_run(const Test& test, Seconds start, Later later);
  std::optional<WillRun> as_jobs_end(Seconds start, Later later);
  Later after_overlap(const Test& test, Seconds start);
  // Whether it is done with: started, or not to be planned.
  bool start_now(Test& test, Later later);
  void shorten(const Test& test);
  Later plan(Test& test, std::pair<Seconds, Seconds> slot, Seconds start, Later later,
             bool overlap_tested);
  void keep_earlier(const Test& test);
  void changes_at(Seconds time) { next_change_ = std::min(next_change_, time); }
  void reserve(Seconds begin, Seconds end, const NodeSet& nodes, const LicenseCounts& licenses);
  SlurmRecord& record(const Test& test) { return controller_.record(test.entry->job); }

  SlurmController& controller_;
  const SlurmParameters& parameters_;
  BackfillScratch& scratch_;
  NodeSpace& space_;
  Seconds now_;
  bool all_plans_;
  bool passes_kept_;         // over jobs that a limit keeps; else these hold plans, too
  std::int64_t most_plans_;  // of a partition; 0: any number
  Pass& pass_;
  bool timed_tests_;
  bool own_ends_;       // a start is the end of a job that has one of the chosen nodes
  Seconds least_gone_;  // a job counts as gone so long after its end
  Seconds window_end_;
  std::size_t most_records_;
  std::vector<End> ends_;
  bool outlook_is_known_ = false;
  std::int64_t failed_ = 0;  // tests that found no nodes
  bool ends_move_ = false;   // the order of ends now is another than that of first ends

  std::int64_t tested_ = 0;
  std::int64_t started_ = 0;
  Seconds next_change_ = kNever;
  std::size_t ends_beyond_ = 0;  // of plans, at the end of the window or after it
  Seconds first_beyond_ = kNever;
  RejectedArray rejected_array_;
  std::vector<std::int64_t> plans_of_partition_;
  std::map<std::int32_t, std::int64_t> plans_of_array_;
  NodeSet planned_nodes_;
  GpuMarks marks_before_;
  std::vector<std::int64_t> looked_at_in_;
  std::map<std::int32_t, std::int64_t> looked_at_user_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> looked_at_user_part_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> looked_at_assoc_;
};

}  // namespace foretime
