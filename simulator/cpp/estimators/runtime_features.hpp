// What is known of a job at its submission, as
// foretime_estimators.estimators.regression.runtime_features (Gaussier 2015, table 2), where the 20
// features are explained.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "estimators/online_estimator.hpp"

namespace foretime {

inline constexpr std::size_t kFeatures = 20;
using Features = std::array<double, kFeatures>;

// Keeps sums, so that asking costs the same however many jobs a user runs or has run.
class RuntimeFeatures {
 public:
  struct Running {
    JobIndex job = 0;
    Seconds start = 0;
    Processors processors = 0;
  };
  struct UserJobs {
    bool is_known = false;               // has started or ended a job
    std::vector<Seconds> last_runtimes;  // at most three, the latest first
    std::int64_t jobs = 0;
    Seconds runtime_sum = 0;
    Processors processors_sum = 0;
    std::optional<Seconds> last_end;
    std::vector<Running> running;  // in the order of their starts
    __int128 start_sum = 0;        // of those that run; thousands of times may be beyond 64 bits
    Processors occupied = 0;
  };

  Features of(const JobRequest& job, Seconds now) const;
  void start(const JobRequest& job, Seconds time);
  void finish(const FinishedJob& job);

  // Who is known, in the order in which they became so.
  const std::vector<UserCode>& users() const { return known_; }
  const UserJobs& user(UserCode code) const { return users_.at(static_cast<std::size_t>(code)); }
  // Takes over a user's past; nothing of theirs runs.
  void restore(UserCode code, UserJobs past);

 private:
  UserJobs& known(UserCode code);

  std::vector<UserJobs> users_;  // by code
  std::vector<UserCode> known_;
};

}  // namespace foretime
