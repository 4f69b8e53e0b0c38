// PBS's fair share: fair_share.py of the specification, with the same operations in the same order.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "planning/pbs/pbs_site.hpp"

namespace foretime {

class PbsFairShare {
 public:
  // Usage is decayed in steps from `decayed_at` on, which may be after `now`.
  PbsFairShare(const PbsFairShareSettings& settings, Seconds decayed_at, Seconds now);

  // Whom a code stands for; who is not in resource_group is below those who are unknown.
  std::int32_t entity(std::int32_t code);
  void charge(std::int32_t entity, double used);
  // After running jobs were charged.
  void begin_cycle(Seconds now);
  // For the rest of the cycle.
  void assume(std::int32_t entity, double used);
  void put_factors(std::int32_t entity, PbsValues& values) const;
  double part(std::int32_t entity) const { return at(entity).part; }
  // -1: the one stands first, 1: the other, 0: neither.
  int compare(std::int32_t one, std::int32_t other) const;
  // For who reads it from outside.
  Seconds decayed_at() const { return decayed_at_; }
  std::vector<double> usage() const;  // by entity
  const std::map<std::int32_t, std::int32_t>& number() const { return number_; }

 private:
  struct Entity {
    std::int32_t parent = -1;
    std::int64_t shares = 0;
    double usage = 1;
    double assumed = 1;
    double part = 1;
    double used_factor = 0;
    std::vector<std::int32_t> children;
    std::vector<std::int32_t> path;  // from the root to itself
  };

  Entity& at(std::int32_t entity) { return entities_[static_cast<std::size_t>(entity)]; }
  const Entity& at(std::int32_t entity) const {
    return entities_[static_cast<std::size_t>(entity)];
  }
  std::int32_t add(std::int32_t parent, std::int64_t shares, double usage);
  void share_out(std::int32_t above);
  void decay(Seconds now);
  void find_factors(std::int32_t above);

  Seconds decay_time_;
  double decay_factor_;
  Seconds decayed_at_;
  std::vector<Entity> entities_;
  std::map<std::int32_t, std::int32_t> number_;
};

}  // namespace foretime
