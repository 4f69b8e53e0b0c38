#include "planning/slurm/slurm_nodes.hpp"

#include <algorithm>
#include <utility>

namespace foretime {

NodeTable::NodeTable(const NodeMachine& machine) : machine_(machine) {
  for (std::size_t group = 0; group < machine.groups.size(); ++group) {
    first_.push_back(nodes());
    group_of_.insert(group_of_.end(), static_cast<std::size_t>(machine.groups[group].nodes),
                     static_cast<std::int32_t>(group));
    all_whole_ = all_whole_ && machine.groups[group].whole;
  }
}

std::int64_t NodeTable::cpus_for(const Wish& wish, std::int32_t number, const Resources& free,
                                 std::int64_t used) const {
  const NodeGroup& of = group(number);
  if (free.cpus <= 0 || (wish.whole && free.cpus != of.node.cpus)) return 0;
  if (free.gpus < wish.gpus) return 0;
  std::int64_t cpus = free.cpus;
  if (cpus + used > wish.max_cpus_per_node) {
    if (wish.whole || used >= wish.max_cpus_per_node) return 0;
    cpus = wish.max_cpus_per_node - used;
  }
  const std::int64_t each = wish.cpus_per_task;
  if (each > 1) cpus -= cpus % each;  // a division is much of what this costs
  const std::int64_t least = wish.all_on_one_node() ? wish.cpus : each;
  if (cpus < least) return 0;
  if (of.node.memory > 0) {
    if (wish.node_memory == 0 && wish.cpu_memory == 0) {
      if (free.memory != of.node.memory) return 0;
    } else if (wish.node_memory > 0) {
      if (wish.node_memory > free.memory) return 0;
    } else if (wish.whole) {
      if (wish.cpu_memory * cpus > free.memory) return 0;
    } else {
      cpus = std::min(cpus, free.memory / wish.cpu_memory);
      if (each > 1) cpus -= cpus % each;
    }
  }
  if (cpus < least) return 0;
  // Beside GPUs no more than all its tasks need.
  return wish.gpus > 0 ? std::min(cpus, wish.cpus) : cpus;
}

Resources NodeTable::taken(const Wish& wish, std::int32_t number, std::int64_t cpus) const {
  const NodeGroup& of = group(number);
  if (of.whole || wish.whole) return of.node;
  std::int64_t memory = 0;
  if (of.node.memory > 0) {
    memory = wish.node_memory > 0 ? wish.node_memory : wish.cpu_memory * cpus;
    if (memory == 0) memory = of.node.memory;
  }
  return {wish.gpus, memory, cpus};
}

FreeNodes::FreeNodes(std::shared_ptr<const NodeTable> table, const SlurmSite& site)
    : table_(std::move(table)),
      used_(site.partitions.size()),
      idle_(table_->nodes()),
      usable_(table_->nodes()) {
  idle_.add(0, table_->nodes());
  usable_.add(0, table_->nodes());
  for (std::int32_t number = 0; number < table_->groups(); ++number) {
    const NodeGroup& group = table_->group(number);
    sums_.push_back({group.nodes, group.nodes, group.nodes * group.node.cpus});
  }
  if (table_->all_whole()) return;
  free_.reserve(static_cast<std::size_t>(table_->nodes()));
  for (std::int64_t node = 0; node < table_->nodes(); ++node) {
    free_.push_back(table_->group(table_->group_of(node)).node);
  }
  for (std::size_t partition = 0; partition < used_.size(); ++partition) {
    if (site.partitions[partition].max_cpus_per_node != kNever) {
      used_[partition].resize(static_cast<std::size_t>(table_->nodes()));
      if (site.version == std::pair{24, 11}) {
        others_count_in_.push_back(static_cast<std::int32_t>(partition));
      }
    }
  }
}

void FreeNodes::first_runs_in(std::int32_t slurm_partition) {
  if (std::erase(others_count_in_, slurm_partition) == 0) return;
  auto& used = used_[static_cast<std::size_t>(slurm_partition)];
  std::fill(used.begin(), used.end(), 0);
}

void FreeNodes::others_never_count() {
  while (!others_count_in_.empty()) first_runs_in(others_count_in_.back());
}

Resources FreeNodes::free_of(std::int64_t node) const {
  const NodeGroup& group = table_->group(table_->group_of(node));
  if (!group.whole) return free_[static_cast<std::size_t>(node)];
  return idle_.has(node) ? group.node : Resources{};
}

bool FreeNodes::may_fit(const Wish& wish) const {
  Sum sum;
  for (const std::int32_t group : wish.groups) {
    const Sum& of = sums_[static_cast<std::size_t>(group)];
    sum.usable += wish.whole ? of.idle : of.usable;
    sum.cpus += wish.whole ? of.idle * table_->group(group).node.cpus : of.cpus;
  }
  return sum.usable >= wish.min_nodes && sum.cpus >= wish.cpus;
}

void FreeNodes::change(const NodeRow& row, std::int32_t slurm_partition, std::int64_t sign) {
  const std::int32_t number = table_->group_of(row.node);
  const NodeGroup& group = table_->group(number);
  Sum& sum = sums_[static_cast<std::size_t>(number)];
  const std::int64_t last = row.node + row.nodes;
  first_runs_in(slurm_partition);
  if (group.whole) {
    sum.idle += sign * row.nodes;
    sum.usable += sign * row.nodes;
    sum.cpus += sign * row.nodes * group.node.cpus;
    if (sign > 0) {
      idle_.add(row.node, last);
      usable_.add(row.node, last);
    } else {
      idle_.remove(row.node, last);
      usable_.remove(row.node, last);
    }
    return;
  }
  for (std::int64_t node = row.node; node < last; ++node) {
    Resources& free = free_[static_cast<std::size_t>(node)];
    sum.idle -= free.cpus == group.node.cpus ? 1 : 0;
    sum.usable -= free.cpus > 0 ? 1 : 0;
    free += sign > 0 ? row.of_each : -row.of_each;
    sum.idle += free.cpus == group.node.cpus ? 1 : 0;
    sum.usable += free.cpus > 0 ? 1 : 0;
    sum.cpus += sign * row.of_each.cpus;
    idle_.set(node, free.cpus == group.node.cpus);
    usable_.set(node, free.cpus > 0);
  }
  const auto count_in = [&](std::int32_t partition) {
    std::vector<std::int64_t>& used = used_[static_cast<std::size_t>(partition)];
    if (used.empty()) return;
    for (std::int64_t node = row.node; node < last; ++node) {
      used[static_cast<std::size_t>(node)] -= sign * row.of_each.cpus;
    }
  };
  count_in(slurm_partition);
  for (const std::int32_t other : others_count_in_) count_in(other);
}

NodeChooser::NodeChooser(const FreeNodes& now, const SlurmSite& site, GpuMarks& marks)
    : now_(now),
      table_(now.table()),
      marks_(marks),
      all_free_(table_.nodes()),
      partly_(table_.nodes()),
      fitting_(table_.nodes()) {
  if (!site.switches.empty()) switches_ = std::make_unique<SwitchChooser>(site, marks);
  idle_cpus_.resize(static_cast<std::size_t>(table_.groups()));
  if (table_.all_whole()) return;
  free_.resize(static_cast<std::size_t>(table_.nodes()));
  used_.resize(static_cast<std::size_t>(table_.nodes()));
  changed_in_.resize(static_cast<std::size_t>(table_.nodes()), 0);
}

Resources NodeChooser::free_of(std::int64_t node) const {
  if (all_free_.has(node)) return table_.group(table_.group_of(node)).node;
  const auto place = static_cast<std::size_t>(node);
  return changed_in_[place] == beginning_ ? free_[place] : now_.free_of(node);
}

std::int64_t NodeChooser::used_of(std::int64_t node) const {
  if (used_now_ == nullptr || all_free_.has(node)) return 0;
  const auto place = static_cast<std::size_t>(node);
  return changed_in_[place] == beginning_ ? used_[place] : (*used_now_)[place];
}

std::int64_t NodeChooser::cpus_of(std::int64_t node) const {
  if (tries_again_) return available_[static_cast<std::size_t>(node)];
  const std::int32_t group = table_.group_of(node);
  if (all_free_.has(node)) return idle_cpus_[static_cast<std::size_t>(group)];
  return table_.cpus_for(*wish_, group, free_of(node), used_of(node));
}

void NodeChooser::begin(const Wish& wish, const NodeSet& candidates) {
  wish_ = &wish;
  candidates_ = &candidates;
  ++beginning_;
  used_now_ = now_.used_in(wish.slurm_partition);
  all_free_ = candidates;
  all_free_ &= now_.idle();
  fitting_ = candidates;
  fitting_ &= wish.whole ? now_.idle() : now_.usable();
  partly_ = fitting_;
  partly_ -= all_free_;
  fitting_nodes_ = fitting_cpus_ = 0;
  for (std::int32_t group = 0; group < table_.groups(); ++group) {
    const NodeGroup& of = table_.group(group);
    const std::int64_t idle = table_.cpus_for(wish, group, of.node);
    idle_cpus_[static_cast<std::size_t>(group)] = idle;
    const std::int64_t first = table_.first_of(group);
    const std::int64_t last = table_.last_of(group);
    if (idle == 0) {
      fitting_.remove(first, last);
      continue;
    }
    add_all_free(group, all_free_.count(first, last));
    partly_.each(first, last, [&](std::int64_t node) {
      const std::int64_t cpus = table_.cpus_for(wish, group, now_.free_of(node), used_of(node));
      if (cpus == 0) {
        fitting_.remove(node);
      } else {
        ++fitting_nodes_;
        fitting_cpus_ += cpus;
      }
    });
  }
}

void NodeChooser::begin_idle(const Wish& wish, const NodeSet& candidates) {
  wish_ = &wish;
  candidates_ = &candidates;
  ++beginning_;
  all_free_ = fitting_ = candidates;
  fitting_nodes_ = fitting_cpus_ = 0;
  for (std::int32_t group = 0; group < table_.groups(); ++group) {
    const std::int64_t idle = table_.cpus_for(wish, group, table_.group(group).node);
    idle_cpus_[static_cast<std::size_t>(group)] = idle;
    const std::int64_t first = table_.first_of(group);
    const std::int64_t last = table_.last_of(group);
    if (idle == 0) {
      fitting_.remove(first, last);
      continue;
    }
    add_all_free(group, fitting_.count(first, last));
  }
}

void NodeChooser::add_all_free(std::int32_t group, std::int64_t nodes) {
  fitting_nodes_ += nodes;
  fitting_cpus_ += nodes * idle_cpus_[static_cast<std::size_t>(group)];
}

void NodeChooser::give(const NodeRow& row, std::int32_t slurm_partition) {
  const std::int32_t group = table_.group_of(row.node);
  const NodeGroup& of = table_.group(group);
  const std::int64_t last = row.node + row.nodes;
  if (of.whole || row.of_each.cpus == of.node.cpus) {  // nobody else has anything of them
    all_free_.add_common(*candidates_, row.node, last);
    if (idle_cpus_[static_cast<std::size_t>(group)] == 0) return;
    add_all_free(group, candidates_->count(row.node, last));
    fitting_.add_common(*candidates_, row.node, last);
    return;
  }
  for (std::int64_t node = row.node; node < last; ++node) {
    if (!candidates_->has(node)) continue;
    const auto place = static_cast<std::size_t>(node);
    const Resources before = free_of(node);
    const std::int64_t used_before = used_of(node);
    free_[place] = before;
    free_[place] += row.of_each;
    if (used_now_ != nullptr) {
      const bool counts =
          slurm_partition == wish_->slurm_partition || now_.others_count_in(wish_->slurm_partition);
      used_[place] = used_before - (counts ? row.of_each.cpus : 0);
    }
    changed_in_[place] = beginning_;
    const std::int64_t cpus = table_.cpus_for(*wish_, group, free_[place], used_of(node));
    if (cpus == 0) continue;
    if (!fitting_.has(node)) {
      fitting_.add(node);
      ++fitting_nodes_;
      fitting_cpus_ += cpus;
    } else {
      fitting_cpus_ += cpus - table_.cpus_for(*wish_, group, before, used_before);
    }
  }
}

// On the nodes that it could have if all cores were free.
void NodeChooser::leave_marks() {
  NodeSet could_have(table_.nodes());
  candidates_->each([&](std::int64_t node) {
    const std::int32_t group = table_.group_of(node);
    if (table_.group(group).whole) {
      could_have.set(node, fitting_.has(node));
      return;
    }
    const std::int64_t cores = table_.group(group).node.cpus;
    Resources free = free_of(node);
    if (wish_->whole && free.cpus != cores) return;
    free.cpus = cores;
    if (table_.cpus_for(*wish_, group, free) > 0) could_have.add(node);
  });
  if (could_have.count() < wish_->min_nodes) return;
  marks_.mark(could_have, wish_->gpus);
  if (!wish_->whole) return;
  for (std::int32_t group = 0; group < table_.groups(); ++group) {
    NodeSet of_group(table_.nodes());
    of_group.add_common(could_have, table_.first_of(group), table_.last_of(group));
    marks_.mark(of_group, table_.group(group).node.gpus);
  }
}

std::optional<std::vector<NodeRow>> NodeChooser::choose() {
  if (!may_fit()) return std::nullopt;
  if (wish_->first_fit) {
    if (!choose_first()) return std::nullopt;
  } else if (switches_) {
    if (!choose_by_switches()) return std::nullopt;
  } else {
    const std::int64_t most = std::min(wish_->max_nodes, std::max(wish_->tasks, wish_->min_nodes));
    if (!choose_runs(fitting_, most) && !choose_without_poorest(most)) return std::nullopt;
  }
  return lay_out();
}

void NodeChooser::add_to_runs(std::int64_t first, std::int64_t last, std::int64_t cpus,
                              std::int64_t each, std::int64_t weight) {
  if (!runs_.empty() && runs_.back().last == first && runs_.back().weight == weight) {
    Run& run = runs_.back();
    run.last = last;
    run.cpus += cpus;
    run.most_cpus = std::max(run.most_cpus, each);
  } else {
    runs_.push_back({first, last, cpus, weight, each});
  }
}

void NodeChooser::find_runs(const NodeSet& nodes) {
  runs_.clear();
  nodes.each_run([this](std::int64_t first, std::int64_t last) {
    while (first < last) {
      const std::int32_t group = table_.group_of(first);
      const std::int64_t until = std::min(last, table_.last_of(group));
      // Nodes of which all is free are alike, but for what attempts and marks say of each.
      const bool alike = !tries_again_ && marks_.by_gpus().empty();
      while (first < until) {
        const std::int64_t next =
            alike ? std::max(all_free_.first_missing(first, until), first + 1) : first + 1;
        const std::int64_t cpus = cpus_of(first);
        add_to_runs(first, next, (next - first) * cpus, cpus, weight_of(first));
        first = next;
      }
    }
  });
}

// The first of the best, as Slurm compares one after the other.
std::size_t NodeChooser::best_run(std::int64_t cpus_left, std::int64_t nodes_left) const {
  std::size_t best = 0;
  bool best_is_enough = false;
  for (std::size_t place = 0; place < runs_.size(); ++place) {
    const Run& run = runs_[place];
    const Run& known = runs_[best];
    const bool enough = run.cpus >= cpus_left && run.nodes() >= nodes_left;
    bool better = place == 0 || run.weight < known.weight;
    if (!better && run.weight == known.weight) {
      better = enough ? !best_is_enough || run.cpus < known.cpus : run.cpus > known.cpus;
    }
    if (better) {
      best = place;
      best_is_enough = enough;
    }
  }
  return best;
}

// The first node of the fewest CPUs that are enough for the rest of the job; -1: there is none.
std::int64_t NodeChooser::best_single(const Run& run, std::int64_t cpus_left) const {
  if (run.most_cpus < cpus_left) return -1;
  if (run.is_even()) return run.first;
  std::int64_t best = -1;
  std::int64_t fewest = 0;
  for (std::int64_t node = run.first; node < run.last; ++node) {
    const std::int64_t cpus = cpus_of(node);
    if (cpus < cpus_left || (best >= 0 && cpus >= fewest)) continue;
    best = node;
    fewest = cpus;
    if (cpus == cpus_left) break;
  }
  return best;
}

// The first node of least weight with CPUs for all tasks.
bool NodeChooser::choose_first() {
  chosen_.clear();
  std::int64_t least = 0;
  for (std::int32_t group = 0; group < table_.groups(); ++group) {
    const NodeGroup& of = table_.group(group);
    if (!chosen_.empty() && of.weight >= least) continue;
    const std::int64_t node =
        fitting_.first(table_.first_of(group), table_.last_of(group),
                       [this](std::int64_t number) { return cpus_of(number) >= wish_->cpus; });
    if (node < 0) continue;
    std::int64_t cpus = cpus_of(node);
    if (!wish_->whole && cpus > wish_->cpus) cpus = std::max(wish_->cpus, wish_->cpus_per_task);
    chosen_.assign(1, {node, cpus});
    least = of.weight;
  }
  return !chosen_.empty();
}

bool NodeChooser::choose_by_switches() {
  offers_.clear();
  fitting_.each([this](std::int64_t node) {
    const NodeGroup& group = table_.group(table_.group_of(node));
    const std::int64_t gpus = group.whole ? group.node.gpus : free_of(node).gpus;
    offers_.push_back({node, cpus_of(node), gpus});
  });
  const bool found =
      switches_->choose({wish_->cpus, wish_->cpus_per_task, wish_->min_nodes, wish_->max_nodes,
                         wish_->tasks, wish_->gpus > 0, wish_->whole},
                        offers_);
  if (!found) return false;
  chosen_.clear();
  const std::vector<Offer> taken = switches_->chosen();
  for (const Offer& of : taken) add_chosen(of.node, 1, of.cpus);
  // 22.05 may choose more than it may give (_pick_best_nodes, node_scheduler.c).
  return std::cmp_less_equal(taken.size(), wish_->max_nodes);
}

// Of alike nodes the number of which a job that lacks so much takes all it can.
std::int64_t NodeChooser::taken_in_full(std::int64_t cpus, std::int64_t cpus_left,
                                        std::int64_t nodes_left) const {
  if (wish_->whole) return std::max(nodes_left, (cpus_left + cpus - 1) / cpus);
  const std::int64_t nodes = cpus_left / cpus;
  // A CPU of each other node that it needs is left to it.
  return cpus == 1 ? nodes : std::min(nodes, (cpus_left - nodes_left) / (cpus - 1));
}

bool NodeChooser::choose_runs(const NodeSet& nodes, std::int64_t most_nodes) {
  find_runs(nodes);
  chosen_.clear();
  std::int64_t cpus_left = wish_->cpus;
  std::int64_t nodes_left = wish_->min_nodes;
  while (!runs_.empty() && most_nodes > 0) {
    const std::size_t best = best_run(cpus_left, nodes_left);
    Run run = runs_[best];
    runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(best));
    if (nodes_left <= 1) {
      const std::int64_t single = best_single(run, cpus_left);
      if (single >= 0) {
        const std::int64_t cpus = cpus_of(single);
        run = {single, single + 1, cpus, run.weight, cpus};
      }
    }
    const bool even = run.is_even();
    std::int64_t nodes = 1;
    for (std::int64_t node = run.first; node < run.last; node += nodes) {
      if (most_nodes == 0 || (nodes_left <= 0 && cpus_left <= 0)) break;
      std::int64_t cpus = even ? run.most_cpus : cpus_of(node);
      nodes = 1;
      if (most_nodes == 1 && cpus < cpus_left) continue;
      if (even) {
        const std::int64_t most = std::min(run.last - node, most_nodes - 1);
        nodes = std::clamp<std::int64_t>(taken_in_full(cpus, cpus_left, nodes_left), 1,
                                         std::max<std::int64_t>(most, 1));
      }
      if (!wish_->whole) {
        const std::int64_t most = cpus_left - std::max<std::int64_t>(nodes_left - 1, 0);
        if (cpus > most) cpus = std::max(most, wish_->cpus_per_task);
      }
      add_chosen(node, nodes, cpus);
      cpus_left -= nodes * cpus;
      nodes_left -= nodes;
      most_nodes -= nodes;
    }
    if (nodes_left <= 0 && cpus_left <= 0) return true;
  }
  return false;
}

