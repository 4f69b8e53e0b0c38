// The nodes of a machine: what is free of them now, what will be by the plans, and where a job
// fits. reference/nodes.py is the specification.
//
// Nodes of a group that have the same free resources and no reservation are handled together, so
// that placing a job costs by how many kinds of such nodes there are, not by their number; and so
// are reserved nodes of which the same is free from now on. The search for the earliest start goes
// through the running jobs in the order of their ends, and touches only the nodes that they free on
// the way. Only of reserved nodes, and of interchangeable ones, is kept what is free over time.
#pragma once

#include <optional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "nodes/free_steps.hpp"
#include "nodes/node_classes.hpp"
#include "nodes/node_types.hpp"

namespace foretime {

struct PlannedPlace {
  Seconds start = kNever;
  Shares shares;
};

class NodePool {
 public:
  NodePool(NodeMachine machine, Seconds now);

  // Whether the nodes that jobs have are recorded, by number.
  void record(bool on) { records_ = on; }

  // Whether as many CPUs are free now, wherever they are.
  bool has_free_cpus(const ResourceRequest& request, const PartitionChoice& choice) const;
  // Where the job fits from now on for the duration; nothing if it does not.
  std::optional<Shares> place_now(const ResourceRequest& request, const PartitionChoice& choice,
                                  Seconds now, Seconds duration);
  // Earliest planned start in [from, before) and where, by expected ends and reservations; kNever
  // if there is none.
  PlannedPlace earliest(const ResourceRequest& request, const PartitionChoice& choice, Seconds from,
                        Seconds before, Seconds duration);
  // Whether a planned job can really start where it is planned.
  bool fits_now(const Shares& shares, std::int32_t slurm_partition) const;
  // Whether no more is claimed there than there is.
  bool holds(const Shares& shares, std::int32_t slurm_partition, Seconds start, Seconds end) const;

  // Running jobs. The end is when the plans take the nodes to be free again.
  void start(JobIndex job, std::int32_t slurm_partition, const Shares& shares, Seconds now,
             Seconds end);
  void finish(JobIndex job, Seconds now);
  void set_end(JobIndex job, Seconds now, Seconds end);
  std::int32_t slurm_partition_of(JobIndex job) const;

  // Claims of jobs that wait.
  void reserve(const Shares& shares, std::int32_t slurm_partition, Seconds now, Seconds start,
               Seconds end);
  void unreserve(const Shares& shares, std::int32_t slurm_partition, Seconds now, Seconds start,
                 Seconds end);

  // What running jobs have; of interchangeable nodes their group's first one stands for all.
  const Shares& shares_of(JobIndex job) const {
    return running_[static_cast<std::size_t>(job)].shares;
  }
  std::int64_t first_node_of(std::int32_t unit) const {
    return units_[static_cast<std::size_t>(unit)].first_node;
  }
  Shares shares_on(const std::vector<NodeRow>& rows) const;

  // Rows of job, node, CPUs, memory, GPUs.
  const std::vector<std::int64_t>& records() const { return rows_; }

 private:
  struct Held {
    JobIndex job = 0;
    Resources resources;
    friend bool operator==(const Held&, const Held&) = default;
  };
  struct Unit {
    std::int32_t group = 0;
    NodeClasses::Number of_class = 0;  // by what is free now; not of a whole group
    NodeClasses::Number seen_class = 0;
    std::int64_t first_node = 0;
    std::int64_t nodes = 0;
    Resources free;                  // now; of a whole group `cpus` counts the nodes
    std::int64_t reserved = 0;       // claims of waiting jobs
    std::size_t reserved_place = 0;  // in reserved_, while there are any
    FreeSteps steps;                 // by the plans; of a node only kept while it is reserved
    std::vector<Held> held;          // by running jobs; not of a whole group
    std::int64_t touched = 0;        // the search that has put it aside
    Resources seen;                  // then: what is free at the time that the search looks at
  };
  struct Running {
    std::int32_t slurm_partition = -1;
    Seconds end = 0;
    Shares shares;
    std::vector<std::int64_t> nodes;  // recorded: of interchangeable nodes, which
  };
  using Units = std::vector<std::int32_t>;
  // Reserved nodes of which the same is free for jobs that start now.
  struct Pattern {
    std::int32_t group = 0;
    std::vector<FreeSteps::Step> least;  // from `time` on until any later end, and now
    Units units;
  };
  // Nodes in which a job that is to be placed sees the same: alike, and told apart by number only.
  struct Kind {
    std::int64_t weight = 0;
    std::int64_t tasks = 0;
    Resources free{};
    std::int64_t count = 0;
    std::int32_t group = 0;
    NodeClasses::Number of_class = -1;  // as the search sees it; else
    const Units* units = nullptr;       // these; else
    std::int32_t unit = -1;             // one unit
  };
  struct Pick {
    std::size_t first = 0;  // kinds of one run: [first, last)
    std::size_t last = 0;
    std::int64_t count = 0;
    std::int64_t tasks = 0;
  };
  // How much of what a job needs there is: tasks, or nodes for the larger and the smaller of its
  // even pieces.
  struct Amount {
    std::int64_t larger = 0;
    std::int64_t smaller = 0;
    void add(const Amount& other, std::int64_t times) {
      larger += other.larger * times;
      smaller += other.smaller * times;
    }
    bool covers(const Amount& need) const {
      return larger >= need.larger && smaller >= need.smaller;
    }
  };
  // What the search that goes on knows of a class.
  struct ClassInSearch {
    std::int64_t search = 0;
    Amount amount;
    std::int64_t gained = 0;   // nodes that it sees in the class more than there are now
    bool listed = false;       // among seen_classes_
    std::int32_t picked = -1;  // the place among the kinds, if the job takes nodes of it
  };
  // Of the steps in a window those whose amount is below that of every later one there.
  struct AscendingSteps {
    std::vector<std::size_t> steps;
    std::size_t front = 0;
  };
  struct Change {
    Seconds time = 0;
    Amount before;
    Amount after;
  };

