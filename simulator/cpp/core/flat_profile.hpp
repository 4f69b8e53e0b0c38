// Free processors as a step function in two flat arrays: what a whole schedule is planned in at
// once, a few hundred steps long, and copied for the next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/barred_starts.hpp"
#include "core/types.hpp"

namespace foretime {

class FlatProfile {
 public:
  void clear() {
    times_.clear();
    free_.clear();
    barred_.clear();
  }
  void add_step(Seconds time, Processors free) {
    times_.push_back(time);
    free_.push_back(free);
  }

  // Takes processors at the first moment at which they are free for the whole duration; gives it.
  // The last step must have as many free.
  Seconds add(Seconds duration, Processors processors) {
    const Seconds from = barred_.first_start(processors, duration, times_.front());
    std::size_t first = 0;  // step in which the job starts; a start is the beginning of one
    if (from > times_.front()) {
      const auto step = std::lower_bound(times_.begin(), times_.end(), from);
      first = static_cast<std::size_t>(step - times_.begin());
    }
    std::size_t last = 0;  // step that it leaves as it is
    for (;; first = last + 1) {
      while (free_[first] < processors) ++first;
      const Seconds end = times_[first] + duration;
      last = first + 1;
      while (last < times_.size() && times_[last] < end && free_[last] >= processors) ++last;
      if (last == times_.size() || times_[last] >= end) break;
    }
    const Seconds start = times_[first];
    if (start > from) barred_.bar(processors, duration, start);
    take(first, last, start + duration, processors);
    return start;
  }

 private:
  // From the step `first` on until `end`, which is in the step before `last`, or where that begins.
  void take(std::size_t first, std::size_t last, Seconds end, Processors processors) {
    if (last == times_.size() || times_[last] != end) {
      const auto at = static_cast<std::ptrdiff_t>(last);
      const Processors free = free_[last - 1];
      times_.insert(times_.begin() + at, end);
      free_.insert(free_.begin() + at, free);
    }
    for (std::size_t i = first; i < last; ++i) free_[i] -= processors;
  }

  std::vector<Seconds> times_;
  std::vector<Processors> free_;
  BarredStarts barred_;
};

}  // namespace foretime