// Nodes in order may have been too many poor ones: without the poorest, step by step.
bool NodeChooser::choose_without_poorest(std::int64_t most_nodes) {
  riches_.clear();
  available_.resize(static_cast<std::size_t>(table_.nodes()));
  fitting_.each([this](std::int64_t node) {
    const std::int64_t cpus = cpus_of(node);
    available_[static_cast<std::size_t>(node)] = cpus;
    riches_.push_back({cpus, node});
  });
  keep_chosen();
  for (Riches& riches : riches_) {
    // Later releases go by what there was before the first attempt.
    if (!wish_->one_by_one) riches.amount = available_[static_cast<std::size_t>(riches.node)];
    if (wish_->gpus == 0) continue;
    const std::int64_t gpus = free_of(riches.node).gpus;
    riches.amount = wish_->one_by_one ? riches.amount * gpus : riches.amount + gpus;
  }
  std::sort(riches_.begin(), riches_.end(), [](const Riches& a, const Riches& b) {
    return a.amount != b.amount ? a.amount < b.amount : a.node < b.node;
  });
  tries_again_ = true;
  const bool found = wish_->one_by_one ? leave_out_one_by_one() : leave_out_all_below(most_nodes);
  tries_again_ = false;
  return found;
}

void NodeChooser::add_chosen(std::int64_t node, std::int64_t nodes, std::int64_t cpus) {
  if (!chosen_.empty() && chosen_.back().node + chosen_.back().nodes == node &&
      chosen_.back().cpus == cpus) {
    chosen_.back().nodes += nodes;
  } else {
    chosen_.push_back({node, cpus, nodes});
  }
}

