#include "planning/slurm/free_by_ends.hpp"

#include <algorithm>

namespace foretime {

void FreeByEnds::work_out(const FreeNodes& now, std::vector<End> ends) {
  constexpr std::size_t kMostStages = 512;
  table_ = &now.table();
  std::sort(ends.begin(), ends.end(), [](const End& a, const End& b) { return a.end < b.end; });
  ends_.clear();
  parts_.clear();
  stages_there_ = 0;
  idle_ = now.idle();
  spare_ = 0;
  const auto nodes = static_cast<std::size_t>(table_->nodes());
  free_.assign(nodes, 0);
  last_part_.assign(nodes, -1);
  partly_ = now.usable();
  partly_ -= idle_;
  partly_.each([&](std::int64_t node) {
    std::int64_t& free = free_[static_cast<std::size_t>(node)];
    free = now.free_of(node).cpus;
    spare_ += free;
  });
  add_stage();
  const std::size_t between = ends.size() / kMostStages + 1;
  for (const End& end : ends) {
    ends_.push_back(end.end);
    for (const NodeRow& row : *end.rows) {
      const NodeGroup& of = table_->group(table_->group_of(row.node));
      const std::int64_t given = row.of_each.cpus;
      if (of.whole || given == of.node.cpus) {  // nobody else has anything of them
        idle_.add(row.node, row.node + row.nodes);
        continue;
      }
      for (std::int64_t node = row.node; node < row.node + row.nodes; ++node) {
        std::int64_t& free = free_[static_cast<std::size_t>(node)];
        close_part(node);
        free += given;
        spare_ += given;
        partly_.add(node);
        if (free != of.node.cpus) continue;
        spare_ -= free;
        partly_.remove(node);
        idle_.add(node);
      }
    }
    if (ends_.size() % between == 0 || ends_.size() == ends.size()) add_stage();
  }
}

// What was free of a node before another job ends on it.
void FreeByEnds::close_part(std::int64_t node) {
  const auto place = static_cast<std::size_t>(node);
  std::int32_t& last = last_part_[place];
  if (last >= 0 && parts_[static_cast<std::size_t>(last)].until == stages_there_) return;
  parts_.push_back({free_[place], stages_there_, last});
  last = static_cast<std::int32_t>(parts_.size() - 1);
}

// CPUs of a node that are free at a stage.
std::int64_t FreeByEnds::cpus_of(std::int64_t node, std::size_t stage) const {
  std::int64_t cpus = free_[static_cast<std::size_t>(node)];
  for (std::int32_t at = last_part_[static_cast<std::size_t>(node)]; at >= 0;) {
    const Part& part = parts_[static_cast<std::size_t>(at)];
    if (part.until <= stage) break;
    cpus = part.cpus;
    at = part.next;
  }
  return cpus;
}

void FreeByEnds::add_stage() {
  if (stages_there_ == stages_.size()) stages_.emplace_back();
  Stage& stage = stages_[stages_there_++];
  stage.ends = ends_.size();
  stage.idle = idle_;
  stage.partly = partly_;
  stage.spare = spare_;
}

bool FreeByEnds::may_hold(const Wish& wish, const NodeSet& nodes, Seconds by) const {
  const auto ended =
      static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), by) - ends_.begin());
  const auto stage = std::partition_point(
      stages_.begin(), stages_.begin() + static_cast<std::ptrdiff_t>(stages_there_),
      [ended](const Stage& known) { return known.ends < ended; });
  std::int64_t idle_nodes = 0;
  std::int64_t cpus = 0;
  for (std::size_t place = 0; place < wish.groups.size(); ++place) {
    const std::int32_t group = wish.groups[place];
    const std::int64_t idle =
        nodes.count_common(stage->idle, table_->first_of(group), table_->last_of(group));
    idle_nodes += idle;
    cpus += idle * wish.idle_cpus[place];
  }
  if (wish.whole) return cpus >= wish.cpus && idle_nodes >= wish.min_nodes;
  if (cpus >= wish.cpus || cpus + stage->spare < wish.cpus) return cpus >= wish.cpus;
  const auto number = static_cast<std::size_t>(stage - stages_.begin());
  nodes.each_common(stage->partly, [&](std::int64_t node) { cpus += cpus_of(node, number); });
  return cpus >= wish.cpus;
}

}  // namespace foretime
