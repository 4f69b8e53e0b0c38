// What the engine knows of a job and of a policy.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/family_settings.hpp"
#include "core/names.hpp"

namespace foretime {

using Seconds = std::int64_t;
using Processors = std::int64_t;
using JobIndex = std::int64_t;

inline constexpr Seconds kNever = std::numeric_limits<Seconds>::max();

enum class Order : std::uint8_t { kFcfs, kSjf, kLjf, kXf, kWfp, kPriority, kOutside };
constexpr auto names_of(Order) {
  return named("fcfs", "sjf", "ljf", "xf", "wfp", "priority", "outside");
}
enum class Backfill : std::uint8_t {
  kNone,
  kEasy,
  kEasySjbf,
  kEasyWspt,
  kConservative,
  kPlanning,
  kFirstFit,
  kSlack,
  kSlurm,
  kPbs,
  kOutside
};
constexpr auto names_of(Backfill) {
  return named("none", "easy", "easy-sjbf", "easy-wspt", "conservative", "planning", "first-fit",
               "slack", "slurm", "pbs", "outside");
}
enum class Compression : std::uint8_t { kReservationOrder, kSubmissionOrder, kOneByOne };
constexpr auto names_of(Compression) {
  return named("reservation-order", "submission-order", "one-by-one");
}
enum class Correction : std::uint8_t { kRequested, kIncremental, kDoubling, kSlurm, kPbs };
constexpr auto names_of(Correction) {
  return named("requested", "incremental", "doubling", "slurm", "pbs");
}
enum class GuardBy : std::uint8_t {
  kRequestedPlan,
  kPlainEasy,
  kPlainEasyGradual,
  kPlainEasyLongest
};
constexpr auto names_of(GuardBy) {
  return named("requested-plan", "plain-easy", "plain-easy-gradual", "plain-easy-longest");
}
enum class EventOrder : std::uint8_t { kPerTimestep, kPerEvent };
constexpr auto names_of(EventOrder) { return named("per-timestep", "per-event"); }
enum class Decider : std::uint8_t { kBasic, kVoting, kSimple, kAdvanced };
constexpr auto names_of(Decider) { return named("basic", "voting", "simple", "advanced"); }
enum class Quality : std::uint8_t { kMakespan, kArt, kArtww, kWait, kWaitww, kSlowdown, kSldww };
constexpr auto names_of(Quality) {
  return named("makespan", "art", "artww", "wait", "waitww", "slowdown", "sldww");
}
enum class StartedBy : std::uint8_t { kNotStarted, kHead, kOutOfOrder, kBackfilled };
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

// The starvation guard: guard.py.
struct Guard {
  Seconds bound = 0;
  GuardBy by = GuardBy::kRequestedPlan;
  double share = 0;  // by a plain EASY: of the wait there that is taken off the bound

  // Whether an EASY on requested times runs beside.
  bool runs_beside() const { return by != GuardBy::kRequestedPlan; }
  // Whether candidates need the more of their requested times to fit the later the head job is.
  bool eases_in() const {
    return by == GuardBy::kPlainEasyGradual || by == GuardBy::kPlainEasyLongest;
  }
};

struct EasySettings {
  std::int64_t depth = 1;
  std::optional<Seconds> ageing;  // of candidates that are sorted; none: their times alone count

  template <class Visit>
  void each(Visit visit) {
    visit("depth", depth);
    visit("ageing_s", ageing);
  }
};

struct ConservativeSettings {
  Compression compression = Compression::kReservationOrder;

  template <class Visit>
  void each(Visit visit) {
    visit("compression", compression);
  }
};

struct Policy {
  Order order = Order::kFcfs;
  Correction correction = Correction::kRequested;
  std::optional<std::int32_t> correction_steps;  // after so many: the requested time
  EventOrder event_order = EventOrder::kPerTimestep;
  std::optional<Seconds> interval;  // between scheduling passes; none: one after every event
  Backfill backfill = Backfill::kEasy;
  std::optional<Guard> guard;
  FamilySettings settings;                   // of the backfilling
  std::optional<PolicySwitching> switching;  // none: the order is the same for good
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

// Under these candidates for backfilling have an order of their own; see candidate_key.
constexpr bool sorts_candidates(Backfill backfill) {
  return is_easy(backfill) && backfill != Backfill::kEasy;
}

// Under these the order of two waiting jobs changes as time goes by.
constexpr bool is_time_dependent(Order order) {
  return order == Order::kXf || order == Order::kWfp || order == Order::kOutside;
}

// Under these a job has a score of its own that grows with time: queue_score.hpp.
constexpr bool grows_with_time(Order order) { return order == Order::kXf || order == Order::kWfp; }

struct Job {
  Seconds submit = 0;
  Processors processors = 0;
  Seconds actual_runtime = 0;
  Seconds requested = 0;
  Seconds queue_time = 0;  // t_sched, one for each role
  Seconds backfill_time = 0;
  Seconds drain_time = 0;
  Seconds time_limit = 0;  // killed here
  std::int64_t priority = 0;
  std::int64_t rank = 0;  // place in the order of submission
  Seconds start = 0;
  Seconds end = 0;                 // once running: when it will end
  Seconds expected_end = 0;        // once running: when the scheduler believes it will end
  Seconds planned_start = kNever;  // starvation guard: the note on its t_req plan
  Seconds blocked_since = kNever;  // when it was first seen blocked at the head of the queue
  std::int32_t corrections = 0;    // how often it outlived its estimate
  State state = State::kSubmitted;
  StartedBy started_by = StartedBy::kNotStarted;
  Belief belief = Belief::kEstimate;
  bool guarded = false;  // the guard was activated for it
  bool awaited = false;  // finish_awaited() runs until it has started
  bool used_up = false;  // ended for what its group, or it, may use
  std::int64_t tie = 0;  // once running: its place among jobs that end together

  Seconds extended = 0;  // added to its requested time while it ran

  Seconds hard_end() const { return start + requested + extended; }
};

}  // namespace foretime