// What an attempt has taken less of than there was stays at that for the next.
void NodeChooser::keep_chosen() {
  for (const Chosen& chosen : chosen_) {
    std::fill_n(available_.begin() + chosen.node, chosen.nodes, chosen.cpus);
  }
}

// `common_topo_choose_nodes`, topology/common/common_topo.c.
bool NodeChooser::leave_out_one_by_one() {
  NodeSet left = fitting_;
  for (std::size_t gone = 0;; ++gone) {
    if (choose_runs(left, wish_->max_nodes)) return true;
    if (std::cmp_less_equal(riches_.size() - gone, wish_->min_nodes)) return false;
    keep_chosen();
    left.remove(riches_[gone].node);
  }
}

// `choose_nodes`, cons_tres/job_test.c of 22.05.
bool NodeChooser::leave_out_all_below(std::int64_t most_nodes) {
  NodeSet left = fitting_;
  std::size_t gone = 0;
  const auto may_go = riches_.size() - static_cast<std::size_t>(wish_->min_nodes);
  for (std::int64_t below = 1; below < riches_.back().amount; ++below) {
    const std::size_t before = gone;
    for (; gone < may_go && riches_[gone].amount <= below; ++gone) left.remove(riches_[gone].node);
    if (gone == before && below > 1) continue;
    if (choose_runs(left, most_nodes)) return true;
    if (gone == may_go) return false;
    keep_chosen();
  }
  return false;
}

