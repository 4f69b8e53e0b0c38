// job_sort_formula and fairshare_usage_res: what sites/pbs/formula.py has read, evaluated.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/names.hpp"

namespace foretime {

// What formulas may name; any other name is 0.
enum class PbsName : std::uint8_t {
  kNcpus,
  kMem,
  kNgpus,
  kWalltime,
  kSoftWalltime,
  kCput,
  kQueuePriority,
  kJobPriority,
  kFairsharePerc,
  kFairSharePerc,
  kFairshareTreeUsage,
  kFairshareFactor,
  kNothing
};
constexpr auto names_of(PbsName) {
  return named("ncpus", "mem", "ngpus", "walltime", "soft_walltime", "cput", "queue_priority",
               "job_priority", "fairshare_perc", "fair_share_perc", "fairshare_tree_usage",
               "fairshare_factor", "");
}
inline constexpr std::size_t kPbsNames = static_cast<std::size_t>(PbsName::kNothing);
using PbsValues = std::array<double, kPbsNames>;

enum class PbsOperation : std::uint8_t {
  kNumber,
  kName,
  kIf,
  kAnd,
  kOr,
  kNot,
  kPlus,
  kMinus,
  kTimes,
  kOver,
  kFloorOver,
  kModulo,
  kPower,
  kNegative,
  kLess,
  kLessOrEqual,
  kMore,
  kMoreOrEqual,
  kEqual,
  kUnequal,
  kMin,
  kMax,
  kAbs,
  kFabs,
  kInt,
  kTrunc,
  kFloat,
  kRound,
  kFloor,
  kCeil,
  kSqrt,
  kExp,
  kLog,
  kLog2,
  kLog10,
  kFmod
};
constexpr auto names_of(PbsOperation) {
  return named("number", "name", "if", "and", "or", "not", "+", "-", "*", "/", "//", "%", "**",
               "neg", "<", "<=", ">", ">=", "==", "!=", "min", "max", "abs", "fabs", "int", "trunc",
               "float", "round", "floor", "ceil", "sqrt", "exp", "log", "log2", "log10", "fmod");
}

class PbsFormula {
 public:
  struct Node {
    PbsOperation operation = PbsOperation::kNumber;
    double number = 0;
    PbsName name = PbsName::kNothing;
    std::vector<std::size_t> below;  // earlier nodes
  };

  PbsFormula() = default;
  // The last node is the whole.
  explicit PbsFormula(std::vector<Node> nodes) : nodes_(std::move(nodes)) {}

  // 0 where it fails, as in PBS.
  double value(const PbsValues& known) const;
  bool uses(PbsName name) const;
  // Whether its value changes with what has been used.
  bool goes_by_shares() const {
    return uses(PbsName::kFairsharePerc) || uses(PbsName::kFairSharePerc) ||
           uses(PbsName::kFairshareTreeUsage) || uses(PbsName::kFairshareFactor);
  }

 private:
  // Not a number where it fails.
  double value_of(const Node& node, const PbsValues& known) const;
  // NOLINTNEXTLINE(misc-no-recursion): see value_of
  double below(const Node& node, std::size_t which, const PbsValues& known) const {
    return value_of(nodes_[node.below[which]], known);
  }

  std::vector<Node> nodes_;
};

}  // namespace foretime
