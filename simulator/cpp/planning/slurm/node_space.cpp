#include "planning/slurm/node_space.hpp"

#include <algorithm>

namespace foretime {

void NodeSpace::begin(Seconds begin, Seconds end, const NodeSet& nodes) {
  for (const Record& record : records_) unused_.push_back(record.set);
  records_.clear();
  if (sets_.empty()) {
    sets_.push_back(nodes);
    unused_.push_back(0);
  }
  const std::size_t set = unused_.back();
  unused_.pop_back();
  sets_[set] = nodes;
  count(set);
  records_.push_back({begin, end, set});
  made_ = 1;
}

void NodeSpace::count(std::size_t set) {
  counts_.resize(sets_.size());
  std::vector<std::int64_t>& counts = counts_[set];
  counts.resize(static_cast<std::size_t>(table_->groups()));
  for (std::int32_t group = 0; group < table_->groups(); ++group) {
    counts[static_cast<std::size_t>(group)] =
        sets_[set].count(table_->first_of(group), table_->last_of(group));
  }
}

std::size_t NodeSpace::first_after(Seconds time) const {
  const auto found =
      std::partition_point(records_.begin(), records_.end(),
                           [time](const Record& record) { return record.end <= time; });
  return static_cast<std::size_t>(found - records_.begin());
}

std::size_t NodeSpace::copy_of(std::size_t set) {
  if (unused_.empty()) {
    const NodeSet same = sets_[set];  // a vector that grows moves what it copies from
    const std::vector<std::int64_t> same_counts = counts_[set];
    sets_.push_back(same);
    counts_.push_back(same_counts);
    return sets_.size() - 1;
  }
  const std::size_t copy = unused_.back();
  unused_.pop_back();
  sets_[copy] = sets_[set];
  counts_[copy] = counts_[set];
  return copy;
}

void NodeSpace::split(std::size_t place, Seconds at) {
  const Record later{at, records_[place].end, copy_of(records_[place].set)};
  records_[place].end = at;
  records_.insert(records_.begin() + static_cast<std::ptrdiff_t>(place) + 1, later);
  ++made_;
}

void NodeSpace::reserve(Seconds start, Seconds end, const NodeSet& nodes, Seconds resolution) {
  start = std::max(start, records_.front().begin);
  end = std::max(end, start + resolution);
  // The record that the reservation begins after, and the first one in which it counts.
  std::size_t before = 0;
  std::size_t place = 0;
  while (records_[place].end < start) {
    before = place;
    if (++place == records_.size()) return;
  }
  if (records_[place].end > start) split(place, start);
  std::size_t after = records_.size();
  for (std::size_t at = place + 1; at < records_.size(); ++at) {
    if (end < records_[at].end) split(at, end);
    sets_[records_[at].set] -= nodes;
    count(records_[at].set);
    if (end == records_[at].end) {
      if (at + 1 < records_.size()) after = at + 1;
      break;
    }
  }
  // One record that is as the one before it is dropped.
  for (std::size_t at = before; at != after && at + 1 < records_.size(); ++at) {
    if (sets_[records_[at].set] != sets_[records_[at + 1].set]) continue;
    records_[at].end = records_[at + 1].end;
    unused_.push_back(records_[at + 1].set);
    records_.erase(records_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    break;
  }
}

bool NodeSpace::overlaps(Seconds start, Seconds end, const NodeSet& nodes) const {
  for (std::size_t place = 0; place < records_.size(); ++place) {
    const Record& record = records_[place];
    if (record.begin >= end) break;
    if (record.end > start && !nodes.is_within(free(place))) return true;
  }
  return false;
}

}  // namespace foretime
