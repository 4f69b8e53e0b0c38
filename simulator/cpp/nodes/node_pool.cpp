// The nodes themselves: what running jobs and reservations have of them.
#include "nodes/node_pool.hpp"

#include <algorithm>

#include "nodes/node_shares.hpp"

namespace foretime {

NodePool::NodePool(NodeMachine machine, Seconds now) : machine_(std::move(machine)) {
  const std::size_t groups = machine_.groups.size();
  classes_.resize(groups);
  reserved_.resize(groups);
  free_cpus_.resize(groups);
  class_in_search_.resize(groups);
  seen_classes_.resize(groups);
  idle_.resize(groups);
  whole_unit_.assign(groups, -1);
  std::int64_t first_node = 0;
  for (std::size_t g = 0; g < groups; ++g) {
    const NodeGroup& group = machine_.groups[g];
    const auto add_unit = [&](std::int64_t first, std::int64_t nodes, const Resources& free) {
      Unit added{.group = static_cast<std::int32_t>(g),
                 .first_node = first,
                 .nodes = nodes,
                 .free = free,
                 .steps = FreeSteps(now, free),
                 .held = {},
                 .seen = {}};
      units_.push_back(std::move(added));
    };
    if (group.whole) {
      whole_unit_[g] = static_cast<std::int32_t>(units_.size());
      add_unit(first_node, group.nodes, {0, 0, group.nodes});
      for (std::int64_t n = 0; n < group.nodes; ++n) idle_[g].push(first_node + n);
    } else {
      classes_[g] = NodeClasses(static_cast<std::int32_t>(units_.size()), group.nodes);
      const NodeClasses::Number idle = classes_[g].with(group.node);
      for (std::int64_t n = 0; n < group.nodes; ++n) {
        classes_[g].insert(idle, static_cast<std::int32_t>(units_.size()));
        add_unit(first_node + n, 1, group.node);
      }
    }
    free_cpus_[g] = group.nodes * group.node.cpus;
    first_node += group.nodes;
  }
  nodes_in_use_.resize(machine_.most_nodes_in_use.size());
  for (const std::int64_t most : machine_.most_nodes_in_use) {
    nodes_left_.emplace_back(now, Resources{0, 0, most});
  }
}

NodePool::Running& NodePool::running(JobIndex job) {
  const auto index = static_cast<std::size_t>(job);
  if (index >= running_.size()) running_.resize(index + 1);
  return running_[index];
}

std::int32_t NodePool::slurm_partition_of(JobIndex job) const {
  const auto index = static_cast<std::size_t>(job);
  return index < running_.size() ? running_[index].slurm_partition : -1;
}

Shares NodePool::shares_on(const std::vector<NodeRow>& rows) const {
  Shares shares;
  for (const NodeRow& row : rows) {
    for (std::int64_t node = row.node; node < row.node + row.nodes;) {
      const auto after = std::upper_bound(
          units_.begin(), units_.end(), node,
          [](std::int64_t number, const Unit& unit) { return number < unit.first_node; });
      const auto index = static_cast<std::int32_t>(after - units_.begin()) - 1;
      const Unit& of = units_[static_cast<std::size_t>(index)];
      const std::int64_t taken = group_of(of).whole ? row.node + row.nodes - node : 1;
      node += taken;
      if (!group_of(of).whole) {
        shares.push_back({index, 1, row.of_each});
        continue;
      }
      const auto same = std::find_if(shares.begin(), shares.end(),
                                     [index](const Share& share) { return share.unit == index; });
      if (same == shares.end()) {
        shares.push_back({index, taken, group_of(of).node});
      } else {
        same->nodes += taken;
      }
    }
  }
  return shares;
}

bool NodePool::fits_now(const Shares& shares, std::int32_t slurm_partition) const {
  for (const Share& share : shares) {
    const Unit& of = units_[static_cast<std::size_t>(share.unit)];
    if (!covers(of.free, of_unit(group_of(of), share))) return false;
  }
  const auto partition = static_cast<std::size_t>(slurm_partition);
  return machine_.most_nodes_in_use[partition] == kNever ||
         nodes_in_use_[partition] + nodes_of(shares) <= machine_.most_nodes_in_use[partition];
}

bool NodePool::holds(const Shares& shares, std::int32_t slurm_partition, Seconds start,
                     Seconds end) const {
  for (const Share& share : shares) {
    const Unit& of = units_[static_cast<std::size_t>(share.unit)];
    if (!covers(of.steps.least_free(start, end), {})) return false;
  }
  const auto partition = static_cast<std::size_t>(slurm_partition);
  return machine_.most_nodes_in_use[partition] == kNever ||
         nodes_left_[partition].least_free(start, end).cpus >= 0;
}

// Taking and giving back

void NodePool::change_free(std::int32_t index, const Share& share, std::int64_t sign) {
  Unit& changed = unit(index);
  const auto g = static_cast<std::size_t>(changed.group);
  const NodeGroup& group = machine_.groups[g];
  Resources change = of_unit(group, share);
  if (sign < 0) change = -change;
  changed.free += change;
  free_cpus_[g] += sign * (group.whole ? share.nodes * group.node.cpus : share.node.cpus);
  if (group.whole) return;
  const NodeClasses::Number to = classes_[g].changed(changed.of_class, change);
  if (changed.reserved == 0) {
    classes_[g].erase(changed.of_class, index);
    classes_[g].insert(to, index);
  } else {
    patterns_known_ = false;
  }
  changed.of_class = to;
}

// What is free of a node that nobody has reserved: all that no running job has by then.
void NodePool::build_steps(Unit& unit, Seconds now) {
  releases_.clear();
  for (const Held& held : unit.held) {
    const Seconds end = running_[static_cast<std::size_t>(held.job)].end;
    if (end < kNever) releases_.emplace_back(end, held.resources);
  }
  std::sort(releases_.begin(), releases_.end());
  unit.steps.reset(now, unit.free);
  for (const auto& [end, resources] : releases_) unit.steps.free_from(end, resources);
}

void NodePool::change_steps(const Shares& shares, std::int32_t slurm_partition, Seconds now,
                            Seconds start, Seconds end, std::int64_t sign) {
  if (end <= std::max(start, now)) return;
  for (const Share& share : shares) {
    Unit& changed = unit(share.unit);
    const NodeGroup& group = group_of(changed);
    if (!group.whole && changed.reserved == 0) continue;
    patterns_known_ = false;
    const Resources change = of_unit(group, share);
    changed.steps.add(now, start, end, sign > 0 ? change : -change);
  }
  change_nodes_left(shares, slurm_partition, now, start, end, sign);
}

void NodePool::change_nodes_left(const Shares& shares, std::int32_t slurm_partition, Seconds now,
                                 Seconds start, Seconds end, std::int64_t sign) {
  const auto partition = static_cast<std::size_t>(slurm_partition);
  if (machine_.most_nodes_in_use[partition] != kNever) {
    nodes_left_[partition].add(now, start, end, {0, 0, sign * nodes_of(shares)});
  }
}

void NodePool::start(JobIndex job, std::int32_t slurm_partition, const Shares& shares, Seconds now,
                     Seconds end) {
  Running& started = running(job);
  started.slurm_partition = slurm_partition;
  started.end = end;
  started.shares = shares;
  for (const Share& share : shares) {
    change_free(share.unit, share, -1);
    Unit& on = unit(share.unit);
    if (!group_of(on).whole) on.held.push_back({job, share.node});
    if (!records_) continue;
    auto& idle = idle_[static_cast<std::size_t>(on.group)];
    for (std::int64_t n = 0; n < share.nodes; ++n) {
      std::int64_t node = on.first_node;
      if (group_of(on).whole) {
        node = idle.top();
        idle.pop();
        started.nodes.push_back(node);
      }
      rows_.insert(rows_.end(), {job, node, share.node.cpus, share.node.memory, share.node.gpus});
    }
  }
  nodes_in_use_[static_cast<std::size_t>(slurm_partition)] += nodes_of(shares);
  change_steps(shares, slurm_partition, now, now, end, -1);
  ends_.insert({end, job});
}

void NodePool::finish(JobIndex job, Seconds now) {
  Running& finished = running(job);
  ends_.erase({finished.end, job});
  change_steps(finished.shares, finished.slurm_partition, now, now, finished.end, 1);
  std::size_t next = 0;
  for (const Share& share : finished.shares) {
    change_free(share.unit, share, 1);
    std::vector<Held>& held = unit(share.unit).held;
    const auto mine = std::find_if(held.begin(), held.end(),
                                   [job](const Held& other) { return other.job == job; });
    if (mine != held.end()) {
      *mine = held.back();
      held.pop_back();
    }
    if (!records_ || !group_of(unit(share.unit)).whole) continue;
    auto& idle = idle_[static_cast<std::size_t>(unit(share.unit).group)];
    for (std::int64_t n = 0; n < share.nodes; ++n) idle.push(finished.nodes[next++]);
  }
  nodes_in_use_[static_cast<std::size_t>(finished.slurm_partition)] -= nodes_of(finished.shares);
  finished.shares = {};
  finished.nodes = {};
}

void NodePool::set_end(JobIndex job, Seconds now, Seconds end) {
  Running& changed = running(job);
  if (changed.end == end) return;
  ends_.erase({changed.end, job});
  change_steps(changed.shares, changed.slurm_partition, now, changed.end, end, -1);
  change_steps(changed.shares, changed.slurm_partition, now, end, changed.end, 1);
  changed.end = end;
  ends_.insert({end, job});
}

void NodePool::reserve(const Shares& shares, std::int32_t slurm_partition, Seconds now,
                       Seconds start, Seconds end) {
  const bool claims = end > std::max(start, now);
  const Unit* known = nullptr;  // the last one that had no reservation before
  Resources known_change;
  for (const Share& share : shares) {
    Unit& claimed = unit(share.unit);
    const auto g = static_cast<std::size_t>(claimed.group);
    const bool whole = machine_.groups[g].whole;
    const Resources change = -of_unit(machine_.groups[g], share);
    patterns_known_ = false;
    bool is_new = false;
    if (claimed.reserved++ == 0) {
      claimed.reserved_place = reserved_[g].size();
      reserved_[g].push_back(share.unit);
      is_new = !whole;
    }
    if (is_new) {
      classes_[g].erase(claimed.of_class, share.unit);
      // Neighbours mostly have the same jobs.
      if (known != nullptr && known->free == claimed.free && known->held == claimed.held &&
          known_change == change) {
        claimed.steps = known->steps;
        continue;
      }
      build_steps(claimed, now);
    }
    if (claims) claimed.steps.add(now, start, end, change);
    if (!is_new) continue;
    known = &claimed;
    known_change = change;
  }
  if (claims) change_nodes_left(shares, slurm_partition, now, start, end, -1);
}

void NodePool::unreserve(const Shares& shares, std::int32_t slurm_partition, Seconds now,
                         Seconds start, Seconds end) {
  for (const Share& share : shares) {
    Unit& released = unit(share.unit);
    if (--released.reserved > 0) continue;
    const auto g = static_cast<std::size_t>(released.group);
    const std::int32_t moved = reserved_[g].back();
    reserved_[g][released.reserved_place] = moved;
    unit(moved).reserved_place = released.reserved_place;
    reserved_[g].pop_back();
    if (machine_.groups[g].whole) continue;
    classes_[g].insert(released.of_class, share.unit);
    patterns_known_ = false;
  }
  change_steps(shares, slurm_partition, now, start, end, 1);
}

}  // namespace foretime
