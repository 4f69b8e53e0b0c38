// Jobs of one engine with the numbers that they have in another.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/types.hpp"

namespace foretime {

class Renumbering {
 public:
  // `from`: the old number of each new one; -1: there was none. `jobs`: how many had one.
  Renumbering(std::vector<JobIndex> from, std::size_t jobs)
      : from_(std::move(from)), to_(jobs, -1) {
    for (std::size_t to = 0; to < from_.size(); ++to) {
      if (from_[to] >= 0) to_.at(static_cast<std::size_t>(from_[to])) = static_cast<JobIndex>(to);
    }
  }

  const std::vector<JobIndex>& from() const { return from_; }
  // -1: it is not taken along.
  JobIndex to(JobIndex old) const { return to_[static_cast<std::size_t>(old)]; }

  // Those of a column that are taken along, with `missing` for the new.
  template <typename Value>
  std::vector<Value> column(const std::vector<Value>& old, const Value& missing) const {
    std::vector<Value> made;
    made.reserve(from_.size());
    for (const JobIndex job : from_) {
      const bool is_known = job >= 0 && static_cast<std::size_t>(job) < old.size();
      made.push_back(is_known ? old[static_cast<std::size_t>(job)] : missing);
    }
    return made;
  }
  std::vector<JobIndex> all(const std::vector<JobIndex>& jobs) const {
    std::vector<JobIndex> made;
    for (const JobIndex job : jobs) {
      if (to(job) >= 0) made.push_back(to(job));
    }
    return made;
  }

 private:
  std::vector<JobIndex> from_;
  std::vector<JobIndex> to_;
};

}  // namespace foretime
