// Limits of a PBS server and its queues, and what is counted for them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planning/pbs/pbs_site.hpp"

namespace foretime {

// What limits look at in a job.
struct PbsCounted {
  std::int32_t queue = 0;
  std::int32_t user = -1;
  std::int32_t project = -1;
  PbsList list{};

  std::size_t code(PbsWho who) const {
    if (who == PbsWho::kAll) return 0;
    return static_cast<std::size_t>(who == PbsWho::kUser ? user : project) + 1;
  }
  std::int64_t amount(const PbsLimit& limit) const {
    return limit.what < 0 ? 1 : list[static_cast<std::size_t>(limit.what)];
  }
  bool counts_for(const PbsLimit& limit) const { return limit.queue < 0 || limit.queue == queue; }
  // Whether both are counted together.
  bool is_with(const PbsCounted& other, const PbsLimit& limit) const {
    return counts_for(limit) && other.counts_for(limit) && code(limit.who) == other.code(limit.who);
  }
};

class PbsCounts {
 public:
  explicit PbsCounts(const std::vector<PbsLimit>& limits)
      : limits_(&limits), count_(limits.size()) {}

  bool empty() const { return count_.empty(); }

  void add(const PbsCounted& job, std::int64_t sign) {
    for (std::size_t i = 0; i < count_.size(); ++i) {
      const PbsLimit& limit = (*limits_)[i];
      if (!job.counts_for(limit)) continue;
      const std::size_t code = job.code(limit.who);
      if (code >= count_[i].size()) count_[i].resize(code + 1, 0);
      count_[i][code] += sign * job.amount(limit);
    }
  }

  // Whether one more job is allowed; `rise` says by how much a count rises until the job ends.
  template <class Rise>
  bool allow(const PbsCounted& job, Rise rise) const {
    for (std::size_t i = 0; i < count_.size(); ++i) {
      const PbsLimit& limit = (*limits_)[i];
      if (!job.counts_for(limit)) continue;
      const std::int64_t amount = job.amount(limit);
      if (amount == 0 && limit.if_asked) continue;
      const std::size_t code = job.code(limit.who);
      const auto named = limit.named.find(static_cast<std::int32_t>(code) - 1);
      const std::int64_t most =
          named == limit.named.end() ? limit.most.value_or(kNever) : named->second;
      const std::int64_t counted = code < count_[i].size() ? count_[i][code] : 0;
      if (counted + rise(limit) + amount > most) return false;
    }
    return true;
  }

 private:
  const std::vector<PbsLimit>* limits_;
  std::vector<std::vector<std::int64_t>> count_;  // by limit, then by whose jobs
};

}  // namespace foretime
