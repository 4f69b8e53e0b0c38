#include "slurm/fair_share.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace foretime::slurm {
namespace {

// What Slurm has where there is nothing (NO_VAL).
constexpr long double kNoLevelFs = 0xFFFFFFFE;
constexpr long double kInfinity = std::numeric_limits<long double>::infinity();

}  // namespace

FairShareTree::FairShareTree(std::vector<Association> given, FairShareKind chosen,
                             std::int64_t dampening)
    : associations(std::move(given)),
      levels(associations.size()),
      children(associations.size()),
      kind(chosen),
      dampening_factor(static_cast<long double>(dampening)) {
  for (std::size_t i = 0; i < associations.size(); ++i) {
    const Association& one = associations[i];
    if (one.fair_parent != kNoAssociation) {
      children[static_cast<std::size_t>(one.fair_parent)].push_back(
          static_cast<AssociationIndex>(i));
    }
    if (one.is_user) ++users;
  }
  for (const auto& siblings : children) {
    std::int64_t level = 0;
    for (const auto child : siblings) {
      level += associations[static_cast<std::size_t>(child)].shares.value_or(0);
    }
    for (const auto child : siblings) levels[static_cast<std::size_t>(child)].shares = level;
  }
  for (std::size_t i = 0; i < associations.size(); ++i) {
    levels[i].norm = norm_of(static_cast<AssociationIndex>(i));
  }
}

double FairShareTree::norm_of(AssociationIndex one) const {
  const auto of = [this](AssociationIndex i) -> const Association& {
    return associations[static_cast<std::size_t>(i)];
  };
  const auto part = [&](AssociationIndex i) {
    const std::int64_t level = levels[static_cast<std::size_t>(i)].shares;
    return level == 0 ? 0.0
                      : static_cast<double>(of(i).shares.value_or(0)) / static_cast<double>(level);
  };
  const AssociationIndex fair_parent = of(one).fair_parent;
  const bool has_parents = !of(one).shares && fair_parent != kNoAssociation;
  if (kind == FairShareKind::kFairTree) return part(has_parents ? fair_parent : one);
  if (has_parents) return levels[static_cast<std::size_t>(fair_parent)].norm;
  double norm = 1;
  for (AssociationIndex i = one; of(i).parent != kNoAssociation; i = of(i).parent) {
    if (of(i).shares) norm *= part(i);
  }
  return norm;
}

FairShare::FairShare(std::shared_ptr<const FairShareTree> tree)
    : tree_(std::move(tree)), members_(tree_->associations.size()) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    members_[i].raw = static_cast<long double>(tree_->associations[i].raw_usage);
  }
  if (!members_.empty()) members_.front().effective = 1;
}

void FairShare::charge(AssociationIndex one, double billing_seconds) {
  for (; one != kNoAssociation; one = of(one).parent) {
    at(one).raw += static_cast<long double>(billing_seconds);
  }
}

void FairShare::decay(double kept) {
  for (Member& member : members_) member.raw *= static_cast<long double>(kept);
}

void FairShare::reset() {
  for (Member& member : members_) member.raw = 0;
}

void FairShare::begin_classic() {
  for (Member& member : members_) member.factor_is_known = false;
  // Accounts are before those below them.
  for (std::size_t i = 1; i < members_.size(); ++i) {
    const auto one = static_cast<AssociationIndex>(i);
    if (of(one).is_user) {
      members_[i].effective_is_known = false;
    } else {
      set_usage(one);
    }
  }
}

void FairShare::set_usage_norm(AssociationIndex one) {
  const long double total = members_.front().raw;
  at(one).norm = total == 0 ? 0 : std::min(at(one).raw / total, 1.0L);
}

void FairShare::set_usage(AssociationIndex one) {
  set_usage_norm(one);
  Member& member = at(one);
  member.effective_is_known = true;
  const AssociationIndex parent = of(one).fair_parent;
  const auto shares = of(one).shares;
  if (parent == kNoAssociation || of(parent).parent == kNoAssociation) {
    member.effective = member.norm;
  } else if (shares && tree_->kind == FairShareKind::kDepthOblivious) {
    member.effective = oblivious_usage(one);
  } else if (!shares || level_of(one).shares == 0) {
    member.effective = at(parent).effective;
  } else {
    const long double part =
        static_cast<long double>(*shares) / static_cast<long double>(level_of(one).shares);
    member.effective = member.norm + ((at(parent).effective - member.norm) * part);
  }
}

