// What the engine knows of a job and of a policy.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/slack_settings.hpp"

namespace foretime {

using Seconds = std::int64_t;
using Processors = std::int64_t;
using JobIndex = std::int64_t;

inline constexpr Seconds kNever = std::numeric_limits<Seconds>::max();

// The values are shared with policy.py, which is where the names are explained.
enum class Order : std::uint8_t { kFcfs, kSjf, kLjf, kXf, kWfp, kPriority, kOutside };
enum class Backfill : std::uint8_t {
  kNone,
  kEasy,
  kEasySjbf,
  kEasyWspt,
  kConservative,
  kPlanning,
  kFirstFit,
  kOutside,
  kSlack
};
enum class Compression : std::uint8_t { kReservationOrder, kSubmissionOrder, kOneByOne };
enum class Correction : std::uint8_t { kRequested, kIncremental, kDoubling, kSlurm, kPbs };
enum class GuardBy : std::uint8_t {
  kRequestedPlan,
  kPlainEasy,
  kPlainEasyGradual,
  kPlainEasyLongest
};
enum class EventOrder : std::uint8_t { kPerTimestep, kPerEvent };
enum class StartedBy : std::uint8_t { kNotStarted, kHead, kOutOfOrder, kBackfilled };
enum class Decider : std::uint8_t { kBasic, kVoting, kSimple, kAdvanced };
enum class Quality : std::uint8_t { kMakespan, kArt, kArtww, kWait, kWaitww, kSlowdown, kSldww };
enum class State : std::uint8_t { kSubmitted, kPending, kRunning, kFinished, kCancelled };

// How the scheduler's belief about a running job's end is kept.
enum class Belief : std::uint8_t {
  kEstimate,     // it ends at its expected end
  kOverstaying,  // Slurm's rule, past its estimate: the expected end moves with every pass
  kOverdue,      // past its requested time: it may end any moment
};

// Between which queue orders a planning scheduler switches, and how: policy_switching.py.
struct PolicySwitching {
  Decider decider = Decider::kAdvanced;
  std::vector<Order> orders;
  std::vector<std::pair<Quality, double>> qualities;  // with their weights
  Seconds lower_bound = 0;
  Seconds upper_bound = 0;
  std::size_t least_waiting = 1;  // from so many on the decider is asked
  double slackness = 0;
  std::optional<std::size_t> first_starts;
  std::optional<Seconds> horizon;
  Seconds slowdown_bound = 1;
  Seconds interactive = 0;
  double saturation = 1;
  bool one_list = false;  // FCFS leaves the queue as the last order sorted it
};

struct Policy {
  Order order = Order::kFcfs;
  Backfill backfill = Backfill::kEasy;
  Correction correction = Correction::kRequested;
  std::optional<Seconds> guard;
  EventOrder event_order = EventOrder::kPerTimestep;
  std::int64_t depth = 1;
  Compression compression = Compression::kReservationOrder;
  GuardBy guard_by = GuardBy::kRequestedPlan;
  double guard_share = 0;  // by a plain EASY: of the wait there that is taken off the bound
  std::optional<Seconds> ageing;    // of candidates that are sorted; none: their times alone count
  std::optional<Seconds> interval;  // between scheduling passes; none: one after every event
  std::optional<PolicySwitching> switching;  // none: the order is the same for good
  std::optional<SlackSettings> slack;  // under kSlack
  std::optional<std::int32_t> correction_steps;  // after so many: the requested time
};

// Processors claimed from outside.
struct AdvanceReservation {
  Seconds start = 0;
  Seconds duration = 0;
  Processors processors = 0;
  Seconds end() const { return start + duration; }
};

constexpr bool is_easy(Backfill backfill) {
  return backfill == Backfill::kEasy || backfill == Backfill::kEasySjbf ||
         backfill == Backfill::kEasyWspt;
}

// Under these an EASY on requested times runs beside.
constexpr bool goes_by_easy(GuardBy by) { return by != GuardBy::kRequestedPlan; }

// Under these candidates need the more of their requested times to fit the later the head job is.
constexpr bool is_gradual(GuardBy by) {
  return by == GuardBy::kPlainEasyGradual || by == GuardBy::kPlainEasyLongest;
}

// Under these candidates for backfilling have an order of their own; see candidate_key.
constexpr bool sorts_candidates(Backfill backfill) {
  return is_easy(backfill) && backfill != Backfill::kEasy;
}

// Under these the order of two waiting jobs changes as time goes by.
constexpr bool is_time_dependent(Order order) {
  return order == Order::kXf || order == Order::kWfp || order == Order::kOutside;
}

struct Job {
  Seconds submit = 0;
  Processors processors = 0;
  Seconds actual_runtime = 0;
  Seconds requested = 0;
  Seconds queue_time = 0;     // t_sched, one for each role
  Seconds backfill_time = 0;
  Seconds drain_time = 0;
  Seconds time_limit = 0;     // killed here
  std::int64_t priority = 0;
  std::int64_t rank = 0;      // place in the order of submission
  Seconds start = 0;
  Seconds end = 0;            // once running: when it will end
  Seconds expected_end = 0;   // once running: when the scheduler believes it will end
  Seconds planned_start = kNever;  // starvation guard: the note on its t_req plan
  Seconds blocked_since = kNever;  // when it was first seen blocked at the head of the queue
  std::int32_t corrections = 0;    // how often it outlived its estimate
  State state = State::kSubmitted;
  StartedBy started_by = StartedBy::kNotStarted;
  Belief belief = Belief::kEstimate;
  bool guarded = false;       // the guard was activated for it
  bool awaited = false;       // finish_awaited() runs until it has started
  std::int64_t tie = 0;       // once running: its place among jobs that end together

  Seconds extended = 0;       // added to its requested time while it ran

  Seconds hard_end() const { return start + requested + extended; }
};

}  // namespace foretime
