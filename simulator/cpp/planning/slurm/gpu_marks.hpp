// What tests of jobs for GPUs leave on nodes before 24.11: of nodes with one weight those with more
// marked GPUs are lighter for the tests that follow.
// reference/slurm/nodes/node_choice.py (`mark`) is the specification.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "planning/slurm/node_set.hpp"
#include "planning/slurm/slurm_site.hpp"

namespace foretime {

class GpuMarks {
 public:
  explicit GpuMarks(const SlurmSite& site) {
    bool any_gpus = false;
    for (const NodeGroup& group : site.machine.groups) any_gpus |= group.node.gpus > 0;
    counts_ = any_gpus && site.version < std::pair{24, 11};
  }

  // Whether a site's Slurm goes by them.
  bool count() const { return counts_; }
  // The marked nodes by their GPUs, most first.
  const std::map<std::int64_t, NodeSet, std::greater<>>& by_gpus() const { return by_gpus_; }
  std::int64_t of(std::int64_t node) const {
    for (const auto& [gpus, nodes] : by_gpus_) {
      if (nodes.has(node)) return gpus;
    }
    return 0;
  }
  void mark(const NodeSet& nodes, std::int64_t gpus) {
    forget(nodes);
    if (!nodes.empty()) by_gpus_.try_emplace(gpus, nodes).first->second |= nodes;
  }
  void forget(const NodeSet& nodes) {
    for (auto& [gpus, marked] : by_gpus_) marked -= nodes;
    std::erase_if(by_gpus_, [](const auto& each) { return each.second.empty(); });
  }
  friend bool operator==(const GpuMarks&, const GpuMarks&) = default;

 private:
  bool counts_ = false;
  std::map<std::int64_t, NodeSet, std::greater<>> by_gpus_;
};

}  // namespace foretime
