// What shares of nodes are of a node, and of the machine.
#pragma once

#include <algorithm>

#include "nodes/node_types.hpp"

namespace foretime {

inline Seconds end_of(Seconds start, Seconds duration) {
  return duration >= kNever - std::max<Seconds>(start, 0) ? kNever : start + duration;
}

inline Resources of_unit(const NodeGroup& group, const Share& share) {
  return group.whole ? Resources{0, 0, share.nodes} : share.node;
}

inline bool covers(const Resources& free, const Resources& wanted) {
  return free.cpus >= wanted.cpus && free.memory >= wanted.memory && free.gpus >= wanted.gpus;
}

inline std::int64_t nodes_of(const Shares& shares) {
  std::int64_t nodes = 0;
  for (const Share& share : shares) nodes += share.nodes;
  return nodes;
}

}  // namespace foretime
