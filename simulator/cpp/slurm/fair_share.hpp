// Fair share as Slurm has it: classic, depth oblivious, and Fair Tree.
// reference/slurm/priorities/fair_share.py is the specification; both give the same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/names.hpp"

namespace foretime::slurm {

using AssociationIndex = std::int32_t;
inline constexpr AssociationIndex kNoAssociation = -1;

// An association of a site; accounts are before those below them, and root is the first.
struct Association {
  AssociationIndex parent = kNoAssociation;
  AssociationIndex fair_parent = kNoAssociation;  // nearest above it with shares of its own
  bool is_user = false;
  std::optional<std::int64_t> shares = 1;  // none: the parent's
  double raw_usage = 0;                    // billing seconds
  double priority_factor = 0;              // weighed, of PriorityWeightAssoc
};

enum class FairShareKind : std::uint8_t { kClassic, kDepthOblivious, kFairTree };
constexpr auto names_of(FairShareKind) { return named("classic", "depth-oblivious", "fair-tree"); }

// What does not change: the same for all samples of forward runs.
class FairShareTree {
 public:
  FairShareTree(std::vector<Association> given, FairShareKind chosen, std::int64_t dampening);

  struct Level {
    std::int64_t shares = 0xFFFFFFFE;  // of it and its siblings; not set for root
    double norm = 1;                   // its part of the whole, under Fair Tree of its level
  };

  std::vector<Association> associations;
  std::vector<Level> levels;                            // by association
  std::vector<std::vector<AssociationIndex>> children;  // those that have it as fair_parent
  FairShareKind kind = FairShareKind::kFairTree;
  long double dampening_factor = 1;
  std::int64_t users = 0;

 private:
  double norm_of(AssociationIndex one) const;
};

class FairShare {
 public:
  explicit FairShare(std::shared_ptr<const FairShareTree> tree);

  bool is_fair_tree() const { return tree_->kind == FairShareKind::kFairTree; }

  // Adds usage to an association and all above it.
  void charge(AssociationIndex one, double billing_seconds);
  void decay(double kept);
  void reset();

  // At the beginning of a calculation: effective usage of accounts; of users it is left for later.
  void begin_classic();
  // Ranks all users.
  void apply_fair_tree();

  // From 0 to 1. Under classic fair share it stays until the next begin_classic() once it is asked.
  double factor_of(AssociationIndex one);

  std::size_t size() const { return members_.size(); }
  long double raw_usage(AssociationIndex one) const { return at(one).raw; }

 private:
  struct Member {
    long double raw = 0;
    long double norm = 0;
    long double effective = 0;
    long double level_fs = 0;
    double factor = 0;
    bool effective_is_known = true;
    bool factor_is_known = false;
  };

  // Siblings that are being ranked: a part of in_order_, and how far it is.
  struct Ranked {
    std::size_t first = 0;
    std::size_t next = 0;
    long double previous = 0;
    bool tied_before = false;
  };

  Member& at(AssociationIndex one) { return members_[static_cast<std::size_t>(one)]; }
  const Member& at(AssociationIndex one) const { return members_[static_cast<std::size_t>(one)]; }
  const Association& of(AssociationIndex one) const {
    return tree_->associations[static_cast<std::size_t>(one)];
  }
  const FairShareTree::Level& level_of(AssociationIndex one) const {
    return tree_->levels[static_cast<std::size_t>(one)];
  }
  const std::vector<AssociationIndex>& children_of(AssociationIndex one) const {
    return tree_->children[static_cast<std::size_t>(one)];
  }

  void set_usage_norm(AssociationIndex one);
  void set_usage(AssociationIndex one);
  long double oblivious_usage(AssociationIndex one) const;
  void set_level_fs(AssociationIndex one);
  void sort_below(AssociationIndex account, bool tied_before);

  std::shared_ptr<const FairShareTree> tree_;
  std::vector<Member> members_;
  std::vector<AssociationIndex> in_order_;  // of the levels that are being ranked
  std::vector<Ranked> ranked_;              // those levels, from root down
};

}  // namespace foretime::slurm
