// A machine of nodes, and what jobs ask of it. machine.py and resource_requests.py explain the
// names.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <vector>

#include "core/names.hpp"
#include "core/types.hpp"

namespace foretime {

// Compared in the order in which equally good nodes are preferred: fewest GPUs free first.
struct Resources {
  std::int64_t gpus = 0;
  std::int64_t memory = 0;
  std::int64_t cpus = 0;
  friend auto operator<=>(const Resources&, const Resources&) = default;
  Resources& operator+=(const Resources& other) {
    gpus += other.gpus;
    memory += other.memory;
    cpus += other.cpus;
    return *this;
  }
  friend Resources operator-(const Resources& a) { return {-a.gpus, -a.memory, -a.cpus}; }
};

inline Resources least(const Resources& a, const Resources& b) {
  return {std::min(a.gpus, b.gpus), std::min(a.memory, b.memory), std::min(a.cpus, b.cpus)};
}

struct NodeGroup {
  std::int64_t nodes = 0;
  Resources node;                // memory: 0 if it is not counted
  std::int64_t memory_size = 0;  // if it is not counted: how large it is; 0: unknown
  std::int64_t weight = 0;
  bool whole = false;  // nodes are only given out whole, and planned by their number
};

struct NodeMachine {
  std::vector<NodeGroup> groups;
  std::vector<std::int64_t> most_nodes_in_use;  // of each slurm_partition; kNever: no limit
};

// Groups of nodes that are set aside for others, or not yet there, for a time.
struct Closure {
  Seconds start = 0;
  Seconds end = 0;
  std::vector<std::int32_t> groups;
  bool overlaps(Seconds from, Seconds until) const { return start < until && from < end; }
};

struct PartitionChoice {
  std::int32_t slurm_partition = 0;
  std::vector<std::int32_t> groups;
  std::int64_t most_nodes = 0;
  std::int64_t memory_per_task = 0;
  bool exclusive = false;
  std::vector<Closure> closures;
  std::vector<std::int32_t> groups_by_size;  // and those that lack nothing but GPUs

  // Without the groups that are closed at some time within [from, until).
  PartitionChoice open_during(Seconds from, Seconds until) const {
    PartitionChoice open = *this;
    for (const Closure& closure : closures) {
      if (!closure.overlaps(from, until)) continue;
      std::erase_if(open.groups, [&closure](std::int32_t group) {
        return std::find(closure.groups.begin(), closure.groups.end(), group) !=
               closure.groups.end();
      });
    }
    return open;
  }
};

// A chunk of a select statement of PBS, alike ones together; memory in bytes.
struct PbsChunk {
  std::int64_t count = 0;
  Resources each;
  friend bool operator==(const PbsChunk&, const PbsChunk&) = default;
};

enum class PbsPlace : std::uint8_t { kFree, kPack, kScatter };
constexpr auto names_of(PbsPlace) { return named("free", "pack", "scatter"); }

struct ResourceRequest {
  std::int64_t tasks = 0;
  std::int64_t cpus_per_task = 0;
  std::int64_t nodes = 0;  // 0: as few as possible
  std::int64_t memory_per_node = 0;
  std::int64_t gpus_per_node = 0;
  std::int64_t tier = 0;
  std::vector<PartitionChoice> choices;
  // Under PBS, where that is told, in place of the numbers above.
  std::vector<PbsChunk> chunks;
  PbsPlace place = PbsPlace::kFree;

  bool meets_closures() const {
    return std::any_of(choices.begin(), choices.end(),
                       [](const PartitionChoice& choice) { return !choice.closures.empty(); });
  }
};

// What a job has of a unit: of one node, or a number of whole nodes.
struct Share {
  std::int32_t unit = 0;
  std::int64_t nodes = 0;
  Resources node;  // of each
};
using Shares = std::vector<Share>;

// The same by numbers of nodes: so many nodes from this one on.
struct NodeRow {
  std::int64_t node = 0;
  std::int64_t nodes = 0;
  Resources of_each;
};

}  // namespace foretime
