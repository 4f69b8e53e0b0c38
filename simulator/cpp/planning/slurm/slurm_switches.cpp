#include "planning/slurm/slurm_switches.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace foretime {
namespace {

constexpr std::uint32_t kUnreachable = std::numeric_limits<std::uint32_t>::max();

std::uint32_t sum_of(std::uint32_t a, std::uint32_t b) {
  return a == kUnreachable || b == kUnreachable ? kUnreachable : a + b;
}

std::size_t at(std::int64_t node) { return static_cast<std::size_t>(node); }

}  // namespace

SwitchTree::SwitchTree(const SlurmSite& site) : later_release(site.version >= std::pair{24, 11}) {
  const std::vector<SlurmSwitch>& switches = site.switches;
  std::vector<std::int64_t> first_of_group;
  for (const NodeGroup& group : site.machine.groups) {
    first_of_group.push_back(static_cast<std::int64_t>(weights.size()));
    weights.insert(weights.end(), at(group.nodes), group.weight);
  }
  const auto all = static_cast<std::int64_t>(weights.size());
  std::map<std::int64_t, NodeSet> by_weight;
  for (std::int64_t node = 0; node < all; ++node) {
    by_weight.try_emplace(weights[at(node)], all).first->second.add(node);
  }
  for (auto& [weight, nodes_of_weight] : by_weight) alike.push_back(std::move(nodes_of_weight));

  const std::size_t count = switches.size();
  nodes.assign(count, NodeSet(all));
  levels.assign(count, 0);
  parents.assign(count, -1);
  distances.assign(count, std::vector<std::uint32_t>(count, kUnreachable));
  for (std::size_t place = 0; place < count; ++place) {
    for (const std::int32_t group : switches[place].groups) {
      const std::int64_t first = first_of_group[at(group)];
      nodes[place].add(first, first + site.machine.groups[at(group)].nodes);
    }
    distances[place][place] = 0;
    for (const std::int32_t below : switches[place].below) {
      parents[at(below)] = static_cast<std::int32_t>(place);
      distances[place][at(below)] = distances[at(below)][place] = 1;
    }
  }
  // No switch is below itself, so after so many rounds nothing changes any more.
  for (std::size_t round = 0; round < count; ++round) {
    for (std::size_t place = 0; place < count; ++place) {
      for (const std::int32_t below : switches[place].below) {
        nodes[place] |= nodes[at(below)];
        levels[place] = std::max(levels[place], levels[at(below)] + 1);
      }
    }
  }
  for (std::size_t via = 0; via < count; ++via) {
    for (std::vector<std::uint32_t>& row : distances) {
      for (std::size_t to = 0; to < count; ++to) {
        row[to] = std::min(row[to], sum_of(row[via], distances[via][to]));
      }
    }
  }
  for (std::size_t place = 0; place < count; ++place) {
    if (levels[place] == 0) leaves.push_back(place);
  }
}

SwitchChooser::SwitchChooser(const SlurmSite& site, const GpuMarks& marks)
    : tree_(site),
      marks_(marks),
      left_(static_cast<std::int64_t>(tree_.weights.size())),
      cpus_(tree_.weights.size()),
      needed_(left_),
      taken_(left_),
      of_(tree_.nodes),
      count_(tree_.nodes.size()),
      cpus_of_(tree_.nodes.size()),
      used_(tree_.nodes.size()),
      distance_(tree_.nodes.size()) {}

std::vector<Offer> SwitchChooser::chosen() const {
  std::vector<Offer> rows;
  taken_.each([&](std::int64_t node) { rows.push_back({node, cpus_[at(node)], 0}); });
  return rows;
}

// Leaving poor nodes out ------------------------------------------------------------------------

bool SwitchChooser::choose(const Asked& asked, const std::vector<Offer>& offers) {
  asked_ = asked;
  left_.clear();
  for (const Offer& offer : offers) {
    left_.add(offer.node);
    cpus_[at(offer.node)] = offer.cpus;
  }
  const std::int64_t most = std::min(asked.max_nodes, std::max(asked.tasks, asked.min_nodes));
  if (attempt(most)) return true;
  sort_by_riches(offers);
  return tree_.later_release ? leave_out_one_by_one() : leave_out_all_below(most);
}

// Later releases go by what there was before the first attempt, 22.05 by what it has left.
void SwitchChooser::sort_by_riches(const std::vector<Offer>& offers) {
  by_riches_ = offers;
  for (Offer& offer : by_riches_) {
    if (!tree_.later_release) offer.cpus = cpus_[at(offer.node)];
    if (asked_.gpus)
      offer.cpus = tree_.later_release ? offer.cpus * offer.gpus : offer.cpus + offer.gpus;
  }
  std::stable_sort(by_riches_.begin(), by_riches_.end(),
                   [](const Offer& a, const Offer& b) { return a.cpus < b.cpus; });
}

