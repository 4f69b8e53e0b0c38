#include "estimators/runtime_features.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace foretime {
namespace {

constexpr Seconds kDay = 86'400;
constexpr Seconds kWeek = 604'800;
constexpr double kPerDay = 2.0 * std::numbers::pi / static_cast<double>(kDay);
constexpr double kPerWeek = 2.0 * std::numbers::pi / static_cast<double>(kWeek);

// Seconds into the period, before the clock's zero, too.
double into(Seconds time, Seconds period) {
  const Seconds rest = time % period;
  return static_cast<double>(rest < 0 ? rest + period : rest);
}

// Times go up to 2^52, so that thousands of the longest runtimes together are more than there are
// seconds in 64 bits.
std::int64_t held_sum(std::int64_t sum, std::int64_t more) {
  std::int64_t result = 0;
  return __builtin_add_overflow(sum, more, &result) ? kNever : result;
}

double ratio(std::int64_t sum, std::int64_t count) {
  return static_cast<double>(sum) / static_cast<double>(count);
}

struct RunningSums {
  std::int64_t jobs = 0;
  __int128 starts = 0;
  Processors processors = 0;
};

// Of those that had started by `now`: all of them, but where somebody asks about the past.
RunningSums running_sums(const RuntimeFeatures::UserJobs& user, Seconds now) {
  RunningSums sums{static_cast<std::int64_t>(user.running.size()), user.start_sum, user.occupied};
  for (auto later = user.running.rbegin(); later != user.running.rend() && later->start > now;
       ++later) {
    --sums.jobs;
    sums.starts -= later->start;
    sums.processors -= later->processors;
  }
  return sums;
}

}  // namespace

Features RuntimeFeatures::of(const JobRequest& job, Seconds now) const {
  Features features{};
  features[0] = static_cast<double>(job.requested);
  features[7] = static_cast<double>(job.processors);
  if (job.user != kNoUser && static_cast<std::size_t>(job.user) < users_.size()) {
    const UserJobs& user = users_[static_cast<std::size_t>(job.user)];
    const auto last = [&user](std::size_t i) { return user.last_runtimes[i]; };
    const std::size_t recorded = user.last_runtimes.size();
    for (std::size_t i = 0; i < recorded; ++i) features[1 + i] = static_cast<double>(last(i));
    if (user.jobs > 0) {
      features[4] = recorded == 1 ? static_cast<double>(last(0)) : ratio(last(0) + last(1), 2);
      features[5] = recorded < 3 ? features[4] : ratio(last(0) + last(1) + last(2), 3);
      features[6] = ratio(user.runtime_sum, user.jobs);
      features[8] = ratio(user.processors_sum, user.jobs);
      features[9] = static_cast<double>(job.processors) / features[8];
    }
    const RunningSums running = running_sums(user, now);
    if (running.jobs > 0) {
      features[10] = ratio(running.processors, running.jobs);
      features[11] = static_cast<double>(running.jobs);
      features[12] = static_cast<double>(now - user.running.front().start);
      const auto count = static_cast<__int128>(running.jobs);
      features[13] = static_cast<double>(count * now - running.starts);
      features[14] = static_cast<double>(running.processors);
    }
    if (user.last_end)
      features[15] = static_cast<double>(std::max<Seconds>(now - *user.last_end, 0));
  }
  const double day = kPerDay * into(job.submit, kDay);
  const double week = kPerWeek * into(job.submit, kWeek);
  features[16] = std::cos(day);
  features[17] = std::sin(day);
  features[18] = std::cos(week);
  features[19] = std::sin(week);
  return features;
}

void RuntimeFeatures::start(const JobRequest& job, Seconds time) {
  if (job.user == kNoUser) return;
  UserJobs& user = known(job.user);
  user.running.push_back({job.index, time, job.processors});
  user.start_sum += time;
  user.occupied += job.processors;
}

void RuntimeFeatures::finish(const FinishedJob& job) {
  if (job.request.user == kNoUser) return;
  UserJobs& user = known(job.request.user);
  const auto same_start =
      std::lower_bound(user.running.begin(), user.running.end(), job.start,
                       [](const Running& running, Seconds start) { return running.start < start; });
  const auto ran = std::find_if(same_start, user.running.end(), [&job](const Running& running) {
    return running.job == job.request.index;
  });
  if (ran != user.running.end()) {
    user.start_sum -= ran->start;
    user.occupied -= ran->processors;
    user.running.erase(ran);
  }
  user.last_end = job.end;
  if (job.evidence == Evidence::kNone) return;
  if (user.last_runtimes.size() == 3) user.last_runtimes.pop_back();
  user.last_runtimes.insert(user.last_runtimes.begin(), job.runtime());
  ++user.jobs;
  user.runtime_sum = held_sum(user.runtime_sum, job.runtime());
  user.processors_sum = held_sum(user.processors_sum, job.request.processors);
}

void RuntimeFeatures::restore(UserCode code, UserJobs past) {
  UserJobs& user = known(code);
  user = std::move(past);
  user.is_known = true;
}

RuntimeFeatures::UserJobs& RuntimeFeatures::known(UserCode code) {
  const auto at = static_cast<std::size_t>(code);
  if (at >= users_.size()) users_.resize(at + 1);
  UserJobs& user = users_[at];
  if (!std::exchange(user.is_known, true)) known_.push_back(code);
  return user;
}

}  // namespace foretime
