// The settings of slack-based backfilling; slack.py explains them.
#pragma once

#include <cstdint>
#include <optional>

#include "core/names.hpp"

namespace foretime {

enum class InsertionOrder : std::uint8_t { kAst, kAat, kDu, kDc, kDp };
constexpr auto names_of(InsertionOrder) { return named("ast", "aat", "du", "dc", "dp"); }
enum class Overruns : std::uint8_t { kKill, kKillBlocking, kExtend };
constexpr auto names_of(Overruns) { return named("kill", "kill-blocking", "extend"); }

struct SlackSettings {
  double slack_factor = 3;
  std::optional<double> average_wait;  // seconds; none: learned from the jobs that have started
  double utilization_weight = 1;
  double time_weight = 1;
  double priority_weight = 1;
  double fairness_weight = 1;
  InsertionOrder insertion_order = InsertionOrder::kAst;
  Overruns overruns = Overruns::kKill;

  template <class Visit>
  void each(Visit visit) {
    visit("slack_factor", slack_factor);
    visit("average_wait_s", average_wait);
    visit("utilization_weight", utilization_weight);
    visit("time_weight", time_weight);
    visit("priority_weight", priority_weight);
    visit("fairness_weight", fairness_weight);
    visit("insertion_order", insertion_order);
    visit("overruns", overruns);
  }
};

// What slack-based backfilling is told of a job.
struct SlackJob {
  double user_priority = 0;
  double political_priority = 0;       // minus infinity: a quota is exceeded
  std::optional<double> average_wait;  // seconds; none: that of the settings
};

}  // namespace foretime
