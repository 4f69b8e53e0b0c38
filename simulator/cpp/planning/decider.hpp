// What dynP's deciders choose (Streit 2002, section 3 and table 1).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <vector>

#include "core/types.hpp"

namespace foretime {

inline constexpr std::size_t kCases = 17;

// Counted while a decider is asked; see SwitchingCounters in policy_switching.py.
struct SwitchingCounters {
  std::int64_t tries = 0;
  std::vector<std::int64_t> switches;  // by order
  std::int64_t waiting_at_tries = 0;
  std::array<std::int64_t, kCases> cases{};  // as TABLE_1_CASES
};

constexpr bool tunes_itself(Decider decider) {
  return decider == Decider::kSimple || decider == Decider::kAdvanced;
}

// Ranks say how schedules compare: the lower the better, the same for equal ones.
template <class Value>
std::vector<std::size_t> ranks_of(const std::vector<Value>& values) {
  std::vector<std::size_t> ranks;
  ranks.reserve(values.size());
  for (const Value& value : values) {
    ranks.push_back(static_cast<std::size_t>(std::count_if(
        values.begin(), values.end(), [&](const Value& other) { return other < value; })));
  }
  return ranks;
}

// The first of the best; under kAdvanced the current one if it is among them.
inline std::size_t chosen_order(Decider decider, const std::vector<std::size_t>& ranks,
                                std::size_t current) {
  const auto best = std::min_element(ranks.begin(), ranks.end());
  if (decider == Decider::kAdvanced && ranks[current] == *best) return current;
  return static_cast<std::size_t>(best - ranks.begin());
}

// The place in TABLE_1_CASES: 1, 2, 3, 4a-c, 6a-c, 7, 8a-c, 9, 10a-c. Of three orders.
inline std::size_t case_of_table_1(const std::vector<std::size_t>& ranks, std::size_t current) {
  const std::size_t fcfs = ranks[0];
  const std::size_t sjf = ranks[1];
  const std::size_t ljf = ranks[2];
  if (fcfs == sjf && sjf == ljf) return 0;
  if (sjf < fcfs && sjf < ljf) return fcfs == ljf ? 9 : 1;
  if (fcfs < sjf && fcfs < ljf) return sjf == ljf ? 13 : 2;
  if (ljf < fcfs && ljf < sjf) {
    if (fcfs == sjf) return 4;
    return fcfs < sjf ? 3 : 5;
  }
  if (fcfs == sjf) return 6 + current;
  if (fcfs == ljf) return 10 + current;
  return 14 + current;
}

}  // namespace foretime
