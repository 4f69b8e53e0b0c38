// What slack-based backfilling reckons with: priorities, slack, and the price of a schedule
// (Talby and Feitelson 1999, sections 4.2 to 4.4).
//
// reference/slack.py says what happens at the edges. It does the same operations on doubles in the
// same order, so that the same schedules are the cheapest there.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/slack_settings.hpp"
#include "core/types.hpp"

namespace foretime {

inline constexpr Seconds kInfiniteSlack = 1LL << 62;  // as a latest start, too
inline constexpr Seconds kMostSlack = 1LL << 52;
inline constexpr double kFirstSchedulerPriority = 0.5;  // of a job that has no planned start yet
inline constexpr double kDummyPriority = 1.0;           // of the job of no time and no processors

inline constexpr Seconds kExtensions = 10;  // so many make up a requested time (section 4.7)

// Most weights are 1, and to raise to 1 changes nothing.
inline double raised(double base, double exponent) {
  return exponent == 1.0 ? base : std::pow(base, exponent);
}

inline bool quota_exceeded(double priority) {
  return priority == -std::numeric_limits<double>::infinity();
}

// Section 4.3.
inline double slack_priority(const SlackJob& job, double scheduler_priority) {
  return (job.user_priority + job.political_priority + scheduler_priority) / 3.0;
}

inline double scheduler_priority(Seconds planned_wait, double average_wait) {
  if (planned_wait == 0) return 0;
  if (average_wait == 0) return 1;
  return std::min(static_cast<double>(planned_wait) / (2.0 * average_wait), 1.0);
}

inline Seconds initial_slack(double priority, double slack_factor, double average_wait) {
  if (quota_exceeded(priority)) return kInfiniteSlack;
  const double slack = (1.0 - priority) * slack_factor * average_wait;
  return static_cast<Seconds>(std::floor(std::min(slack, static_cast<double>(kMostSlack))));
}

// Section 4.2: the price of a new job's own wait.
inline double own_price(const SlackSettings& settings, Seconds wait, Processors processors) {
  return raised(static_cast<double>(wait), settings.time_weight) *
         raised(static_cast<double>(processors), settings.utilization_weight);
}

// Section 4.4: what it costs to move one job by so much for another; a gain if it is moved up.
class MoveCost {
 public:
  MoveCost(const SlackSettings& settings, Processors processors, double priority,
           double for_priority, Seconds slack, Seconds initial_slack)
      : time_weight_(settings.time_weight),
        width_(raised(static_cast<double>(processors), settings.utilization_weight)),
        priority_(raised(relative_priority(priority, for_priority), settings.priority_weight)),
        fairness_(raised(used_up(slack, initial_slack),
                         settings.priority_weight * settings.fairness_weight)) {}

  double of(Seconds delay) const {
    const double time = raised(static_cast<double>(delay < 0 ? -delay : delay), time_weight_);
    const double size = width_ * time * priority_ * fairness_;
    return delay < 0 ? -size : size;
  }

 private:
  static double relative_priority(double moved, double incoming) {
    moved = std::max(moved, 0.0);
    incoming = std::max(incoming, 0.0);
    if (incoming == 0) return moved == 0 ? 1 : std::numeric_limits<double>::infinity();
    return moved / incoming;
  }
  static double used_up(Seconds slack, Seconds initial_slack) {
    if (slack == initial_slack || initial_slack == kInfiniteSlack) return 1;
    return static_cast<double>(initial_slack) / static_cast<double>(std::max(slack, Seconds{1}));
  }

  double time_weight_;
  double width_;
  double priority_;
  double fairness_;
};

}  // namespace foretime
