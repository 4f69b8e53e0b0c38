// Backfill's table of what is not reserved for waiting jobs, over time (`node_space` in
// backfill.c).
#pragma once

#include <cstddef>
#include <vector>

#include "core/types.hpp"
#include "planning/slurm/node_set.hpp"
#include "planning/slurm/slurm_nodes.hpp"

namespace foretime {

class NodeSpace {
 public:
  // Nodes that are not reserved in [begin, end).
  struct Record {
    Seconds begin = 0;
    Seconds end = 0;
    std::size_t set = 0;
  };

  // `table` is to outlive it.
  explicit NodeSpace(const NodeTable& table) : table_(&table) {}

  // One record, in which all of these nodes are free.
  void begin(Seconds begin, Seconds end, const NodeSet& nodes);
  // `_add_reservation`.
  void reserve(Seconds start, Seconds end, const NodeSet& nodes, Seconds resolution);
  // `_test_resv_overlap`: whether any of the nodes are reserved at some time in [start, end).
  bool overlaps(Seconds start, Seconds end, const NodeSet& nodes) const;

  std::size_t size() const { return records_.size(); }
  // How many were made, those that were dropped included.
  std::size_t made() const { return made_; }
  const Record& record(std::size_t place) const { return records_[place]; }
  const NodeSet& free(std::size_t place) const { return sets_[records_[place].set]; }
  // How many they are, by group of nodes.
  const std::vector<std::int64_t>& counts(std::size_t place) const {
    return counts_[records_[place].set];
  }
  // The first record that ends after a time; their number if there is none.
  std::size_t first_after(Seconds time) const;

 private:
  void count(std::size_t set);
  std::size_t copy_of(std::size_t set);
  void split(std::size_t place, Seconds at);

  const NodeTable* table_;
  std::vector<Record> records_;  // by time, one after the other
  std::vector<NodeSet> sets_;
  std::vector<std::vector<std::int64_t>> counts_;  // of each set
  std::vector<std::size_t> unused_;
  std::size_t made_ = 0;
};

}  // namespace foretime
