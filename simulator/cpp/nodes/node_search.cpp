// When there is room for a job on nodes, and what of each kind of node there is.
#include <algorithm>
#include <map>

#include "nodes/node_pool.hpp"
#include "nodes/node_shares.hpp"

namespace foretime {

// What a job can have

// Tasks of a job that fit into what is free of a node.
std::int64_t NodePool::tasks_on(const ResourceRequest& request, const PartitionChoice& choice,
                                const NodeGroup& group, const Resources& free) {
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
                                  const NodeGroup& group, const Resources& free) {
  const std::int64_t nodes = group.whole ? std::max<std::int64_t>(free.cpus, 0) : 1;
  const std::int64_t tasks = tasks_on(request, choice, group, group.whole ? group.node : free);
  if (request.nodes == 0) return {0, nodes * tasks};
  const std::int64_t least_tasks = request.tasks / request.nodes;
  return {tasks > least_tasks ? nodes : 0, tasks >= least_tasks ? nodes : 0};
}

// Most nodes that the job may have, as its slurm_partition may use only so many.
std::int64_t NodePool::most_nodes(const PartitionChoice& choice, Seconds start, Seconds end) const {
  const auto partition = static_cast<std::size_t>(choice.slurm_partition);
  if (machine_.most_nodes_in_use[partition] == kNever) return choice.most_nodes;
  return std::min(choice.most_nodes, nodes_left_[partition].least_free(start, end).cpus);
}

// Finding nodes

bool NodePool::has_free_cpus(const ResourceRequest& request, const PartitionChoice& choice) const {
  std::int64_t cpus = 0;
  for (const std::int32_t g : choice.groups) cpus += free_cpus_[static_cast<std::size_t>(g)];
  return cpus >= request.tasks * request.cpus_per_task;
}

std::optional<Shares> NodePool::place_now(const ResourceRequest& request,
                                          const PartitionChoice& choice, Seconds now,
                                          Seconds duration) {
  if (!has_free_cpus(request, choice)) return std::nullopt;
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
          const auto to =
              classes_[static_cast<std::size_t>(freed.group)].changed(freed.seen_class, share.node);
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
                        std::int32_t group, const Resources& free, std::int64_t count, Kind where) {
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

}  // namespace foretime