  static std::int64_t tasks_on(const ResourceRequest& request, const PartitionChoice& choice,
                               const NodeGroup& group, const Resources& free);
  static Amount need(const ResourceRequest& request);
  static Amount amount(const ResourceRequest& request, const PartitionChoice& choice,
                       const NodeGroup& group, const Resources& free);
  ClassInSearch& in_search(const ResourceRequest& request, const PartitionChoice& choice,
                           std::int32_t group, NodeClasses::Number number);
  void see_in_class(const ResourceRequest& request, const PartitionChoice& choice,
                    std::int32_t group, NodeClasses::Number number, std::int64_t nodes,
                    Amount& have);
  void add_kind(const ResourceRequest& request, const PartitionChoice& choice, std::int32_t group,
                const Resources& free, std::int64_t count, Kind where);
  void find_patterns(Seconds now);
  Amount reserved_changes(const ResourceRequest& request, const PartitionChoice& choice,
                          const Unit& unit, Seconds from, Seconds before, Seconds duration);
  void collect_kinds(const ResourceRequest& request, const PartitionChoice& choice, Seconds start,
                     Seconds duration, bool now);
  std::optional<Shares> choose(const ResourceRequest& request, const PartitionChoice& choice,
                               std::int64_t most_nodes);
  bool choose_fewest(std::int64_t tasks, bool by_weight);
  bool choose_evenly(std::int64_t tasks, std::int64_t nodes);
  void sort_units(std::vector<std::pair<std::int32_t, std::int64_t>>& units, std::int64_t wanted);
  Shares shares_of_picks(const ResourceRequest& request, const PartitionChoice& choice);
  std::int64_t most_nodes(const PartitionChoice& choice, Seconds start, Seconds end) const;
  void change_free(std::int32_t index, const Share& share, std::int64_t sign);
  void change_steps(const Shares& shares, std::int32_t slurm_partition, Seconds now, Seconds start,
                    Seconds end, std::int64_t sign);
  void change_nodes_left(const Shares& shares, std::int32_t slurm_partition, Seconds now,
                         Seconds start, Seconds end, std::int64_t sign);
  void build_steps(Unit& unit, Seconds now);
  const NodeGroup& group_of(const Unit& unit) const {
    return machine_.groups[static_cast<std::size_t>(unit.group)];
  }
  Unit& unit(std::int32_t index) { return units_[static_cast<std::size_t>(index)]; }
  Running& running(JobIndex job);

  NodeMachine machine_;
  std::vector<Unit> units_;
  std::vector<NodeClasses> classes_;     // by group: unreserved nodes by what is free
  std::vector<std::int64_t> free_cpus_;  // by group, interchangeable nodes included
  std::vector<Units> reserved_;          // by group: units with reservations
  // Of all of them, until something happens to one.
  std::vector<Pattern> patterns_;
  Seconds patterns_until_ = 0;
  bool patterns_known_ = false;
  std::vector<std::int32_t> whole_unit_;    // by group: its one unit, or -1
  std::vector<std::int64_t> nodes_in_use_;  // by slurm_partition
  std::vector<FreeSteps> nodes_left_;       // by slurm_partition, if it has such a limit
  std::vector<Running> running_;            // by job
  std::set<std::pair<Seconds, JobIndex>> ends_;
  std::int64_t search_ = 0;
  Units touched_;
  std::vector<std::vector<ClassInSearch>> class_in_search_;     // by group, class
  std::vector<std::vector<NodeClasses::Number>> seen_classes_;  // by group: without nodes now

  // Of the search that is going on.
  std::vector<Kind> kinds_;
  std::vector<Pick> picks_;
  std::vector<Change> changes_;
  std::vector<Amount> amounts_;
  std::vector<Seconds> moments_;
  AscendingSteps larger_;
  AscendingSteps smaller_;
  std::vector<std::pair<Seconds, Resources>> releases_;

  bool records_ = false;
  std::vector<std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>>> idle_;
  std::vector<std::int64_t> rows_;
};

}  // namespace foretime
