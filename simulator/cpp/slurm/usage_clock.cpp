#include "slurm/usage_clock.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace foretime::slurm {
namespace {

constexpr Seconds kDay = 86'400;
constexpr double kHalving = 0.693;  // NOLINT(modernize-use-std-numbers): what Slurm takes for ln 2

Seconds first_of(std::chrono::year_month month) {
  const std::chrono::sys_days day = month / 1;
  return std::chrono::sys_seconds(day).time_since_epoch().count();
}

}  // namespace

std::optional<Seconds> next_reset(ResetPeriod period, Seconds last, Seconds now) {
  const auto day =
      std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds(std::chrono::seconds(last)));
  const std::chrono::year_month_day date = day;
  const auto month = date.year() / date.month();
  const unsigned ordinal = static_cast<unsigned>(date.month()) - 1;
  switch (period) {
    case ResetPeriod::kDaily:
    case ResetPeriod::kWeekly: {
      const bool is_daily = period == ResetPeriod::kDaily;
      const Seconds step = is_daily ? kDay : 7 * kDay;
      const auto left = is_daily ? 1 : 7 - std::chrono::weekday(day).c_encoding();
      Seconds following = std::chrono::sys_seconds(day).time_since_epoch().count() +
                          (static_cast<Seconds>(left) * kDay);
      while (following + step < now) following += step;
      return following;
    }
    case ResetPeriod::kMonthly:
      return first_of(month + std::chrono::months(1));
    case ResetPeriod::kQuarterly:
      return first_of(month + std::chrono::months(3 - (ordinal % 3)));
    case ResetPeriod::kYearly:
      return first_of((date.year() + std::chrono::years(1)) / std::chrono::January);
    case ResetPeriod::kNone:
    case ResetPeriod::kNow:
      break;
  }
  return std::nullopt;
}

UsageClock::UsageClock(ResetPeriod reset_period, Seconds half_life, Seconds period, Seconds now,
                       std::optional<Seconds> usage_at)
    : reset_period_(reset_period),
      decay_factor_(half_life > 0 ? 1 - (kHalving / static_cast<double>(half_life)) : 1.0),
      period_(period),
      last_ran_(usage_at.value_or(now)),
      next_tick_(last_ran_ + (((std::max<Seconds>(now - last_ran_, 0) / period) + 1) * period)),
      next_reset_(next_reset(reset_period, now, now)) {}

bool UsageClock::resets(Seconds now) {
  if (!next_reset_ || now < *next_reset_) return false;
  next_reset_ = next_reset(reset_period_, *next_reset_, now);
  return true;
}

std::optional<double> UsageClock::kept(Seconds now) const {
  const Seconds gone = now - last_ran_;
  if (gone <= 0) return std::nullopt;
  return std::max(std::pow(decay_factor_, static_cast<double>(gone)),
                  std::numeric_limits<double>::min());
}

double UsageClock::charge(Seconds ran, double billable, std::optional<double> usage_factor) const {
  const auto run = static_cast<double>(std::max<Seconds>(ran, 0));
  const double decayed = run * std::pow(decay_factor_, run) * billable;
  return usage_factor ? decayed * *usage_factor : decayed;
}

void UsageClock::ticked(Seconds now) {
  last_ran_ = now;
  next_tick_ += period_;
  if (next_tick_ <= now) next_tick_ = now + period_;
}

}  // namespace foretime::slurm