long double FairShare::oblivious_usage(AssociationIndex one) const {
  const AssociationIndex parent = of(one).fair_parent;
  const long double used = at(one).norm;
  const auto shares = static_cast<long double>(level_of(one).norm);
  const auto shares_of_parent = static_cast<long double>(level_of(parent).norm);
  if (shares == 0 || shares_of_parent == 0 || at(parent).effective == 0 || used == 0) return used;
  const long double ratio_parent = at(parent).effective / shares_of_parent;
  long double siblings = 0;
  for (const AssociationIndex sibling : children_of(parent)) {
    if (of(sibling).shares) siblings += at(sibling).norm;
  }
  siblings /= shares_of_parent;
  const long double ratio_level = (used / shares) / siblings;
  long double power = 1;
  if (std::log(ratio_parent) * std::log(ratio_level) < 0) {
    const long double strength = 5.0L * std::log(ratio_parent);
    power = 1 / (1 + (strength * strength));
  }
  const double raised = std::pow(static_cast<double>(ratio_level), static_cast<double>(power));
  return ratio_parent * static_cast<long double>(raised) * shares;
}

void FairShare::set_level_fs(AssociationIndex one) {
  Member& member = at(one);
  const AssociationIndex parent = of(one).fair_parent;
  long double used = 0;
  if (parent != kNoAssociation && at(parent).raw != 0) used = member.raw / at(parent).raw;
  member.effective = used;
  set_usage_norm(one);
  const auto shares = static_cast<long double>(level_of(one).norm);
  if (!of(one).shares) {
    member.level_fs = of(one).is_user ? kInfinity : kNoLevelFs;
  } else if (shares == 0) {
    member.level_fs = 0;
  } else {
    member.level_fs = used == 0 ? kInfinity : shares / used;
  }
}

void FairShare::sort_below(AssociationIndex account, bool tied_before) {
  const auto& siblings = children_of(account);
  const std::size_t first = in_order_.size();
  in_order_.insert(in_order_.end(), siblings.begin(), siblings.end());
  for (const AssociationIndex one : siblings) set_level_fs(one);
  std::stable_sort(in_order_.begin() + static_cast<std::ptrdiff_t>(first), in_order_.end(),
                   [this](AssociationIndex a, AssociationIndex b) {
                     if (at(a).level_fs != at(b).level_fs) return at(a).level_fs > at(b).level_fs;
                     return of(a).is_user && !of(b).is_user;
                   });
  ranked_.push_back({first, first, kNoLevelFs, tied_before});
}

void FairShare::apply_fair_tree() {
  if (members_.empty()) return;
  std::int64_t rank = tree_->users;
  std::int64_t untied_rank = tree_->users;
  in_order_.clear();
  ranked_.clear();
  sort_below(0, false);
  while (!ranked_.empty()) {
    Ranked& level = ranked_.back();
    if (level.next == in_order_.size()) {
      in_order_.resize(level.first);
      ranked_.pop_back();
      continue;
    }
    const bool is_first = level.next == level.first;
    const AssociationIndex one = in_order_[level.next++];
    const bool tied = (is_first && level.tied_before) || level.previous == at(one).level_fs;
    level.previous = at(one).level_fs;
    if (of(one).is_user) {
      if (!tied) rank = untied_rank;
      at(one).factor = static_cast<double>(rank) / static_cast<double>(tree_->users);
      --untied_rank;
    } else {
      sort_below(one, tied);
    }
  }
}

double FairShare::factor_of(AssociationIndex one) {
  Member& asked = at(one);
  if (is_fair_tree() || asked.factor_is_known) return asked.factor;
  const AssociationIndex fair_parent = of(one).fair_parent;
  const AssociationIndex by = !of(one).shares && fair_parent != kNoAssociation ? fair_parent : one;
  if (!at(by).effective_is_known) set_usage(by);
  const double shares = level_of(by).norm;
  asked.factor = 0;
  if (shares > 0) {
    const long double power =
        at(by).effective / static_cast<long double>(shares) / tree_->dampening_factor;
    asked.factor = std::pow(2.0, -static_cast<double>(power));
  }
  asked.factor_is_known = true;
  return asked.factor;
}

}  // namespace foretime::slurm
