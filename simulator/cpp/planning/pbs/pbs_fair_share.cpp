#include "planning/pbs/pbs_fair_share.hpp"

#include <algorithm>
#include <cmath>

namespace foretime {
namespace {

constexpr std::int32_t kRoot = 0;
constexpr std::int32_t kUnknown = 1;
constexpr double kLeastUsage = 1.0;  // FAIRSHARE_MIN_USAGE

}  // namespace

PbsFairShare::PbsFairShare(const PbsFairShareSettings& settings, Seconds decayed_at, Seconds now)
    : decay_time_(settings.decay_time),
      decay_factor_(settings.decay_factor),
      decayed_at_(decayed_at),
      number_(settings.number) {
  if (decayed_at_ > now && decay_time_ > 0) {  // the site was read later
    decayed_at_ -= (decayed_at_ - now + decay_time_ - 1) / decay_time_ * decay_time_;
  }
  for (const PbsShareGroup& group : settings.groups) add(group.parent, group.shares, group.usage);
  if (entities_.empty()) return;
  share_out(kRoot);
  double used = 0;
  for (const std::int32_t child : at(kRoot).children) {
    if (at(child).usage > 1) used += at(child).usage;
  }
  at(kRoot).usage = std::max(kLeastUsage, used);
}

std::int32_t PbsFairShare::add(std::int32_t parent, std::int64_t shares, double usage) {
  const auto number = static_cast<std::int32_t>(entities_.size());
  Entity entity;
  entity.parent = parent;
  entity.shares = shares;
  entity.usage = usage;
  if (parent >= 0) {
    at(parent).children.push_back(number);
    entity.path = at(parent).path;
  }
  entity.path.push_back(number);
  entities_.push_back(std::move(entity));
  return number;
}

// NOLINTNEXTLINE(misc-no-recursion)
void PbsFairShare::share_out(std::int32_t above) {
  std::int64_t total = 0;
  for (const std::int32_t child : at(above).children) total += at(child).shares;
  for (const std::int32_t child : at(above).children) {
    const auto shares = static_cast<double>(at(child).shares);
    at(child).part = total != 0 ? shares / static_cast<double>(total) * at(above).part : 0.0;
    share_out(child);
  }
}

std::int32_t PbsFairShare::entity(std::int32_t code) {
  const auto found = number_.find(code);
  if (found != number_.end()) return found->second;
  const std::int32_t number = add(kUnknown, 1, kLeastUsage);
  number_[code] = number;
  share_out(kUnknown);
  return number;
}

void PbsFairShare::charge(std::int32_t entity, double used) {
  for (const std::int32_t each : at(entity).path) at(each).usage += used;
}

void PbsFairShare::begin_cycle(Seconds now) {
  decay(now);
  for (Entity& entity : entities_) entity.assumed = entity.usage;
  at(kRoot).used_factor = 0;
  for (const std::int32_t child : at(kRoot).children) {
    at(child).used_factor = at(child).usage / at(kRoot).usage;
    find_factors(child);
  }
}

void PbsFairShare::decay(Seconds now) {
  if (decay_time_ <= 0 || now - decayed_at_ <= decay_time_) return;
  const Seconds since = now - decayed_at_;
  const Seconds times = (since + decay_time_ - 1) / decay_time_ - 1;
  for (Entity& entity : entities_) {
    for (Seconds i = 0; i < times; ++i) {
      const double before = entity.usage;
      entity.usage = std::max(before * decay_factor_, kLeastUsage);
      if (entity.usage == before) break;
    }
  }
  decayed_at_ = now - since % decay_time_;
}

// `calc_usage_factor`. NOLINTNEXTLINE(misc-no-recursion)
void PbsFairShare::find_factors(std::int32_t above) {
  std::int64_t total = 0;
  for (const std::int32_t child : at(above).children) total += at(child).shares;
  for (const std::int32_t child : at(above).children) {
    const double used = at(child).usage / at(kRoot).usage;
    const auto shares = static_cast<double>(at(child).shares);
    const double part = total != 0 ? shares / static_cast<double>(total) : 0.0;
    at(child).used_factor = used + (at(above).used_factor - used) * part;
    find_factors(child);
  }
}

std::vector<double> PbsFairShare::usage() const {
  std::vector<double> usage;
  usage.reserve(entities_.size());
  for (const Entity& entity : entities_) usage.push_back(entity.usage);
  return usage;
}

void PbsFairShare::assume(std::int32_t entity, double used) {
  for (const std::int32_t each : at(entity).path) at(each).assumed += used;
}

void PbsFairShare::put_factors(std::int32_t entity, PbsValues& values) const {
  const Entity& of = at(entity);
  const auto put = [&values](PbsName name, double value) {
    values[static_cast<std::size_t>(name)] = value;
  };
  put(PbsName::kFairsharePerc, of.part);
  put(PbsName::kFairSharePerc, of.part);
  put(PbsName::kFairshareTreeUsage, of.used_factor);
  put(PbsName::kFairshareFactor, of.part != 0 ? std::pow(2.0, -(of.used_factor / of.part)) : 0.0);
}

// `compare_path`: the first level at which their groups differ in usage by share decides.
int PbsFairShare::compare(std::int32_t one, std::int32_t other) const {
  if (one == other) return 0;
  const std::vector<std::int32_t>& mine = at(one).path;
  const std::vector<std::int32_t>& its = at(other).path;
  for (std::size_t level = 0; level < std::min(mine.size(), its.size()); ++level) {
    if (mine[level] == its[level]) continue;
    const Entity& a = at(mine[level]);
    const Entity& b = at(its[level]);
    if (a.part <= 0 || b.part <= 0) {
      return static_cast<int>(a.part <= 0) - static_cast<int>(b.part <= 0);
    }
    const double used = a.assumed / a.part;
    const double others = b.assumed / b.part;
    if (used != others) return used < others ? -1 : 1;
  }
  return 0;
}

}  // namespace foretime
