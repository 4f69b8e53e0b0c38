// The mean of the user's last two runtimes, as foretime_estimators.estimators.last_two.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "estimators/online_estimator.hpp"

namespace foretime {

class LastTwo final : public OnlineEstimator {
 public:
  struct Ran {
    Seconds runtime = 0;
    Seconds requested = 0;
  };
  struct Recent {
    std::size_t count = 0;    // 0, 1 or 2
    std::array<Ran, 2> jobs;  // oldest first
  };

  RolePrediction predict(const JobRequest& job, Seconds /*now*/) override {
    const Recent* recent = of(job.user);
    if (recent == nullptr || recent->count < 2) return alike(job.requested);
    const Seconds sum = recent->jobs[0].runtime + recent->jobs[1].runtime;
    return alike(std::clamp<Seconds>(sum / 2 + sum % 2, 1, job.requested));
  }

  void finish(const FinishedJob& job) override {
    if (job.request.user == kNoUser || job.evidence == Evidence::kNone) return;
    remember(job.request.user, {job.runtime(), job.request.requested});
  }

  void remember(UserCode user, Ran ran) {
    const auto at = static_cast<std::size_t>(user);
    if (at >= recent_.size()) recent_.resize(at + 1);
    Recent& recent = recent_[at];
    if (recent.count == 0) users_.push_back(user);
    if (recent.count == 2) {
      recent.jobs = {recent.jobs[1], ran};
    } else {
      recent.jobs[recent.count++] = ran;
    }
  }

  // Who has finished a job, in the order of their first ones.
  const std::vector<UserCode>& users() const { return users_; }
  const Recent* of(UserCode user) const {
    const auto at = static_cast<std::size_t>(user);
    return user == kNoUser || at >= recent_.size() ? nullptr : &recent_[at];
  }

 private:
  std::vector<Recent> recent_;  // by user
  std::vector<UserCode> users_;
};

}  // namespace foretime
