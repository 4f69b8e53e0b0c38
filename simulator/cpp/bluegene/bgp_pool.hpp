// The bgp_partitions of a Blue Gene: which are free, who runs on which, and which is free first.
// machines/bluegene/machine.py explains the names, reference/bgp.py is the specification.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/types.hpp"

namespace foretime {

// A set of bgp_partitions.
class PartitionSet {
 public:
  explicit PartitionSet(std::size_t partitions = 0) : words_((partitions + 63) / 64, 0) {}

  void insert(std::size_t partition) { words_[partition / 64] |= bit(partition); }
  void erase(std::size_t partition) { words_[partition / 64] &= ~bit(partition); }
  std::size_t words() const { return words_.size(); }
  std::uint64_t word(std::size_t at) const { return words_[at]; }
  std::uint64_t& word(std::size_t at) { return words_[at]; }
  std::int64_t count_common(const PartitionSet& other) const {
    std::int64_t count = 0;
    for (std::size_t at = 0; at < words_.size(); ++at) {
      count += std::popcount(words_[at] & other.words_[at]);
    }
    return count;
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t at = 0; at < words_.size(); ++at) {
      for (std::uint64_t word = words_[at]; word != 0; word &= word - 1) {
        visit(at * 64 + static_cast<std::size_t>(std::countr_zero(word)));
      }
    }
  }

 private:
  static std::uint64_t bit(std::size_t partition) { return std::uint64_t{1} << (partition % 64); }

  std::vector<std::uint64_t> words_;
};

struct BgpMachine {
  // Of each bgp_partition: ascending, those of one size in the order of their names.
  std::vector<Processors> nodes;
  // Which ones it shares midplanes or wires with, itself included.
  std::vector<PartitionSet> conflicts;
};

// What the head job waits for.
struct Drain {
  std::size_t partition = 0;
  Seconds free_at = 0;  // the latest expected end of the jobs in its way: the backfill window's end
};

class BgpPool {
 public:
  explicit BgpPool(BgpMachine machine);

  // A job is known by its index from here on: what it asks for is held by the smallest size of at
  // least as many nodes.
  void add(JobIndex job, Processors nodes);
  void arrived(JobIndex job) { ++waiting_[size_of(job)]; }
  void left_queue(JobIndex job) { --waiting_[size_of(job)]; }
  void start(JobIndex job, std::size_t partition);
  void finish(JobIndex job);

  // Whether any job that waits finds a free bgp_partition of its size.
  bool any_waiting_fits() const;
  bool is_free(std::size_t partition) const { return in_the_way_[partition] == 0; }
  // Whether a job of so many nodes could start now.
  bool any_free(Processors nodes) const { return free_of_size_[smallest_size(nodes)] > 0; }
  bool fits(JobIndex job) const { return free_of_size_[size_of(job)] > 0; }
  // The free one of the job's size that blocks fewest others; `beside`: of those that do not touch
  // this one.
  std::optional<std::size_t> choose(JobIndex job,
                                    std::optional<std::size_t> beside = std::nullopt) const;
  // Of the job's size, none of which is free, the one that is free first; of several the one that
  // touches fewest free ones. `end_of`: when a running job is taken to end, never in the past.
  template <class EndOf>
  Drain first_free(JobIndex job, EndOf end_of) {
    sort_by_end(end_of);
    return first_free_of_sorted(size_of(job));
  }

  // Whether a job is known and has a bgp_partition, or had one.
  bool has(JobIndex job) const {
    return static_cast<std::size_t>(job) < partition_of_.size() && partition_of(job) >= 0;
  }
  std::int32_t partition_of(JobIndex job) const {
    return partition_of_[static_cast<std::size_t>(job)];
  }

 private:
  struct Running {
    Seconds end = 0;
    JobIndex job = 0;
    std::size_t partition = 0;
  };

  // Of those that hold so many nodes.
  std::size_t smallest_size(Processors nodes) const {
    return static_cast<std::size_t>(std::lower_bound(sizes_.begin(), sizes_.end(), nodes) -
                                    sizes_.begin());
  }
  std::size_t size_of(JobIndex job) const { return size_of_[static_cast<std::size_t>(job)]; }
  // Latest first. From one time to the next little changes.
  template <class EndOf>
  void sort_by_end(EndOf end_of) {
    for (std::size_t at = 0; at < running_.size(); ++at) {
      Running running = running_[at];
      running.end = end_of(running.job);
      std::size_t place = at;
      for (; place > 0 && running_[place - 1].end < running.end; --place) {
        running_[place] = running_[place - 1];
      }
      running_[place] = running;
    }
  }
  Drain first_free_of_sorted(std::size_t size) const;
  std::size_t blocks_fewest(const PartitionSet& among) const;

  std::vector<PartitionSet> conflicts_;
  std::vector<Processors> sizes_;  // distinct, ascending
  std::vector<PartitionSet> of_size_;
  std::vector<std::size_t> size_of_partition_;

  PartitionSet free_;
  std::vector<std::int32_t>
      in_the_way_;  // of each bgp_partition: running jobs that it conflicts with
  std::vector<std::int64_t> free_of_size_;
  std::vector<std::int64_t> waiting_;  // by size
  std::vector<Running> running_;
  std::vector<std::size_t> size_of_;        // by job
  std::vector<std::int32_t> partition_of_;  // by job; -1: none yet
};

}  // namespace foretime
