// Starts at which a job did not fit are none for a job that needs as much for as long either, as
// long as nothing is given back before them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/types.hpp"

namespace foretime {

class BarredStarts {
 public:
  void clear() {
    barred_.clear();
    longest_ = 0;
    longer_and_longer_ = true;
  }

  // The first start from `from` on that is not known to be barred.
  Seconds first_start(Processors processors, Seconds duration, Seconds from) const {
    for (const Barred& barred : barred_) {
      if (barred.processors <= processors && barred.duration <= duration && barred.until > from) {
        from = barred.until;
      }
    }
    return from;
  }

  // The job fits nowhere before `until`. As long as each lasts longer than those before, as if
  // shortest go first, the ones to come are expected to do so, too.
  void bar(Processors processors, Seconds duration, Seconds until) {
    longer_and_longer_ = longer_and_longer_ && duration >= longest_;
    longest_ = std::max(longest_, duration);
    std::erase_if(barred_, [&](const Barred& barred) {
      return barred.processors >= processors && barred.until <= until &&
             (longer_and_longer_ || barred.duration >= duration);
    });
    if (barred_.size() < kMost) barred_.push_back({processors, duration, until});
  }

 private:
  struct Barred {
    Processors processors = 0;
    Seconds duration = 0;
    Seconds until = 0;
  };

  // To look through many would cost more than they spare.
  static constexpr std::size_t kMost = 16;

  std::vector<Barred> barred_;
  Seconds longest_ = 0;
  bool longer_and_longer_ = true;
};

}  // namespace foretime
