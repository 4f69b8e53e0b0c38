#include "node_pool.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

namespace foretime {
namespace {

Seconds end_of(Seconds start, Seconds duration) {
  return duration >= kNever - std::max<Seconds>(start, 0) ? kNever : start + duration;
}

Resources of_unit(const NodeGroup& group, const Share& share) {
  return group.whole ? Resources{0, 0, share.nodes} : share.node;
}

bool covers(const Resources& free, const Resources& wanted) {
  return free.cpus >= wanted.cpus && free.memory >= wanted.memory && free.gpus >= wanted.gpus;
}

std::int64_t nodes_of(const Shares& shares) {
  std::int64_t nodes = 0;
  for (const Share& share : shares) nodes += share.nodes;
  return nodes;
}

}  // namespace

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

// What a job can have

// Tasks of a job that fit into what is free of a node.
std::int64_t NodePool::tasks_on(const ResourceRequest& request, const PartitionChoice& choice,
                                const NodeGroup& group, const Resources& free) const {
  if (choice.exclusive && !group.whole && free != group.node) return 0;
  if (free.gpus < request.gpus_per_node) return 0;
  std::int64_t tasks = free.cpus / request.cpus_per_task;
  const std::int64_t memory = group.node.memory > 0 ? free.memory : group.memory_size;
  if (group.node.memory > 0 || group.memory_size > 0) {
    if (memory < request.memory_per_node) return 0;
    if (choice.memory_per_task > 0) tasks = std::min(tasks, memory / choice.memory_per_task);
  }
  return std::max<std::int64_t>(tasks, 0);
}

NodePool::Amount NodePool::need(const ResourceRequest& request) {
  if (request.nodes == 0) return {0, request.tasks};
  return {request.tasks % request.nodes, request.nodes};
}

// What a unit with that much free has of it.
NodePool::Amount NodePool::amount(const ResourceRequest& request, const PartitionChoice& choice,
                                  const NodeGroup& group, const Resources& free) const {
  const std::int64_t nodes = group.whole ? std::max<std::int64_t>(free.cpus, 0) : 1;
  const std::int64_t tasks = tasks_on(request, choice, group, group.whole ? group.node : free);
  if (request.nodes == 0) return {0, nodes * tasks};
  const std::int64_t least_tasks = request.tasks / request.nodes;
  return {tasks > least_tasks ? nodes : 0, tasks >= least_tasks ? nodes : 0};
}

// Most nodes that the job may have, as its slurm_partition may use only so many.
std::int64_t NodePool::most_nodes(const PartitionChoice& choice, Seconds start,
                                  Seconds end) const {
  const auto partition = static_cast<std::size_t>(choice.slurm_partition);
  if (machine_.most_nodes_in_use[partition] == kNever) return choice.most_nodes;
  return std::min(choice.most_nodes, nodes_left_[partition].least_free(start, end).cpus);
}

// Finding nodes

std::optional<Shares> NodePool::place_now(const ResourceRequest& request,
                                          const PartitionChoice& choice, Seconds now,
                                          Seconds duration) {
  std::int64_t cpus = 0;
  for (const std::int32_t g : choice.groups) cpus += free_cpus_[static_cast<std::size_t>(g)];
  if (cpus < request.tasks * request.cpus_per_task) return std::nullopt;
  const auto partition = static_cast<std::size_t>(choice.slurm_partition);
  std::int64_t most = most_nodes(choice, now, end_of(now, duration));
  if (machine_.most_nodes_in_use[partition] != kNever) {
    // Jobs past every estimate are still there.
    most = std::min(most, machine_.most_nodes_in_use[partition] - nodes_in_use_[partition]);
  }
  if (most < std::max<std::int64_t>(1, request.nodes)) return std::nullopt;
  ++search_;
  touched_.clear();
  collect_kinds(request, choice, now, duration, true);
  return choose(request, choice, most);
}

PlannedPlace NodePool::earliest(const ResourceRequest& request, const PartitionChoice& choice,
                                Seconds from, Seconds before, Seconds duration) {
  ++search_;
  touched_.clear();
  changes_.clear();
  Amount have;
  std::vector<bool> usable(machine_.groups.size(), false);
  for (const std::int32_t index : choice.groups) {
    const auto g = static_cast<std::size_t>(index);
    usable[g] = true;
    const NodeGroup& group = machine_.groups[g];
    seen_classes_[g].clear();
    for (const NodeClasses::Number number : classes_[g].inhabited()) {
      have.add(in_search(request, choice, index, number).amount, classes_[g].count(number));
    }
    if (group.whole && unit(whole_unit_[g]).reserved == 0) {
      have.add(amount(request, choice, group, unit(whole_unit_[g]).free), 1);
    }
    for (const std::int32_t reserved : reserved_[g]) {
      have.add(reserved_changes(request, choice, unit(reserved), from, before, duration), 1);
    }
  }
  const auto partition = static_cast<std::size_t>(choice.slurm_partition);
  if (machine_.most_nodes_in_use[partition] != kNever) {
    for (const FreeSteps::Step& step : nodes_left_[partition].steps()) {
      if (step.time > from) changes_.push_back({step.time, {}, {}});
    }
  }
  std::sort(changes_.begin(), changes_.end(),
            [](const Change& a, const Change& b) { return a.time < b.time; });

  const Amount needed = need(request);
  auto end = ends_.begin();
  auto change = changes_.begin();
  for (Seconds time = from; time < before;) {
    for (; end != ends_.end() && end->first <= time; ++end) {
      for (const Share& share : running(end->second).shares) {
        Unit& freed = unit(share.unit);
        if (!usable[static_cast<std::size_t>(freed.group)] || freed.reserved > 0) continue;
        if (freed.touched != search_) {
          freed.touched = search_;
          freed.seen = freed.free;
          freed.seen_class = freed.of_class;
          touched_.push_back(share.unit);
        }
        const NodeGroup& group = group_of(freed);
        if (!group.whole) {
          const auto to = classes_[static_cast<std::size_t>(freed.group)].changed(freed.seen_class,
                                                                                  share.node);
          see_in_class(request, choice, freed.group, freed.seen_class, -1, have);
          see_in_class(request, choice, freed.group, to, 1, have);
          freed.seen_class = to;
          continue;
        }
        have.add(amount(request, choice, group, freed.seen), -1);
        freed.seen += of_unit(group, share);
        have.add(amount(request, choice, group, freed.seen), 1);
      }
    }
    for (; change != changes_.end() && change->time <= time; ++change) {
      have.add(change->before, -1);
      have.add(change->after, 1);
    }
    if (have.covers(needed)) {
      const std::int64_t most = most_nodes(choice, time, end_of(time, duration));
      if (most >= std::max<std::int64_t>(1, request.nodes)) {
        collect_kinds(request, choice, time, duration, false);
        std::optional<Shares> shares = choose(request, choice, most);
        if (shares) return {time, std::move(*shares)};
      }
    }
    Seconds next = kNever;
    if (end != ends_.end()) next = end->first;
    if (change != changes_.end()) next = std::min(next, change->time);
    if (next == kNever) break;
    time = next;
  }
  return {};
}

// What a node with reservations has for a job that would start at `from`: the least in the job's
// duration. Notes the moments before `before` at which that changes.
NodePool::Amount NodePool::reserved_changes(const ResourceRequest& request,
                                            const PartitionChoice& choice, const Unit& unit,
                                            Seconds from, Seconds before, Seconds duration) {
  const std::vector<FreeSteps::Step>& steps = unit.steps.steps();
  const std::size_t first = unit.steps.step_at(from);
  const Seconds last_end = before == kNever ? kNever : end_of(before, duration);
  amounts_.clear();
  moments_.assign(1, from);
  for (std::size_t i = first; i < steps.size() && steps[i].time < last_end; ++i) {
    amounts_.push_back(amount(request, choice, group_of(unit), steps[i].free));
    if (i == first) continue;
    if (steps[i].time < before) moments_.push_back(steps[i].time);
    if (duration < kNever && steps[i].time - duration >= from) {
      moments_.push_back(steps[i].time - duration + 1);
    }
  }
  const std::size_t steps_end = first + amounts_.size();
  if (moments_.size() > 2) std::sort(moments_.begin(), moments_.end());
  moments_.erase(std::unique(moments_.begin(), moments_.end()), moments_.end());

  for (AscendingSteps* list : {&larger_, &smaller_}) {
    list->steps.clear();
    list->front = 0;
  }
  std::size_t begin = first;
  std::size_t end = first;
  const auto value = [&](std::size_t step) { return amounts_[step - first]; };
  const auto push = [&](AscendingSteps& list, std::int64_t Amount::* part) {
    while (list.steps.size() > list.front && value(list.steps.back()).*part >= value(end).*part) {
      list.steps.pop_back();
    }
    list.steps.push_back(end);
  };
  const auto drop = [&](AscendingSteps& list) {
    while (list.steps[list.front] < begin) ++list.front;
  };
  Amount at_first;
  Amount previous;
  for (const Seconds moment : moments_) {
    while (begin + 1 < steps_end && steps[begin + 1].time <= moment) ++begin;
    const Seconds window_end = end_of(moment, duration);
    while (end < steps_end && (end <= begin || steps[end].time < window_end)) {
      push(larger_, &Amount::larger);
      push(smaller_, &Amount::smaller);
      ++end;
    }
    drop(larger_);
    drop(smaller_);
    const Amount after{value(larger_.steps[larger_.front]).larger,
                       value(smaller_.steps[smaller_.front]).smaller};
    if (moment == from) {
      at_first = after;
    } else if (after.larger != previous.larger || after.smaller != previous.smaller) {
      changes_.push_back({moment, previous, after});
    }
    previous = after;
  }
  return at_first;
}

NodePool::ClassInSearch& NodePool::in_search(const ResourceRequest& request,
                                             const PartitionChoice& choice, std::int32_t group,
                                             NodeClasses::Number number) {
  const auto g = static_cast<std::size_t>(group);
  std::vector<ClassInSearch>& known = class_in_search_[g];
  if (known.size() < classes_[g].size()) known.resize(classes_[g].size());
  ClassInSearch& found = known[static_cast<std::size_t>(number)];
  if (found.search != search_) {
    found = {search_, amount(request, choice, machine_.groups[g], classes_[g].free(number)), 0,
             classes_[g].count(number) > 0, -1};
  }
  return found;
}

void NodePool::see_in_class(const ResourceRequest& request, const PartitionChoice& choice,
                            std::int32_t group, NodeClasses::Number number, std::int64_t nodes,
                            Amount& have) {
  ClassInSearch& seen = in_search(request, choice, group, number);
  have.add(seen.amount, nodes);
  seen.gained += nodes;
  if (seen.listed) return;
  seen.listed = true;
  seen_classes_[static_cast<std::size_t>(group)].push_back(number);
}

void NodePool::add_kind(const ResourceRequest& request, const PartitionChoice& choice,
                        std::int32_t group, const Resources& free, std::int64_t count,
                        Kind where) {
  if (count <= 0) return;
  const NodeGroup& of = machine_.groups[static_cast<std::size_t>(group)];
  where.tasks = tasks_on(request, choice, of, free);
  if (where.tasks <= 0) return;
  where.weight = of.weight;
  where.free = free;
  where.count = count;
  where.group = group;
  kinds_.push_back(where);
}

// Of every reserved node, the least that is free from now until any end.
void NodePool::find_patterns(Seconds now) {
  if (patterns_known_ && now < patterns_until_) return;
  patterns_known_ = true;
  patterns_until_ = kNever;
  patterns_.clear();
  const auto by_content = [](const Pattern& a, const Pattern& b) {
    if (a.group != b.group) return a.group < b.group;
    return std::lexicographical_compare(
        a.least.begin(), a.least.end(), b.least.begin(), b.least.end(),
        [](const FreeSteps::Step& x, const FreeSteps::Step& y) {
          return x.time != y.time ? x.time < y.time : x.free < y.free;
        });
  };
  std::map<Pattern, Units, decltype(by_content)> patterns(by_content);
  auto last = patterns.end();
  const Unit* previous = nullptr;
  Pattern next;
  for (std::size_t g = 0; g < reserved_.size(); ++g) {
    if (machine_.groups[g].whole) continue;
    next.group = static_cast<std::int32_t>(g);
    for (const std::int32_t index : reserved_[g]) {
      const Unit& reserved = unit(index);
      const auto& steps = reserved.steps.steps();
      if (previous != nullptr && previous->group == reserved.group &&
          previous->free == reserved.free && previous->steps.steps() == steps) {
        last->second.push_back(index);
        continue;
      }
      previous = &reserved;
      std::size_t i = reserved.steps.step_at(now);
      if (i + 1 < steps.size()) patterns_until_ = std::min(patterns_until_, steps[i + 1].time);
      Resources free = least(reserved.free, steps[i].free);
      next.least.assign(1, {now, free});
      for (++i; i < steps.size(); ++i) {
        const Resources less = least(free, steps[i].free);
        if (less == free) continue;
        free = less;
        next.least.push_back({steps[i].time, free});
      }
      const bool same = last != patterns.end() && !by_content(last->first, next) &&
                        !by_content(next, last->first);
      if (!same) last = patterns.try_emplace(next).first;
      last->second.push_back(index);
    }
  }
  for (auto& [content, units] : patterns) {
    patterns_.push_back({content.group, content.least, std::move(units)});
  }
}

// What there is for a job from `start` on for the duration: now, or as planned.
void NodePool::collect_kinds(const ResourceRequest& request, const PartitionChoice& choice,
                             Seconds start, Seconds duration, bool now) {
  kinds_.clear();
  const Seconds end = end_of(start, duration);
  for (const std::int32_t index : choice.groups) {
    const auto g = static_cast<std::size_t>(index);
    const NodeGroup& group = machine_.groups[g];
    if (group.whole) {
      const Unit& all = unit(whole_unit_[g]);
      std::int64_t nodes = all.touched == search_ ? all.seen.cpus : all.free.cpus;
      if (all.reserved > 0) {
        nodes = all.steps.least_free(start, end).cpus;
        if (now) nodes = std::min(nodes, all.free.cpus);
      }
      add_kind(request, choice, index, group.node, nodes, {.unit = whole_unit_[g]});
      continue;
    }
    const NodeClasses& classes = classes_[g];
    for (const NodeClasses::Number number : classes.inhabited()) {
      const std::int64_t gained = now ? 0 : in_search(request, choice, index, number).gained;
      add_kind(request, choice, index, classes.free(number), classes.count(number) + gained,
               {.of_class = number});
    }
    if (now) continue;
    for (const NodeClasses::Number number : seen_classes_[g]) {
      add_kind(request, choice, index, classes.free(number),
               in_search(request, choice, index, number).gained, {.of_class = number});
    }
    for (const std::int32_t reserved : reserved_[g]) {
      add_kind(request, choice, index, unit(reserved).steps.least_free(start, end), 1,
               {.unit = reserved});
    }
  }
  if (!now) return;
  find_patterns(start);
  for (const Pattern& pattern : patterns_) {
    if (std::find(choice.groups.begin(), choice.groups.end(), pattern.group) ==
        choice.groups.end()) {
      continue;
    }
    std::size_t last = 0;
    while (last + 1 < pattern.least.size() && pattern.least[last + 1].time < end) ++last;
    add_kind(request, choice, pattern.group, pattern.least[last].free,
             static_cast<std::int64_t>(pattern.units.size()), {.units = &pattern.units});
  }
}

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
      const std::int32_t picked =
          class_in_search_[static_cast<std::size_t>(seen.group)]
                          [static_cast<std::size_t>(seen.seen_class)].picked;
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
          classes_[static_cast<std::size_t>(kind.group)].each(
              kind.of_class, [&](std::int32_t index) {
                if (unit(index).touched == search_) return true;
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
      const auto same = !group.whole ? shares.end()
                                     : std::find_if(shares.begin(), shares.end(),
                                                    [&](const Share& other) {
                                                      return other.unit == index;
                                                    });
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
      rows_.insert(rows_.end(),
                   {job, node, share.node.cpus, share.node.memory, share.node.gpus});
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