bool SwitchChooser::leave_out_one_by_one() {
  while (std::cmp_greater_equal(by_riches_.size(), asked_.min_nodes)) {
    if (attempt(asked_.max_nodes)) return true;
    if (std::cmp_equal(by_riches_.size(), asked_.min_nodes)) return false;
    const auto poorest = std::find_if(by_riches_.begin(), by_riches_.end(),
                                      [this](const Offer& o) { return taken_.has(o.node); });
    if (poorest == by_riches_.end()) return false;
    left_.remove(poorest->node);
    by_riches_.erase(poorest);
  }
  return false;
}

bool SwitchChooser::leave_out_all_below(std::int64_t most_nodes) {
  std::size_t gone = 0;
  const std::size_t may_go = by_riches_.size() - at(asked_.min_nodes);
  for (std::int64_t below = 1; below < by_riches_.back().cpus; ++below) {
    const std::size_t before = gone;
    while (gone < may_go && by_riches_[gone].cpus <= below) left_.remove(by_riches_[gone++].node);
    if (gone == before && below > 1) continue;
    if (attempt(most_nodes)) return true;
    if (gone == may_go) return false;
  }
  return false;
}

// One attempt -----------------------------------------------------------------------------------

bool SwitchChooser::attempt(std::int64_t most_nodes) {
  cpus_left_ = asked_.cpus;
  nodes_left_ = asked_.min_nodes;
  most_left_ = most_nodes;
  taken_.clear();
  for (std::size_t place = 0; place < of_.size(); ++place) {
    of_[place] = tree_.nodes[place];
    of_[place] &= left_;
    count_[place] = cpus_of_[place] = 0;
    of_[place].each([&](std::int64_t node) {
      ++count_[place];
      cpus_of_[place] += cpus_[at(node)];
    });
  }
  const std::int64_t top = top_switch();
  if (top < 0 || !divide_by_weight(at(top))) return false;
  needed_.each([this](std::int64_t node) {
    if (most_left_ != 0) {
      take(node);
    } else {
      taken_.add(node);
    }
  });
  if (most_left_ == 0) return false;
  const End end = fill_used();
  return end == End::kGoOn ? add_leaves() : end == End::kFound;
}

// The highest switch that reaches enough, and of those a lightest node; of equal ones the last.
std::int64_t SwitchChooser::top_switch() const {
  std::int64_t top = -1;
  std::int64_t lightest = 0;
  for (std::size_t place = 0; place < of_.size(); ++place) {
    if (count_[place] < nodes_left_) continue;
    if (tree_.later_release && cpus_of_[place] < cpus_left_) continue;
    std::int64_t weight = std::numeric_limits<std::int64_t>::max();
    of_[place].each([&](std::int64_t node) {
      weight = std::min(weight, 256 * tree_.weights[at(node)] - marks_.of(node));
    });
    if (top < 0 || (tree_.levels[place] >= tree_.levels[at(top)] && weight <= lightest)) {
      top = static_cast<std::int64_t>(place);
      lightest = weight;
    }
  }
  return top;
}

// Of the nodes that a switch reaches those lighter than the last that are needed, and these. The
// first are `needed_`; the switches keep both.
bool SwitchChooser::divide_by_weight(std::size_t top) {
  needed_.clear();
  std::int64_t nodes = 0;
  std::int64_t cpus = 0;
  const auto are_enough = [&](const NodeSet& here) {
    here.each([&](std::int64_t node) {
      ++nodes;
      cpus += cpus_[at(node)];
    });
    if (nodes < nodes_left_ || cpus < cpus_left_) {
      needed_ |= here;
      return false;
    }
    NodeSet both = here;
    both |= needed_;
    for (std::size_t place = 0; place < of_.size(); ++place) {
      of_[place] &= both;
      count_[place] = of_[place].count();
      used_[place] = of_[place].meets(needed_);
    }
    return true;
  };
  for (const NodeSet& alike : tree_.alike) {
    NodeSet here = of_[top];
    here &= alike;
    for (const auto& [gpus, nodes_with] : marks_.by_gpus()) {
      NodeSet marked = here;
      marked &= nodes_with;
      if (!marked.empty() && are_enough(marked)) return true;
      here -= marked;
    }
    if (are_enough(here)) return true;
  }
  return false;
}

