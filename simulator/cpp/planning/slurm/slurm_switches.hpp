// Nodes that hang on switches (topology/tree), and which of them a job is given.
// reference/slurm/nodes/switch_choice.py is the specification.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "planning/slurm/gpu_marks.hpp"
#include "planning/slurm/node_set.hpp"
#include "planning/slurm/slurm_site.hpp"

namespace foretime {

// What follows of a site's switches: for each of them, by its place, ...
struct SwitchTree {
  explicit SwitchTree(const SlurmSite& site);

  std::vector<NodeSet> nodes;                         // that it reaches
  std::vector<std::int64_t> levels;                   // 0 of leaves
  std::vector<std::int32_t> parents;                  // -1: none
  std::vector<std::vector<std::uint32_t>> distances;  // steps to each
  std::vector<std::size_t> leaves;
  std::vector<std::int64_t> weights;  // of each node
  std::vector<NodeSet> alike;         // nodes of one weight, the lightest first
  bool later_release = true;          // as 25.11; otherwise as 22.05
};

// What a node has for a job; when it is chosen, what is taken.
struct Offer {
  std::int64_t node = 0;
  std::int64_t cpus = 0;
  std::int64_t gpus = 0;
};

// What a job asks of all its nodes together.
struct Asked {
  std::int64_t cpus = 0;
  std::int64_t cpus_per_task = 1;
  std::int64_t min_nodes = 1;
  std::int64_t max_nodes = 0;
  std::int64_t tasks = 0;
  bool gpus = false;
  bool whole = false;  // the nodes are to be its alone
};

class SwitchChooser {
 public:
  SwitchChooser(const SlurmSite& site, const GpuMarks& marks);

  // Chooses among offers, one a node; false: they won't do.
  bool choose(const Asked& asked, const std::vector<Offer>& offers);
  // Ascending by node.
  std::vector<Offer> chosen() const;

 private:
  bool attempt(std::int64_t most_nodes);
  bool leave_out_one_by_one();
  bool leave_out_all_below(std::int64_t most_nodes);
  void sort_by_riches(const std::vector<Offer>& offers);

  std::int64_t top_switch() const;
  bool divide_by_weight(std::size_t top);
  bool has_enough() const { return nodes_left_ <= 0 && cpus_left_ <= 0; }
  void take(std::int64_t node);
  // What comes of taking nodes of a leaf one by one.
  enum class End : std::uint8_t { kFound, kFailed, kGoOn };
  End fill_used();
  bool add_leaves();
  void add_distances(std::size_t from);
  void count_down(std::size_t from, std::int64_t nodes);
  std::int64_t best_leaf() const;
  bool fits(std::size_t place) const;
  // 1: the first is the better fit; and whether that one fits.
  std::pair<int, bool> compare(std::size_t one, std::size_t other) const;

  SwitchTree tree_;
  const GpuMarks& marks_;
  Asked asked_;
  NodeSet left_;                    // nodes that an attempt may choose from
  std::vector<std::int64_t> cpus_;  // by node: for the job
  std::vector<Offer> by_riches_;    // poorest first; its CPUs are the riches
  // Of an attempt:
  NodeSet needed_;  // nodes lighter than others that are needed, too
  NodeSet taken_;
  std::int64_t cpus_left_ = 0;
  std::int64_t nodes_left_ = 0;
  std::int64_t most_left_ = 0;
  std::vector<NodeSet> of_;          // nodes of each switch
  std::vector<std::int64_t> count_;  // how many they are
  std::vector<std::int64_t> cpus_of_;
  std::vector<bool> used_;  // switches of whose nodes some are needed
  std::vector<std::uint32_t> distance_;
};

}  // namespace foretime
