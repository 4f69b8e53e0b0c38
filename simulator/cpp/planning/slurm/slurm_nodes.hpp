// The nodes of a cluster under Slurm: what is free of them now and as running jobs end, and which
// of them a job is given. reference/slurm/nodes/node_choice.py is the specification.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "nodes/node_types.hpp"
#include "planning/slurm/gpu_marks.hpp"
#include "planning/slurm/node_set.hpp"
#include "planning/slurm/slurm_switches.hpp"

namespace foretime {

// What a job asks of one slurm_partition, worked out.
struct Wish {
  std::int32_t slurm_partition = 0;
  std::int64_t tasks = 0;
  std::int64_t cpus_per_task = 1;
  std::int64_t cpus = 0;       // of all tasks
  std::int64_t min_nodes = 1;  // with --nodes that number
  std::int64_t max_nodes = 0;
  bool exact_nodes = false;      // --nodes was given
  std::int64_t node_memory = 0;  // of each node
  std::int64_t cpu_memory = 0;   // of each CPU
  std::int64_t gpus = 0;         // of each node
  bool whole = false;            // the nodes are to be its alone
  bool first_fit = false;        // one node: the first that is large enough
  bool one_by_one = false;       // poor nodes are left out one by one
  std::int64_t max_cpus_per_node = kNever;
  std::vector<std::int32_t> groups;      // whose nodes are large enough and have its GPUs
  std::vector<std::int64_t> idle_cpus;   // of an idle node of each of these
  std::shared_ptr<const NodeSet> nodes;  // large enough, though some may lack GPUs

  bool all_on_one_node() const { return exact_nodes && max_nodes == 1; }
  // Whether so many nodes, by group, could hold it if nobody else had any of them.
  bool could_be_on(const std::vector<std::int64_t>& counts) const {
    std::int64_t nodes_there = 0;
    std::int64_t cpus_there = 0;
    for (std::size_t place = 0; place < groups.size(); ++place) {
      const std::int64_t count = counts[static_cast<std::size_t>(groups[place])];
      nodes_there += count;
      cpus_there += count * idle_cpus[place];
    }
    return nodes_there >= min_nodes && cpus_there >= cpus;
  }
};

// Groups of alike nodes, numbered one after the other.
class NodeTable {
 public:
  explicit NodeTable(const NodeMachine& machine);

  std::int64_t nodes() const { return static_cast<std::int64_t>(group_of_.size()); }
  std::int32_t group_of(std::int64_t node) const {
    return group_of_[static_cast<std::size_t>(node)];
  }
  const NodeGroup& group(std::int32_t number) const {
    return machine_.groups[static_cast<std::size_t>(number)];
  }
  std::int32_t groups() const { return static_cast<std::int32_t>(machine_.groups.size()); }
  std::int64_t first_of(std::int32_t group) const {
    return first_[static_cast<std::size_t>(group)];
  }
  std::int64_t last_of(std::int32_t number) const { return first_of(number) + group(number).nodes; }
  // Whether all nodes are only given out whole.
  bool all_whole() const { return all_whole_; }

  // CPUs that a job could have of a node with so much free; 0 if it could have nothing there.
  // `used`: those that jobs of its slurm_partition have there, for MaxCPUsPerNode.
  std::int64_t cpus_for(const Wish& wish, std::int32_t number, const Resources& free,
                        std::int64_t used = 0) const;
  // What a job has of a node with so many CPUs.
  Resources taken(const Wish& wish, std::int32_t number, std::int64_t cpus) const;

 private:
  NodeMachine machine_;
  std::vector<std::int32_t> group_of_;
  std::vector<std::int64_t> first_;
  bool all_whole_ = true;
};

// What is free at one moment.
class FreeNodes {
 public:
  FreeNodes(std::shared_ptr<const NodeTable> table, const SlurmSite& site);

  const NodeTable& table() const { return *table_; }
  // Nobody has anything of these.
  const NodeSet& idle() const { return idle_; }
  // With a CPU to spare.
  const NodeSet& usable() const { return usable_; }
  Resources free_of(std::int64_t node) const;
  // Whether there is as much for a job as its CPUs and nodes need, wherever it is.
  bool may_fit(const Wish& wish) const;
  // CPUs by node that count for MaxCPUsPerNode; null: the slurm_partition has none.
  const std::vector<std::int64_t>* used_in(std::int32_t slurm_partition) const {
    const auto& used = used_[static_cast<std::size_t>(slurm_partition)];
    return used.empty() ? nullptr : &used;
  }
  // Whether what jobs of other slurm_partitions have counts there, too (`counted_cpus`).
  bool others_count_in(std::int32_t slurm_partition) const {
    return std::find(others_count_in_.begin(), others_count_in_.end(), slurm_partition) !=
           others_count_in_.end();
  }
  // Jobs may have run in any slurm_partition.
  void others_never_count();
  // What a job of a slurm_partition has.
  void take(const NodeRow& row, std::int32_t slurm_partition) { change(row, slurm_partition, -1); }
  void give(const NodeRow& row, std::int32_t slurm_partition) { change(row, slurm_partition, 1); }

