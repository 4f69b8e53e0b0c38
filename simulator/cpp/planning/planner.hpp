// What decides who starts: a family of backfilling on a flat pool, on nodes or on a Blue Gene. The
// engine tells a planner of every event, and asks it at every pass.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/availability.hpp"
#include "core/queue.hpp"
#include "core/types.hpp"
#include "planning/decider.hpp"

namespace foretime {

struct Counters {
  std::int64_t passes = 0;
  std::int64_t completions = 0;
  std::int64_t expiries = 0;
  std::int64_t submissions = 0;
  std::int64_t guard_activations = 0;
  std::int64_t deepest_queue = 0;
};

// What a planner remembers from its last plan, and of what has happened since.
struct PlanNotes {
  std::vector<Seconds> planned_start;  // by job index; kNever: none
  bool changed = false;
  bool broken = false;
  Seconds gained_from = kNever;
  Seconds gained_until = std::numeric_limits<Seconds>::min();
};

// What a pass may do, and whom it may ask: the engine.
class Pass {
 public:
  virtual void start(JobIndex index, StartedBy how) = 0;
  virtual void kill(JobIndex index) = 0;
  // A running job gets so much more time.
  virtual void extend(JobIndex index, Seconds more) = 0;
  // A running job is killed after so long.
  virtual void set_time_limit(JobIndex index, Seconds time_limit) = 0;
  // The queue in an order that only holds now.
  virtual std::vector<Pending> queue_by_score() = 0;
  // Of an order from outside: the scores of these, which come in the order of submission.
  virtual void score(std::vector<Candidate>& queue) = 0;
  // Of backfilling from outside: who starts of these, which come in queue order.
  virtual std::vector<JobIndex> choose(const std::vector<JobIndex>& queue, bool on_requested) = 0;

 protected:
  ~Pass() = default;
};

class Planner {
 public:
  Planner() = default;
  virtual ~Planner() = default;
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  // What happens between passes. A job is known from its submission on.
  virtual void submitted(JobIndex) {}
  virtual void arrived(JobIndex) {}
  virtual void cancelled(JobIndex) {}  // while it waited
  virtual void changed_waiting(JobIndex) {}
  virtual void started(JobIndex, Seconds /*now*/) {}
  virtual void runs_already(JobIndex, Seconds /*now*/) = 0;
  virtual void changed_running(JobIndex, Seconds /*now*/) {}  // when it is expected to end
  virtual void finished(JobIndex, Seconds /*now*/) {}
  virtual void changed_from_outside() {}  // any job, after what it is told of that
  // Whatever state the job is in:
  virtual void updated(JobIndex) {}
  virtual void withdrawn(JobIndex) {}

  // To begin from a snapshot: those that have arrived and were planned keep their planned starts.
  virtual void resume(const PlanNotes&, Seconds /*reached*/) {}
  // Without the planned starts; none where no plan is kept from one pass to the next.
  virtual std::optional<PlanNotes> notes() const { return std::nullopt; }

  virtual void schedule(Seconds now, const Queue& queue, Pass& pass) = 0;

  // When a pass is due because of the plan alone. Moments up to the last `reached` are over.
  virtual Seconds next_moment() const { return kNever; }
  virtual void reached(Seconds /*now*/) {}
  // When running jobs are looked at next, whoever waits, and whether a pass is to do that now.
  virtual Seconds next_look() const { return kNever; }
  virtual bool looks_now(Seconds /*now*/) const { return false; }

  // Whether jobs may run beyond their time limits.
  virtual bool lets_overrun() const { return false; }
  // Whether the head job alone has a planned start, in a queue order that the engine knows.
  virtual bool plans_head_alone() const { return false; }
  // kNever if it has none; it may be over.
  virtual Seconds planned_start(JobIndex) const = 0;
  virtual Seconds first_planned_start(JobIndex) const { return kNever; }

  // The waiting jobs, where their order is not that of the queue alone.
  virtual std::optional<std::vector<JobIndex>> own_queue() const { return std::nullopt; }
  // In which the waiting jobs are planned now; none: in the policy's.
  virtual std::optional<Order> order() const { return std::nullopt; }
  // What a decider that changes the order has done.
  virtual const SwitchingCounters* switching_counters() const { return nullptr; }
  // Under which of its orders a job was started; -1: under none.
  virtual int started_under(JobIndex) const { return -1; }
};

}  // namespace foretime