// The tasks: one on each node, then one more on each in turn. False: they do not fit.
bool NodeChooser::deal_out_tasks() {
  const std::int64_t each = wish_->cpus_per_task;
  std::int64_t room = 0;
  for (const Chosen& chosen : chosen_) room += chosen.cpus / each * chosen.nodes;
  // A node that has less than a task takes a part of one.
  std::int64_t tasks = wish_->tasks;
  if (room == tasks && std::none_of(chosen_.begin(), chosen_.end(),
                                    [each](const Chosen& c) { return c.cpus < each; })) {
    for (Chosen& chosen : chosen_) chosen.cpus -= chosen.cpus % each;
    return true;
  }
  std::vector<Chosen> singly;
  for (const Chosen& chosen : chosen_) {
    for (std::int64_t i = 0; i < chosen.nodes; ++i) {
      singly.push_back({chosen.node + i, chosen.cpus});
    }
  }
  chosen_ = std::move(singly);
  std::vector<std::int64_t> given(chosen_.size(), 0);
  for (std::size_t i = 0; i < chosen_.size() && tasks > 0; ++i, --tasks) {
    given[i] = std::min(each, chosen_[i].cpus);
  }
  while (tasks > 0) {
    const std::int64_t before = tasks;
    for (std::size_t i = 0; i < chosen_.size() && tasks > 0; ++i) {
      if (chosen_[i].cpus - given[i] < each) continue;
      given[i] += each;
      --tasks;
    }
    if (tasks == before) return false;
  }
  for (std::size_t i = 0; i < chosen_.size(); ++i) chosen_[i].cpus = given[i];
  return true;
}

std::optional<std::vector<NodeRow>> NodeChooser::lay_out() {
  std::sort(chosen_.begin(), chosen_.end(),
            [](const Chosen& a, const Chosen& b) { return a.node < b.node; });
  if (!wish_->whole && !deal_out_tasks()) return std::nullopt;
  std::vector<NodeRow> rows;
  for (const Chosen& chosen : chosen_) {
    const std::int64_t last = chosen.node + chosen.nodes;
    for (std::int64_t first = chosen.node; first < last;) {
      const std::int32_t group = table_.group_of(first);
      const std::int64_t until = std::min(last, table_.last_of(group));
      const Resources taken = table_.taken(*wish_, group, chosen.cpus);
      NodeRow* before = rows.empty() ? nullptr : &rows.back();
      if (before != nullptr && before->node + before->nodes == first && before->of_each == taken &&
          table_.group_of(before->node) == group) {
        before->nodes += until - first;
      } else {
        rows.push_back({first, until - first, taken});
      }
      first = until;
    }
  }
  return rows;
}

}  // namespace foretime
