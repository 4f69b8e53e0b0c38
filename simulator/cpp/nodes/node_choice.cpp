// Which nodes a job takes of those that it could have; reference/placement.py is the specification.
#include <algorithm>
#include <bit>
#include <tuple>

#include "nodes/node_pool.hpp"
#include "nodes/node_shares.hpp"

namespace foretime {

// Which of these nodes the job takes.
std::optional<Shares> NodePool::choose(const ResourceRequest& request,
                                       const PartitionChoice& choice, std::int64_t most) {
  const auto nodes = [this] {
    std::int64_t sum = 0;
    for (const Pick& pick : picks_) sum += pick.count;
    return sum;
  };
  if (request.nodes > 0) {
    if (!choose_evenly(request.tasks, request.nodes)) return std::nullopt;
  } else {
    if (!choose_fewest(request.tasks, true)) return std::nullopt;
    if (nodes() > most && (!choose_fewest(request.tasks, false) || nodes() > most)) {
      return std::nullopt;
    }
  }
  return shares_of_picks(request, choice);
}

bool NodePool::choose_fewest(std::int64_t tasks, bool by_weight) {
  picks_.clear();
  if (kinds_.empty()) return false;
  const auto weight = [by_weight](const Kind& kind) { return by_weight ? kind.weight : 0; };
  const auto alike = [&](const Kind& a, const Kind& b) {
    return weight(a) == weight(b) && a.tasks == b.tasks && a.free == b.free;
  };

  // Often one node is enough.
  std::int64_t smallest = weight(kinds_.front());
  for (const Kind& kind : kinds_) smallest = std::min(smallest, weight(kind));
  const Kind* best = nullptr;
  for (const Kind& kind : kinds_) {
    if (weight(kind) != smallest || kind.tasks < tasks) continue;
    if (best == nullptr || std::tie(kind.tasks, kind.free) < std::tie(best->tasks, best->free)) {
      best = &kind;
    }
  }
  if (best != nullptr) {
    const Kind fits = *best;
    const auto last = std::partition(kinds_.begin(), kinds_.end(),
                                     [&](const Kind& kind) { return alike(kind, fits); });
    picks_.push_back({0, static_cast<std::size_t>(last - kinds_.begin()), 1, tasks});
    return true;
  }

  std::sort(kinds_.begin(), kinds_.end(), [&](const Kind& a, const Kind& b) {
    if (weight(a) != weight(b)) return weight(a) < weight(b);
    return a.tasks != b.tasks ? a.tasks > b.tasks : a.free < b.free;
  });
  const auto run_end = [&](std::size_t first) {
    std::size_t last = first + 1;
    while (last < kinds_.size() && alike(kinds_[last], kinds_[first])) ++last;
    return last;
  };
  for (std::size_t first = 0; first < kinds_.size();) {
    const std::size_t last = run_end(first);
    const std::int64_t each = kinds_[first].tasks;
    std::int64_t count = 0;
    for (std::size_t i = first; i < last; ++i) count += kinds_[i].count;
    const std::int64_t taken = std::min(count, (tasks - 1) / each);
    if (taken > 0) {
      picks_.push_back({first, last, taken, each});
      tasks -= taken * each;
    }
    if (taken == count) {
      first = last;
      continue;
    }
    // This one could hold all that is left: the best fit is the last such in the order.
    std::size_t fit = first;
    for (std::size_t i = first; i < kinds_.size() && weight(kinds_[i]) == weight(kinds_[first]);
         i = run_end(i)) {
      if (kinds_[i].tasks < tasks) break;
      if (kinds_[i].tasks < kinds_[fit].tasks) fit = i;
    }
    picks_.push_back({fit, run_end(fit), 1, tasks});
    return true;
  }
  return false;
}

bool NodePool::choose_evenly(std::int64_t tasks, std::int64_t nodes) {
  picks_.clear();
  std::sort(kinds_.begin(), kinds_.end(), [](const Kind& a, const Kind& b) {
    return std::tie(a.weight, a.tasks, a.free) < std::tie(b.weight, b.tasks, b.free);
  });
  std::vector<std::int64_t> used(kinds_.size(), 0);  // by the first kind of each run
  const auto pick = [&](std::int64_t size, std::int64_t wanted) {
    for (std::size_t first = 0; first < kinds_.size() && wanted > 0;) {
      std::size_t last = first;
      std::int64_t count = -used[first];
      while (last < kinds_.size() && kinds_[last].weight == kinds_[first].weight &&
             kinds_[last].tasks == kinds_[first].tasks && kinds_[last].free == kinds_[first].free) {
        count += kinds_[last++].count;
      }
      const std::int64_t taken = std::min(count, wanted);
      if (kinds_[first].tasks >= size && taken > 0) {
        picks_.push_back({first, last, taken, size});
        used[first] += taken;
        wanted -= taken;
      }
      first = last;
    }
    return wanted == 0;
  };
  return pick(tasks / nodes + 1, tasks % nodes) && pick(tasks / nodes, nodes - tasks % nodes);
}

// By number, as far as so many are wanted.
void NodePool::sort_units(std::vector<std::pair<std::int32_t, std::int64_t>>& units,
                          std::int64_t wanted) {
  if (std::is_sorted(units.begin(), units.end())) return;
  if (static_cast<std::size_t>(wanted) < units.size()) {
    const auto last = units.begin() + static_cast<std::ptrdiff_t>(wanted);
    std::nth_element(units.begin(), last, units.end());
    units.erase(last, units.end());
  }
  const auto whole = [this](const auto& entry) { return group_of(unit(entry.first)).whole; };
  if (units.size() < 64 || std::any_of(units.begin(), units.end(), whole)) {
    std::sort(units.begin(), units.end());
    return;
  }
  // Many nodes, each once: to go through bits is faster than to compare.
  std::vector<std::uint64_t> chosen(units_.size() / 64 + 1, 0);
  for (const auto& entry : units) {
    const auto index = static_cast<std::size_t>(entry.first);
    chosen[index / 64] |= std::uint64_t{1} << (index % 64);
  }
  units.clear();
  for (std::size_t word = 0; word < chosen.size(); ++word) {
    for (std::uint64_t bits = chosen[word]; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
      units.emplace_back(static_cast<std::int32_t>(word * 64 + bit), 1);
    }
  }
}

// The nodes of a run in the order of their numbers.
Shares NodePool::shares_of_picks(const ResourceRequest& request, const PartitionChoice& choice) {
  struct Run {
    std::size_t first = 0;
    std::vector<std::pair<std::int32_t, std::int64_t>> units;  // with how many nodes
    std::size_t next = 0;
  };
  std::vector<Run> runs;
  Shares shares;
  // Of the kinds that are picked, the nodes that the search has seen become free.
  std::vector<Units> freed(kinds_.size());
  if (!touched_.empty()) {
    for (const Pick& pick : picks_) {
      for (std::size_t i = pick.first; i < pick.last; ++i) {
        const Kind& kind = kinds_[i];
        if (kind.of_class < 0) continue;
        in_search(request, choice, kind.group, kind.of_class).picked = static_cast<std::int32_t>(i);
      }
    }
    for (const std::int32_t index : touched_) {
      const Unit& seen = unit(index);
      if (group_of(seen).whole) continue;
      const std::int32_t picked = class_in_search_[static_cast<std::size_t>(seen.group)]
                                                  [static_cast<std::size_t>(seen.seen_class)]
                                                      .picked;
      if (picked >= 0) freed[static_cast<std::size_t>(picked)].push_back(index);
    }
  }
  for (const Pick& pick : picks_) {
    auto run = std::find_if(runs.begin(), runs.end(),
                            [&](const Run& known) { return known.first == pick.first; });
    if (run == runs.end()) {
      std::int64_t wanted = 0;
      for (const Pick& other : picks_) wanted += other.first == pick.first ? other.count : 0;
      runs.push_back({pick.first, {}, 0});
      run = runs.end() - 1;
      for (std::size_t i = pick.first; i < pick.last; ++i) {
        const Kind& kind = kinds_[i];
        if (kind.units != nullptr) {
          for (const std::int32_t index : *kind.units) run->units.emplace_back(index, 1);
        } else if (kind.of_class < 0) {
          run->units.emplace_back(kind.unit, kind.count);
        } else {
          std::int64_t found = 0;
          classes_[static_cast<std::size_t>(kind.group)].each(kind.of_class,
                                                              [&](std::int32_t index) {
                                                                if (unit(index).touched == search_)
                                                                  return true;
                                                                run->units.emplace_back(index, 1);
                                                                return ++found < wanted;
                                                              });
          for (const std::int32_t index : freed[i]) run->units.emplace_back(index, 1);
        }
      }
      sort_units(run->units, wanted);
    }
    for (std::int64_t left = pick.count; left > 0;) {
      auto& [index, nodes] = run->units[run->next];
      const std::int64_t taken = std::min(nodes, left);
      const NodeGroup& group = group_of(unit(index));
      Share share{index, taken, group.node};
      if (!group.whole && !choice.exclusive) {
        const std::int64_t memory = request.memory_per_node + pick.tasks * choice.memory_per_task;
        share.node = {request.gpus_per_node, group.node.memory > 0 ? memory : 0,
                      pick.tasks * request.cpus_per_task};
      }
      const auto same = !group.whole
                            ? shares.end()
                            : std::find_if(shares.begin(), shares.end(),
                                           [&](const Share& other) { return other.unit == index; });
      if (same != shares.end()) {
        same->nodes += taken;
      } else {
        shares.push_back(share);
      }
      left -= taken;
      nodes -= taken;
      if (nodes == 0) ++run->next;
    }
  }
  return shares;
}

}  // namespace foretime
