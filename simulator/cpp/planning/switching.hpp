#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/flat_profile.hpp"
#include "planning/decider.hpp"
#include "planning/profile_planner.hpp"
#include "planning/schedule_quality.hpp"

namespace foretime {

class Switching final : public ProfilePlanner {
 public:
  Switching(std::unique_ptr<PlanProfile> profile, const Policy& policy,
            const std::vector<Job>& jobs, const Availability& availability,
            std::vector<AdvanceReservation> reservations);

  std::optional<Order> order() const override { return settings_.orders[current_]; }
  const SwitchingCounters* switching_counters() const override { return &counters_; }
  int started_under(JobIndex index) const override;

 private:
  // A waiting job in one order.
  struct Waiting {
    Pending place;
    PlannedJob planned;
    double score = 0;  // in a time-dependent order; greater first
    friend bool operator<(const Waiting& a, const Waiting& b) { return a.place < b.place; }
  };
  // The queue in one order, and the schedule that it makes.
  struct Line {
    Order order;
    std::vector<Waiting> queue;
  };

  void plan(Seconds now, const QueueInOrder& queue, Starts& starts) override;
  bool needs_order() const override { return false; }
  bool claims_plans() const override { return false; }
  void no_longer_planned(JobIndex index) override;
  void resumed(JobIndex index) override;
  void waiting_changed(JobIndex) override { stale_ = true; }
  Seconds next_planned_start() const override {
    return next_start_ > reached() ? next_start_ : kNever;
  }

  Waiting waiting(Order order, JobIndex index) const;
  void update_lines(const QueueInOrder& queue);
  std::size_t place_of(Order order) const;
  std::size_t decide(Seconds now);
  std::size_t by_mean_time() const;
  std::size_t by_votes(Seconds now) const;
  std::size_t by_schedules(Seconds now);
  template <class Value, class Number>
  std::size_t choose(const std::vector<Value>& qualities, Number number);
  void plan_line(Line& line, Seconds now);
  static std::array<std::size_t, 3> order_of_planning(std::size_t current);
  void plan_list(std::size_t place, Seconds now);
  template <class Visit>
  void for_each_counted(const Line& line, Seconds now, Visit visit) const;
  void begin(const Line& line, Seconds now, Starts& starts);
  void note_start(JobIndex index);

  const PolicySwitching& settings_;
  std::vector<Line> lines_;     // by order
  std::vector<JobIndex> list_;  // of one list: the queue as it was left
  std::size_t current_;
  bool stale_ = false;  // the lines must be made anew
  Seconds next_start_ = kNever;
  FlatProfile running_;
  FlatProfile planned_in_;
  SwitchingCounters counters_;
  std::vector<std::int8_t> started_under_;  // by job index; -1: not started here
};

}  // namespace foretime