 private:
  // Of a group of nodes.
  struct Sum {
    std::int64_t idle = 0;
    std::int64_t usable = 0;
    std::int64_t cpus = 0;
  };
  void change(const NodeRow& row, std::int32_t slurm_partition, std::int64_t sign);
  void first_runs_in(std::int32_t slurm_partition);

  std::shared_ptr<const NodeTable> table_;
  std::vector<Sum> sums_;
  std::vector<Resources> free_;  // by node; none where all nodes are given out whole
  std::vector<std::vector<std::int64_t>> used_;  // by slurm_partition and node
  std::vector<std::int32_t> others_count_in_;    // 24.11: where no job has run
  NodeSet idle_;
  NodeSet usable_;
};

// Looks for nodes for one job after the other: of those that are free now, or will be as running
// jobs end.
class NodeChooser {
 public:
  NodeChooser(const FreeNodes& now, const SlurmSite& site, GpuMarks& marks);

  // Begins with what is free now of these nodes.
  void begin(const Wish& wish, const NodeSet& candidates);
  // As if nothing ran.
  void begin_idle(const Wish& wish, const NodeSet& candidates);
  // What another job, of a slurm_partition, has becomes free, as far as it is of the candidates.
  void give(const NodeRow& row, std::int32_t slurm_partition);
  // Whether there is as much as its CPUs and nodes need, wherever it is.
  bool may_fit() const {
    return fitting_nodes_ >= wish_->min_nodes && fitting_cpus_ >= wish_->cpus;
  }
  // What the job would get; nothing if it does not fit.
  std::optional<std::vector<NodeRow>> choose();
  // The same as slurmctld's own test, which leaves marks where the job is for GPUs.
  std::optional<std::vector<NodeRow>> test() {
    if (wish_->gpus > 0 && marks_.count()) leave_marks();
    return choose();
  }

 private:
  // A run of nodes with consecutive numbers and one weight.
  struct Run {
    std::int64_t first = 0;
    std::int64_t last = 0;
    std::int64_t cpus = 0;
    std::int64_t weight = 0;
    std::int64_t most_cpus = 0;  // of one node
    std::int64_t nodes() const { return last - first; }
    bool is_even() const { return cpus == nodes() * most_cpus; }
  };
  // Nodes with consecutive numbers, and what is taken of each.
  struct Chosen {
    std::int64_t node = 0;
    std::int64_t cpus = 0;
    std::int64_t nodes = 1;
  };

  void leave_marks();
  // Light nodes first.
  std::int64_t weight_of(std::int64_t node) const {
    return 256 * table_.group(table_.group_of(node)).weight - marks_.of(node);
  }
  void add_all_free(std::int32_t group, std::int64_t nodes);
  Resources free_of(std::int64_t node) const;
  std::int64_t used_of(std::int64_t node) const;
  std::int64_t cpus_of(std::int64_t node) const;
  void find_runs(const NodeSet& nodes);
  void add_to_runs(std::int64_t first, std::int64_t last, std::int64_t cpus, std::int64_t each,
                   std::int64_t weight);
  std::size_t best_run(std::int64_t cpus_left, std::int64_t nodes_left) const;
  std::int64_t best_single(const Run& run, std::int64_t cpus_left) const;
  bool choose_runs(const NodeSet& nodes, std::int64_t most_nodes);
  bool choose_without_poorest(std::int64_t most_nodes);
  bool leave_out_one_by_one();
  bool leave_out_all_below(std::int64_t most_nodes);
  std::int64_t taken_in_full(std::int64_t cpus, std::int64_t cpus_left,
                             std::int64_t nodes_left) const;
  void add_chosen(std::int64_t node, std::int64_t nodes, std::int64_t cpus);
  void keep_chosen();
  bool choose_first();
  bool choose_by_switches();
  bool deal_out_tasks();
  std::optional<std::vector<NodeRow>> lay_out();

  const FreeNodes& now_;
  const NodeTable& table_;
  GpuMarks& marks_;
  const Wish* wish_ = nullptr;
  const NodeSet* candidates_ = nullptr;
  const std::vector<std::int64_t>* used_now_ = nullptr;  // null: MaxCPUsPerNode does not count
  NodeSet all_free_;                                     // candidates of which nobody has anything
  NodeSet partly_;   // fitting ones, as it begins, of which somebody has something
  NodeSet fitting_;  // candidates of which the job could have a CPU
  std::int64_t fitting_nodes_ = 0;
  std::int64_t fitting_cpus_ = 0;
  std::vector<std::int64_t> idle_cpus_;  // by group: for the job on an idle node
  // Of other nodes that have become freer since the beginning that is noted.
  std::vector<Resources> free_;
  std::vector<std::int64_t> used_;
  std::vector<std::uint32_t> changed_in_;
  std::uint32_t beginning_ = 0;
  // Where poor nodes are left out: fitting ones, poorest first, and by node the CPUs that attempts
  // have left of them.
  struct Riches {
    std::int64_t amount = 0;
    std::int64_t node = 0;
  };
  bool tries_again_ = false;
  std::vector<Riches> riches_;
  std::vector<std::int64_t> available_;
  std::vector<Run> runs_;
  std::vector<Chosen> chosen_;
  std::unique_ptr<SwitchChooser> switches_;  // none: nodes are chosen by their order
  std::vector<Offer> offers_;
};

}  // namespace foretime
