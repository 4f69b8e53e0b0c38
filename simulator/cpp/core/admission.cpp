#include "core/admission.hpp"

#include <algorithm>
#include <limits>

namespace foretime {

Admission::Admission(std::shared_ptr<const AdmissionRules> rules) : rules_(std::move(rules)) {
  for (const AdmissionRules::Waits& waits : rules_->waits) waits_.push_back(waits.events);
  released_at_.assign(waits_.size(), std::numeric_limits<Seconds>::min());
  in_use_.assign(rules_->limits.size(), {0, 0});
}

bool Admission::is_released(JobIndex job) const {
  const auto place = static_cast<std::size_t>(job);
  return place >= waits_.size() || waits_[place] == 0;
}

Seconds Admission::released_at(JobIndex job) const {
  const auto place = static_cast<std::size_t>(job);
  return place < released_at_.size() ? released_at_[place] : std::numeric_limits<Seconds>::min();
}

const std::vector<JobIndex>& Admission::happened(
    const std::vector<AdmissionRules::Successor>& successors, Seconds now) {
  released_.clear();
  for (const AdmissionRules::Successor& successor : successors) {
    const auto place = static_cast<std::size_t>(successor.job);
    if (waits_[place] == 0) {  // any sufficed, and has happened
      released_at_[place] = std::min(released_at_[place], now + successor.delay);
      continue;
    }
    released_at_[place] = std::max(released_at_[place], now + successor.delay);
    waits_[place] = rules_->waits[place].any_suffices ? 0 : waits_[place] - 1;
    if (waits_[place] == 0) released_.push_back(successor.job);
  }
  return released_;
}

const std::vector<JobIndex>& Admission::started(JobIndex job, Seconds now) {
  return happened(of(rules_->after_start, job), now);
}

const std::vector<JobIndex>& Admission::ended(JobIndex job, Seconds now) {
  return happened(of(rules_->after_end, job), now);
}

void Admission::count(JobIndex job, Processors processors, std::int64_t sign) {
  for (const std::size_t group : of(rules_->groups_of, job)) {
    in_use_[group].jobs += sign;
    in_use_[group].processors += sign * processors;
    changed_ = true;
  }
}

void Admission::arrives(JobIndex job, std::int64_t priority, std::int64_t rank,
                        Processors processors) {
  const Kept kept{priority, rank, job, processors};
  kept_.insert(std::upper_bound(kept_.begin(), kept_.end(), kept), kept);
  changed_ = true;
}

bool Admission::has_room(const Kept& kept) const {
  const std::vector<std::size_t>& groups = of(rules_->groups_of, kept.job);
  return std::all_of(groups.begin(), groups.end(), [&](std::size_t group) {
    const GroupLimit& limit = rules_->limits[group];
    const GroupLimit& used = in_use_[group];
    return used.jobs < limit.jobs &&
           (limit.processors == kNever || used.processors + kept.processors <= limit.processors);
  });
}

const std::vector<JobIndex>& Admission::let_in() {
  let_in_.clear();
  if (!changed_) return let_in_;
  std::erase_if(kept_, [this](const Kept& kept) {
    if (!has_room(kept)) return false;
    count(kept.job, kept.processors, 1);
    let_in_.push_back(kept.job);
    return true;
  });
  changed_ = false;
  return let_in_;
}

}  // namespace foretime
