// How much running jobs leave free as they end: bounds that spare backfill most of its tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/types.hpp"
#include "planning/slurm/slurm_nodes.hpp"

namespace foretime {

class FreeByEnds {
 public:
  // A running job, and when it is thought to end.
  struct End {
    Seconds end = 0;
    const std::vector<NodeRow>* rows = nullptr;
  };

  // From what is free now, as these end.
  void work_out(const FreeNodes& now, std::vector<End> ends);

  // Whether a job might fit on these nodes by a time, if nobody else were given any; where it says
  // no it would not.
  bool may_hold(const Wish& wish, const NodeSet& nodes, Seconds by) const;

 private:
  // Some of the ends have a set of what is idle after them; more would cost more than they save.
  struct Stage {
    std::size_t ends = 0;  // how many have ended
    NodeSet idle;
    NodeSet partly;          // nodes of which some is free
    std::int64_t spare = 0;  // CPUs of these
  };
  // What was free of a node before a stage, and since the one that the next one says.
  struct Part {
    std::int64_t cpus = 0;
    std::size_t until = 0;
    std::int32_t next = -1;  // the part of its node that came before
  };

  void add_stage();
  void close_part(std::int64_t node);
  std::int64_t cpus_of(std::int64_t node, std::size_t stage) const;

  const NodeTable* table_ = nullptr;
  std::vector<Seconds> ends_;
  std::vector<Stage> stages_;  // the first stages_there_ of them
  std::size_t stages_there_ = 0;
  std::vector<Part> parts_;
  std::vector<std::int32_t> last_part_;  // by node; -1: none
  // As far as it is worked out.
  NodeSet idle_;
  NodeSet partly_;
  std::int64_t spare_ = 0;
  std::vector<std::int64_t> free_;  // CPUs, by node
};

}  // namespace foretime
