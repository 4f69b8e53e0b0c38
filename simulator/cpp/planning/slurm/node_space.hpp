// Backfill's table of what is not reserved for waiting jobs, over time (`node_space` in
// backfill.c).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/types.hpp"
#include "planning/slurm/node_set.hpp"
#include "planning/slurm/slurm_nodes.hpp"

namespace foretime {

// The table holds who is kept when, not which nodes each record leaves: a day has hundreds of
// records, and most questions are about few of them.
class NodeSpace {
 public:
  // In [begin, end) the same nodes are not reserved.
  struct Record {
    Seconds begin = 0;
    Seconds end = 0;
    std::size_t facts = 0;
  };
  // Nodes that are reserved in [begin, end).
  struct Plan {
    Seconds begin = 0;
    Seconds end = 0;
    NodeSet nodes;
    NodeSet::Extent extent;
  };

  // `table` is to outlive it.
  explicit NodeSpace(const NodeTable& table) : table_(&table) {}

  // One record, in which all of these nodes are free, and so many of each license.
  void begin(Seconds begin, Seconds end, const NodeSet& nodes, std::vector<std::int64_t> licenses);
  // `_add_reservation`.
  void reserve(Seconds start, Seconds end, const NodeSet& nodes, const LicenseCounts& licenses,
               Seconds resolution);
  // `_test_resv_overlap`: whether any of the nodes are reserved at some time in [start, end).
  bool overlaps(Seconds start, Seconds end, const NodeSet& nodes) const;
  // And whether it leaves too few of these licenses at some time.
  bool lacks(Seconds start, Seconds end, const LicenseCounts& licenses) const;
  // Whether a record leaves too few of them.
  bool record_lacks(std::size_t place, const LicenseCounts& licenses) const;
  // Takes out what is reserved in any record that ends after start and does not begin after end.
  void leave_free(Seconds start, Seconds end, NodeSet& nodes) const;

  // When the first plan begins that has any of the nodes; kNever: none.
  Seconds first_plan_of(const NodeSet& nodes) const;

  std::size_t size() const { return records_.size(); }
  // How many were made, those that were dropped included.
  std::size_t made() const { return made_; }
  const Record& record(std::size_t place) const { return records_[place]; }
  // How many nodes it leaves, by group of nodes.
  const std::vector<std::int64_t>& counts(std::size_t place) const {
    return facts_[records_[place].facts].counts;
  }
  // Whether the next record leaves any of these nodes that it does not; the last has no next.
  bool next_gains(std::size_t place, const NodeSet& within) const {
    if (place + 1 >= records_.size()) return false;
    const Facts& next = facts_[records_[place + 1].facts];
    return next.gains && within.meets(next.gained);
  }
  // The first record that ends after a time; their number if there is none.
  std::size_t first_after(Seconds time) const;

  // Plans by their begins.
  std::size_t planned() const { return by_begin_.size(); }
  const Plan& plan(std::size_t place) const { return plans_[by_begin_[place]]; }
  const Plan& plan_by_end(std::size_t place) const { return plans_[by_end_[place]]; }
  // The place of the first plan, by begins, that begins after a time.
  std::size_t first_beginning_after(Seconds time) const {
    const auto found = std::partition_point(
        by_begin_.begin(), by_begin_.end(),
        [this, time](std::size_t known) { return plans_[known].begin <= time; });
    return static_cast<std::size_t>(found - by_begin_.begin());
  }
  std::int64_t nodes() const { return table_->nodes(); }

 private:
  struct Facts {
    std::vector<std::int64_t> counts;
    std::vector<std::int64_t> licenses;  // that are left of each; none where they are not kept
    // Against the record before it.
    NodeSet gained;
    NodeSet lost;
    bool gains = false;
    bool loses = false;
  };

  static bool covers(const Plan& plan, const Record& record) {
    return plan.begin <= record.begin && record.end <= plan.end && record.begin < record.end;
  }
  const Plan& add_plan(Seconds begin, Seconds end, const NodeSet& nodes);
  void count(const NodeSet& nodes, std::vector<std::int64_t>& counts) const;
  std::size_t new_facts();
  void split(std::size_t place, Seconds at);
  void begins_at(std::size_t place, const Plan& plan);
  void ends_at(std::size_t place, const Plan& plan);
  void work_out_anew();

  const NodeTable* table_;
  NodeSet all_;
  std::vector<Record> records_;  // by time, one after the other
  std::vector<Facts> facts_;
  std::vector<std::size_t> unused_;
  std::vector<Plan> plans_;            // as many as are there, first made first
  std::vector<std::size_t> by_begin_;  // their places
  std::vector<std::size_t> by_end_;
  std::vector<std::int64_t> counts_;
  std::size_t made_ = 0;
  bool keeps_licenses_ = false;
};

}  // namespace foretime
