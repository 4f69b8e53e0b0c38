// Whose limits there are: QOS and associations, with what their jobs have. They are copied for each
// forward run; what does not change is shared.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "slurm/limit_counts.hpp"
#include "slurm/limit_setup.hpp"

namespace foretime::slurm {

inline bool limits_kind(const KindLimits& limits, std::int32_t kind) {
  return std::any_of(limits.begin(), limits.end(),
                     [kind](const auto& limit) { return limit.first == kind; });
}

// A QOS or an association: its limits, what its jobs have, and what they have used.
class Group {
 public:
  Counts counts;
  std::vector<double> used_s;
  double used_wall_s = 0.0;

  Group(const LimitSet& limits, const std::vector<double>& used, double wall, std::int32_t kinds,
        std::int32_t node_kind)
      : counts(kinds, limits_kind(limits[TresLimit::group], node_kind)),
        used_s(used),
        used_wall_s(wall),
        limits_(&limits),
        keeps_(keeps(limits)) {
    used_s.resize(static_cast<std::size_t>(kinds));
  }

  const LimitSet& limits() const { return *limits_; }
  // How often that may have changed by which it keeps jobs from being looked at.
  std::int64_t changes() const { return changes_; }
  void change() {
    if (keeps_) ++changes_;
  }
  // Usage decays.
  void decay(double kept) {
    change();
    used_wall_s *= kept;
    for (double& used : used_s) used *= kept;
  }
  void use(double seconds, const std::vector<std::int64_t>& tres) {
    change();
    used_wall_s += seconds;
    for (std::size_t kind = 0; kind < tres.size(); ++kind) {
      if (tres[kind] != 0) used_s[kind] += seconds * static_cast<double>(tres[kind]);
    }
  }

 private:
  static bool keeps(const LimitSet& limits) {
    const auto by = {NumberLimit::group_jobs, NumberLimit::group_wall, NumberLimit::jobs,
                     NumberLimit::account_jobs};
    return std::any_of(by.begin(), by.end(),
                       [&limits](NumberLimit limit) { return limits[limit] != kNoLimit; });
  }

  const LimitSet* limits_;
  bool keeps_;
  std::int64_t changes_ = 0;
};

class QosGroup : public Group {
 public:
  QosGroup(const QosSetup& those, std::int32_t kinds, std::int32_t node_kind)
      : Group(those.limits, those.used_s, those.used_wall_s, kinds, node_kind),
        setup_(&those),
        no_user_(kinds, limits_kind(those.limits[TresLimit::user], node_kind)),
        no_account_(kinds, limits_kind(those.limits[TresLimit::account], node_kind)) {}

  const QosSetup& setup() const { return *setup_; }
  const Counts& of_user(std::int32_t user) const { return of(users_, user, no_user_); }
  const Counts& of_account(std::int32_t account) const {
    return of(accounts_, account, no_account_);
  }
  Counts& of_user(std::int32_t user) { return users_.try_emplace(user, no_user_).first->second; }
  Counts& of_account(std::int32_t account) {
    return accounts_.try_emplace(account, no_account_).first->second;
  }

 private:
  using ByName = std::unordered_map<std::int32_t, Counts>;
  static const Counts& of(const ByName& all, std::int32_t name, const Counts& none) {
    const auto found = all.find(name);
    return found == all.end() ? none : found->second;
  }

  const QosSetup* setup_;
  Counts no_user_;
  Counts no_account_;
  ByName users_;
  ByName accounts_;
};

class AssociationGroup : public Group {
 public:
  AssociationGroup(const AssociationSetup& those, std::int32_t kinds, std::int32_t node_kind)
      : Group(those.limits, those.used_s, those.used_wall_s, kinds, node_kind),
        account(those.account) {}
  std::int32_t account;
};

// An association and those above it, root last.
class AssociationLine {
 public:
  AssociationLine(std::span<const AssociationGroup> all, std::span<const std::int32_t> places)
      : all_(all), places_(places) {}

