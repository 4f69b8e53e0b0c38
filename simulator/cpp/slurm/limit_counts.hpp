// What jobs have, counted under one heading: an association, a QOS, a user or account of a QOS.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "slurm/limit_setup.hpp"

namespace foretime::slurm {

using Nodes = std::span<const std::int32_t>;

struct Counts {
  std::int64_t jobs = 0;
  std::int64_t submitted = 0;
  std::vector<std::int64_t> tres;
  std::vector<std::int64_t> left_s;
  // Where a limit of nodes asks for it: how many of its jobs run on each.
  bool counts_nodes = false;
  std::unordered_map<std::int32_t, std::int32_t> jobs_on;
  std::int64_t unnamed_nodes = 0;

  Counts(std::int32_t kinds, bool by_node)
      : tres(static_cast<std::size_t>(kinds)),
        left_s(static_cast<std::size_t>(kinds)),
        counts_nodes(by_node) {}

  void start(const std::vector<std::int64_t>& more, std::int64_t seconds, Nodes nodes,
             std::int32_t node_kind) {
    ++jobs;
    for (std::size_t kind = 0; kind < tres.size(); ++kind) {
      tres[kind] += more[kind];
      left_s[kind] += more[kind] * seconds;
    }
    if (!counts_nodes) return;
    if (nodes.empty()) unnamed_nodes += more[static_cast<std::size_t>(node_kind)];
    for (const auto node : nodes) ++jobs_on[node];
    count_nodes(node_kind);
  }

  void end(const std::vector<std::int64_t>& gone, Nodes nodes, std::int32_t node_kind) {
    --jobs;
    for (std::size_t kind = 0; kind < tres.size(); ++kind) tres[kind] -= gone[kind];
    if (!counts_nodes) return;
    if (nodes.empty()) unnamed_nodes -= gone[static_cast<std::size_t>(node_kind)];
    for (const auto node : nodes) {
      const auto found = jobs_on.find(node);
      if (--found->second == 0) jobs_on.erase(found);
    }
    count_nodes(node_kind);
  }

  void take_left(const std::vector<std::int64_t>& of_each, std::int64_t seconds) {
    for (std::size_t kind = 0; kind < left_s.size(); ++kind) {
      left_s[kind] = std::max<std::int64_t>(left_s[kind] - of_each[kind] * seconds, 0);
    }
  }

  // How many of a job's nodes none of its jobs has (_get_unique_job_node_cnt).
  std::int64_t nodes_more(Nodes nodes, std::int64_t count) const {
    for (const auto node : nodes) count -= static_cast<std::int64_t>(jobs_on.contains(node));
    return count;
  }

 private:
  void count_nodes(std::int32_t node_kind) {
    tres[static_cast<std::size_t>(node_kind)] =
        static_cast<std::int64_t>(jobs_on.size()) + unnamed_nodes;
  }
};

}  // namespace foretime::slurm
