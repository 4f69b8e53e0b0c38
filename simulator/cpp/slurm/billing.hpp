// The billing TRES (assoc_mgr_tres_weighted, src/common/assoc_mgr.c).
// reference/slurm/jobs/billing.py is the specification.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/names.hpp"

namespace foretime::slurm {

enum class BillingBy : std::uint8_t { kSum, kMaximum, kMaximumAndGres };
constexpr auto names_of(BillingBy) { return named("sum", "maximum", "maximum-and-gres"); }

struct Billing {
  BillingBy by = BillingBy::kSum;
  std::size_t cpu_kind = 0;
  std::vector<bool> is_gres;  // by kind
  std::vector<bool> is_node;  // cpu, mem, node

  // Of what a job asks for, or was given, with weights by kind; without any it is the CPUs.
  double of(std::span<const std::int64_t> tres, std::span<const double> weights) const {
    if (weights.empty()) return static_cast<double>(tres[cpu_kind]);
    double of_node = 0;
    double of_gres = 0;
    double everywhere = 0;
    for (std::size_t kind = 0; kind < tres.size(); ++kind) {
      const double value = static_cast<double>(tres[kind]) * weights[kind];
      if (by == BillingBy::kSum || (!is_gres[kind] && !is_node[kind])) {
        everywhere += value;
      } else if (by == BillingBy::kMaximumAndGres && is_gres[kind]) {
        of_gres += value;
      } else {
        of_node = std::max(of_node, value);
      }
    }
    return of_node + of_gres + everywhere;
  }
};

}  // namespace foretime::slurm