  const AssociationGroup& front() const { return at(places_.front()); }
  const AssociationGroup& root() const { return at(places_.back()); }
  auto groups() const {
    return places_ |
           std::views::transform([all = all_](std::int32_t place) -> const AssociationGroup& {
             return all[static_cast<std::size_t>(place)];
           });
  }

 private:
  const AssociationGroup& at(std::int32_t place) const {
    return all_[static_cast<std::size_t>(place)];
  }

  std::span<const AssociationGroup> all_;
  std::span<const std::int32_t> places_;
};

// Whom a running job counts for.
struct Counted {
  std::int32_t own_qos = kNone;
  std::int32_t partition_qos = kNone;  // none but its own
  std::int32_t association = kNone;
  std::int32_t user = kNone;
};

// All of a site.
class LimitGroups {
 public:
  explicit LimitGroups(std::shared_ptr<const LimitsSetup> setup) : setup_(std::move(setup)) {
    // Where limits don't count nobody is counted for them.
    if (!setup_->limits_count) return;
    qos_.reserve(setup_->qos.size());
    for (const QosSetup& those : setup_->qos) {
      qos_.emplace_back(those, setup_->kinds, setup_->node_kind);
    }
    associations_.reserve(setup_->associations.size());
    for (const AssociationSetup& those : setup_->associations) {
      associations_.emplace_back(those, setup_->kinds, setup_->node_kind);
    }
  }

  const LimitsSetup& setup() const { return *setup_; }
  const QosGroup* qos(std::int32_t number) const {
    return number == kNone ? nullptr : &qos_[static_cast<std::size_t>(number)];
  }
  QosGroup* qos(std::int32_t number) {
    return number == kNone ? nullptr : &qos_[static_cast<std::size_t>(number)];
  }
  AssociationLine line(std::int32_t association) const {
    return {associations_, places_of(association)};
  }

  // A job of theirs has started or ended.
  void change(const Counted& job) {
    for_each_qos_of(job, [](QosGroup& qos) { qos.change(); });
    for_each_association_of(job.association, [](AssociationGroup& group) { group.change(); });
  }

  template <typename Visit>
  void for_each_qos(Visit visit) {
    for (QosGroup& qos : qos_) visit(qos);
  }
  template <typename Visit>
  void for_each_association(Visit visit) {
    for (AssociationGroup& group : associations_) visit(group);
  }
  template <typename Visit>
  void for_each_qos_of(const Counted& job, Visit visit) {
    for (const std::int32_t number : {job.own_qos, job.partition_qos}) {
      if (number != kNone) visit(*qos(number));
    }
  }
  template <typename Visit>
  void for_each_association_of(std::int32_t association, Visit visit) {
    for (const std::int32_t place : places_of(association)) {
      visit(associations_[static_cast<std::size_t>(place)]);
    }
  }
  // All counts of what a job has and may still use.
  template <typename Visit>
  void for_each_count_of(const Counted& job, bool of_partition_qos, Visit visit) {
    const std::int32_t account = line(job.association).front().account;
    const auto count = [&](QosGroup& qos) {
      visit(qos.counts);
      visit(qos.of_user(job.user));
      visit(qos.of_account(account));
    };
    if (job.own_qos != kNone) count(*qos(job.own_qos));
    if (of_partition_qos && job.partition_qos != kNone) count(*qos(job.partition_qos));
    for_each_association_of(job.association, [&](AssociationGroup& group) { visit(group.counts); });
  }

 private:
  std::span<const std::int32_t> places_of(std::int32_t association) const {
    return setup_->associations[static_cast<std::size_t>(association)].line;
  }

  std::shared_ptr<const LimitsSetup> setup_;
  std::vector<QosGroup> qos_;
  std::vector<AssociationGroup> associations_;
};

}  // namespace foretime::slurm