void SwitchChooser::take(std::int64_t node) {
  std::int64_t& cpus = cpus_[at(node)];
  if (!asked_.whole) {
    const std::int64_t most = cpus_left_ - std::max<std::int64_t>(nodes_left_ - 1, 0);
    if (cpus > most) cpus = std::max(most, asked_.cpus_per_task);
  }
  taken_.add(node);
  cpus_left_ -= cpus;
  --nodes_left_;
  --most_left_;
}

// More of the leaves of which nodes are needed.
SwitchChooser::End SwitchChooser::fill_used() {
  std::int64_t taken = 0;  // of all these leaves so far, all of which counts against each
  const auto all = static_cast<std::int64_t>(cpus_.size());
  for (const std::size_t leaf : tree_.leaves) {
    if (!used_[leaf]) continue;
    NodeSet rest = of_[leaf];
    rest -= taken_;
    const std::int64_t last = rest.first(0, all, [&](std::int64_t node) {
      take(node);
      ++taken;
      return has_enough() || (tree_.later_release && most_left_ == 0);
    });
    if (last >= 0) return has_enough() ? End::kFound : End::kFailed;
    if (tree_.later_release) count_down(leaf, taken);
  }
  return End::kGoOn;
}

// Leaf after leaf, the best for what is still missing first.
bool SwitchChooser::add_leaves() {
  std::fill(distance_.begin(), distance_.end(), 0);
  for (std::size_t place = 0; place < used_.size(); ++place) {
    if (used_[place]) add_distances(place);
  }
  const auto all = static_cast<std::int64_t>(cpus_.size());
  for (bool goes_on = true; goes_on;) {
    const std::int64_t before = nodes_left_;
    const std::int64_t best = best_leaf();
    if (best < 0) return false;
    add_distances(at(best));
    NodeSet rest = of_[at(best)];
    rest -= taken_;
    rest.first(0, all, [&](std::int64_t node) {
      if (most_left_ == 0) return true;
      take(node);
      return has_enough() || (tree_.later_release && most_left_ == 0);
    });
    if (has_enough()) return true;
    if (tree_.later_release) {
      if (most_left_ == 0) return false;
      count_down(at(best), count_[at(best)]);
    }
    count_[at(best)] = 0;
    goes_on = nodes_left_ != before;
  }
  return false;
}

void SwitchChooser::add_distances(std::size_t from) {
  for (std::size_t place = 0; place < distance_.size(); ++place) {
    distance_[place] = sum_of(distance_[place], tree_.distances[from][place]);
  }
}

void SwitchChooser::count_down(std::size_t from, std::int64_t nodes) {
  for (auto place = static_cast<std::int64_t>(from); place >= 0; place = tree_.parents[at(place)]) {
    count_[at(place)] = std::max<std::int64_t>(count_[at(place)] - nodes, 0);
  }
}

// The best leaf ---------------------------------------------------------------------------------

// As they are compared in turn; -1: there is none.
std::int64_t SwitchChooser::best_leaf() const {
  std::int64_t best = -1;
  for (const std::size_t leaf : tree_.leaves) {
    if (used_[leaf] || count_[leaf] == 0 || distance_[leaf] == kUnreachable) continue;
    bool better = best < 0;
    if (!better && distance_[leaf] <= distance_[at(best)]) {
      const auto [order, fits_itself] = compare(leaf, at(best));
      const bool good = tree_.later_release ? fits_itself : order >= 0;
      better = distance_[leaf] < distance_[at(best)] ? good : order > 0;
    }
    if (better) best = static_cast<std::int64_t>(leaf);
  }
  return best;
}

bool SwitchChooser::fits(std::size_t place) const {
  return count_[place] >= nodes_left_ && (!tree_.later_release || cpus_of_[place] >= cpus_left_);
}

std::pair<int, bool> SwitchChooser::compare(std::size_t one, std::size_t other) const {
  for (;;) {
    const bool mine = fits(one);
    const bool yours = fits(other);
    if (mine && yours) {
      if (count_[one] == count_[other]) break;
      return {count_[one] < count_[other] ? 1 : -1, true};
    }
    if (mine || yours) return {mine ? 1 : -1, mine};
    const std::int32_t above = tree_.parents[one];
    const std::int32_t above_other = tree_.parents[other];
    if (above == above_other || above < 0 || above_other < 0) break;
    one = at(above);
    other = at(above_other);
  }
  const bool mine = fits(one);
  if (count_[one] != count_[other]) return {count_[one] > count_[other] ? 1 : -1, mine};
  if (tree_.levels[one] == tree_.levels[other]) return {0, mine};
  return {tree_.levels[one] < tree_.levels[other] ? 1 : -1, mine};
}

}  // namespace foretime
