// The whole queue under XF or WFP, in order. It changes little from pass to pass, so the order of
// the last pass is repaired.
#pragma once

#include <algorithm>
#include <vector>

#include "core/queue_score.hpp"
#include "core/types.hpp"

namespace foretime {

class ScoreOrder {
 public:
  struct Place {
    double score = 0;
    std::int64_t rank = 0;
    JobIndex job = 0;
    // In queue order.
    friend bool operator<(const Place& a, const Place& b) {
      return a.score != b.score ? a.score > b.score : a.rank < b.rank;
    }
  };

  // A job is pending now.
  void entered(JobIndex index) { entered_.push_back(index); }

  // Those that are pending still. A job's place goes by what it is like now.
  const std::vector<Place>& sorted(Order order, const std::vector<Job>& jobs, Seconds now) {
    for (const JobIndex index : entered_) places_.push_back({0, 0, index});
    entered_.clear();
    std::size_t kept = 0;
    for (const Place& place : places_) {
      const Job& job = jobs[static_cast<std::size_t>(place.job)];
      if (job.state != State::kPending) continue;
      places_[kept++] = {queue_score(order, job, now), job.rank, place.job};
    }
    places_.resize(kept);
    repair();
    return places_;
  }

 private:
  // By insertion, unless that takes too many steps.
  void repair() {
    std::size_t steps = 0;
    for (std::size_t i = 1; i < places_.size(); ++i) {
      const Place place = places_[i];
      std::size_t at = i;
      for (; at > 0 && place < places_[at - 1]; --at) places_[at] = places_[at - 1];
      places_[at] = place;
      steps += i - at;
      if (steps > kSteps * places_.size()) {
        std::sort(places_.begin(), places_.end());
        return;
      }
    }
  }

  static constexpr std::size_t kSteps = 4;  // for each job

  std::vector<Place> places_;
  std::vector<JobIndex> entered_;
};

}  // namespace foretime
