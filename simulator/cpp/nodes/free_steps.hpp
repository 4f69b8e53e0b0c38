// What is free of one node, or of a group of interchangeable ones, over time from now on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "nodes/node_types.hpp"

namespace foretime {

class FreeSteps {
 public:
  struct Step {
    Seconds time = 0;  // up to the next one's; the last for good
    Resources free;
    friend bool operator==(const Step&, const Step&) = default;
  };

  FreeSteps(Seconds now, const Resources& free) : steps_(1, Step{now, free}) {}

  // Begins anew; `free_from` then adds what becomes free, by time.
  void reset(Seconds now, const Resources& free) { steps_.assign(1, Step{now, free}); }
  void free_from(Seconds time, const Resources& change) {
    if (time > steps_.back().time) steps_.push_back({time, steps_.back().free});
    steps_.back().free += change;
  }

  // What lies before `now` is past, and forgotten.
  void add(Seconds now, Seconds start, Seconds end, const Resources& change) {
    forget_past(now);
    start = std::max(start, steps_.front().time);
    if (end <= start) return;
    const std::size_t first = step_from(start);
    const std::size_t last = end == kNever ? steps_.size() : step_from(end);
    for (std::size_t i = first; i < last; ++i) steps_[i].free += change;
    merge(last);
    merge(first);
  }

  // Least of each resource in [start, end).
  Resources least_free(Seconds start, Seconds end) const {
    std::size_t i = step_at(start);
    Resources free = steps_[i].free;
    for (++i; i < steps_.size() && steps_[i].time < end; ++i) free = least(free, steps_[i].free);
    return free;
  }

  const std::vector<Step>& steps() const { return steps_; }
  std::size_t step_at(Seconds time) const {
    std::size_t i = 0;
    if (steps_.size() > 8) {
      const auto after = std::upper_bound(steps_.begin(), steps_.end(), time,
                                          [](Seconds t, const Step& s) { return t < s.time; });
      i = static_cast<std::size_t>(after - steps_.begin());
      return i == 0 ? 0 : i - 1;
    }
    while (i + 1 < steps_.size() && steps_[i + 1].time <= time) ++i;
    return i;
  }

 private:
  void forget_past(Seconds now) {
    const std::size_t current = step_at(now);
    if (current > 0)
      steps_.erase(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(current));
    steps_.front().time = std::max(steps_.front().time, now);
  }
  std::size_t step_from(Seconds time) {
    const std::size_t i = step_at(time);
    if (steps_[i].time == time) return i;
    steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(i) + 1, Step{time, steps_[i].free});
    return i + 1;
  }
  void merge(std::size_t i) {
    if (i > 0 && i < steps_.size() && steps_[i - 1].free == steps_[i].free) {
      steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  std::vector<Step> steps_;
};

}  // namespace foretime
