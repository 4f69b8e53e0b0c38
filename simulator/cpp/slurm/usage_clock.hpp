// When usage decays and is forgotten. reference/slurm/priorities/usage.py is the specification.
#pragma once

#include <cstdint>
#include <optional>

#include "core/names.hpp"
#include "core/types.hpp"

namespace foretime::slurm {

// PriorityUsageResetPeriod.
enum class ResetPeriod : std::uint8_t {
  kNone,
  kNow,
  kDaily,
  kWeekly,
  kMonthly,
  kQuarterly,
  kYearly
};
constexpr auto names_of(ResetPeriod) {
  return named("NONE", "NOW", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY");
}

// The first midnight of the next day, week, month, quarter or year (UTC).
std::optional<Seconds> next_reset(ResetPeriod period, Seconds last, Seconds now);

class UsageClock {
 public:
  UsageClock(ResetPeriod reset_period, Seconds half_life, Seconds period, Seconds now,
             std::optional<Seconds> usage_at);

  bool resets_at_once() const { return reset_period_ == ResetPeriod::kNow; }
  // Whether usage is to be forgotten now; it then waits for the next time.
  bool resets(Seconds now);
  // The part of usage that is left now; none where no time has passed.
  std::optional<double> kept(Seconds now) const;
  // What a job is charged for a time that it ran, in billing seconds.
  double charge(Seconds ran, double billable, std::optional<double> usage_factor) const;
  void ticked(Seconds now);

  Seconds last_ran() const { return last_ran_; }
  Seconds next_tick() const { return next_tick_; }

 private:
  ResetPeriod reset_period_;
  double decay_factor_;
  Seconds period_;
  Seconds last_ran_;
  Seconds next_tick_;
  std::optional<Seconds> next_reset_;
};

}  // namespace foretime::slurm
