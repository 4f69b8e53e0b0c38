// What a site's slurmctld knows at a moment, besides the engine's jobs; it can be copied, so that
// each forward run begins with its own.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "planning/slurm/slurm_nodes.hpp"
#include "planning/slurm/slurm_rules.hpp"
#include "planning/slurm/slurm_site.hpp"

namespace foretime {

// What jobs ask for, worked out for a site; shared by all engines that begin from one snapshot.
class SlurmRequests {
 public:
  SlurmRequests(std::shared_ptr<const SlurmSite> site, std::shared_ptr<const NodeTable> table)
      : site_(std::move(site)), table_(std::move(table)) {
    for (std::size_t i = 0; i < site_->partitions.size(); ++i) {
      counted_in_.push_back(SlurmRules::counted(*site_, {static_cast<std::int32_t>(i)}, {}, 0));
    }
  }

  // Some of them, in this order.
  SlurmRequests(const SlurmRequests& other, const std::vector<std::int32_t>& chosen)
      : SlurmRequests(other.site_, other.table_) {
    for (const std::int32_t request : chosen) {
      const auto at = static_cast<std::size_t>(request);
      requests_.push_back(other.requests_[at]);
      wishes_.push_back(other.wishes_[at]);
      counted_.push_back(other.counted_[at]);
    }
  }

  void add(ResourceRequest request);
  std::size_t size() const { return requests_.size(); }
  // One for each slurm_partition in which the job can run.
  const std::vector<Wish>& wishes(std::int32_t request) const {
    return wishes_[static_cast<std::size_t>(request)];
  }
  const CountedRequest& counted(std::int32_t request) const {
    return counted_[static_cast<std::size_t>(request)];
  }
  // Of a job of which only that is known that it runs in a slurm_partition.
  const CountedRequest& counted_in(std::int32_t slurm_partition) const {
    return counted_in_[static_cast<std::size_t>(slurm_partition)];
  }
  std::shared_ptr<const NodeSet> nodes_of(const std::vector<std::int32_t>& groups);

 private:
  std::shared_ptr<const SlurmSite> site_;
  std::shared_ptr<const NodeTable> table_;
  std::deque<ResourceRequest> requests_;
  std::deque<std::vector<Wish>> wishes_;
  std::deque<CountedRequest> counted_;
  std::deque<CountedRequest> counted_in_;
  std::map<std::vector<std::int32_t>, std::shared_ptr<const NodeSet>> known_;
};

// A job record.
struct SlurmRecord {
  std::int32_t request = 0;
  Seconds time_limit = 0;  // as Slurm holds it
  Seconds time_min = 0;    // 0: none
  // Both as the engine's job has them; backfill may have shortened the limit since.
  std::pair<Seconds, Seconds> given{0, 0};
  Seconds eligible = kNever;  // since when only the queue holds it; kNever: something else does
  Seconds estimate = kNever;  // backfill's plan of a waiting one
  bool waits = false;         // submitted, and not started
  bool refused = false;       // at its submission, for good
  slurm::Reason reason = 0;   // of limits that held it when it was last looked at, or refused it
  // Once it runs:
  std::int32_t slurm_partition = -1;
  std::int32_t number = 0;  // of the wish
  bool whole = false;
  Seconds start = 0;  // while it waits: its submission
  Seconds limit_end = 0;
  std::vector<NodeRow> rows;
};

// Jobs that the same limits keep in the same slurm_partition.
struct KeptGroup {
  std::int32_t association = -1;
  std::int32_t qos = -1;
  std::int32_t slurm_partition = -1;
  // How often what these limits go by has changed, as of so many changes of all limits.
  std::int64_t changes = 0;
  std::int64_t as_of = -1;
};

// A job that limits kept when they were last asked: still, if nothing has changed for its group.
struct KeptJob {
  std::int32_t group = -1;
  std::int64_t changes = 0;
};

// A job in one of its slurm_partitions.
struct QueueEntry {
  bool outside = true;  // of reservations
  std::int64_t tier = 0;
  std::int64_t priority = 0;
  Seconds submit = 0;
  JobIndex job = 0;
  std::int32_t number = 0;
  friend bool operator<(const QueueEntry& a, const QueueEntry& b) {
    if (a.outside != b.outside) return b.outside;
    if (a.tier != b.tier) return a.tier > b.tier;
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.submit != b.submit) return a.submit < b.submit;
    return a.job != b.job ? a.job < b.job : a.number < b.number;
  }
};

}  // namespace foretime
