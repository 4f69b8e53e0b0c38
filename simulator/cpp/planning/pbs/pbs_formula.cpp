#include "planning/pbs/pbs_formula.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace foretime {
namespace {

constexpr double kFails = std::numeric_limits<double>::quiet_NaN();

// As Python takes remainders: with the sign of the divisor.
double modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (b < 0) != (rest < 0) ? rest + b : rest;
}

// Python's `//` of floating-point numbers.
double floor_over(double a, double b) {
  const double rest = std::fmod(a, b);
  double over = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) over -= 1.0;
  if (over == 0) return std::copysign(0.0, a / b);
  const double whole = std::floor(over);
  return over - whole > 0.5 ? whole + 1.0 : whole;
}

double of_one(PbsOperation operation, double a) {
  switch (operation) {
    case PbsOperation::kNot:
      return a == 0 ? 1.0 : 0.0;
    case PbsOperation::kNegative:
      return -a;
    case PbsOperation::kAbs:
    case PbsOperation::kFabs:
      return std::fabs(a);
    case PbsOperation::kInt:
    case PbsOperation::kTrunc:
      return std::trunc(a);
    case PbsOperation::kRound:
      return std::nearbyint(a);
    case PbsOperation::kFloor:
      return std::floor(a);
    case PbsOperation::kCeil:
      return std::ceil(a);
    case PbsOperation::kSqrt:
      return std::sqrt(a);
    case PbsOperation::kExp:
      return std::exp(a);
    case PbsOperation::kLog:
      return std::log(a);
    case PbsOperation::kLog2:
      return std::log2(a);
    case PbsOperation::kLog10:
      return std::log10(a);
    default:
      return a;
  }
}

double of_two(PbsOperation operation, double a, double b) {
  switch (operation) {
    case PbsOperation::kPlus:
      return a + b;
    case PbsOperation::kMinus:
      return a - b;
    case PbsOperation::kTimes:
      return a * b;
    case PbsOperation::kOver:
      return a / b;
    case PbsOperation::kFloorOver:
      return b == 0 ? kFails : floor_over(a, b);
    case PbsOperation::kModulo:
      return b == 0 ? kFails : modulo(a, b);
    case PbsOperation::kPower:
      return std::pow(a, b);
    case PbsOperation::kLess:
      return a < b ? 1.0 : 0.0;
    case PbsOperation::kLessOrEqual:
      return a <= b ? 1.0 : 0.0;
    case PbsOperation::kMore:
      return a > b ? 1.0 : 0.0;
    case PbsOperation::kMoreOrEqual:
      return a >= b ? 1.0 : 0.0;
    case PbsOperation::kEqual:
      return a == b ? 1.0 : 0.0;
    case PbsOperation::kUnequal:
      return a != b ? 1.0 : 0.0;
    case PbsOperation::kMin:
      return b < a ? b : a;
    case PbsOperation::kMax:
      return b > a ? b : a;
    default:
      return std::fmod(a, b);
  }
}

}  // namespace

double PbsFormula::value(const PbsValues& known) const {
  const double found = value_of(nodes_.back(), known);
  return std::isfinite(found) ? found : 0.0;
}

bool PbsFormula::uses(PbsName name) const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [name](const Node& node) { return node.name == name; });
}

// Trees are as deep as formulas are nested, which sites/pbs/formula.py bounds.
// NOLINTNEXTLINE(misc-no-recursion)
double PbsFormula::value_of(const Node& node, const PbsValues& known) const {
  switch (node.operation) {
    case PbsOperation::kNumber:
      return node.number;
    case PbsOperation::kName:
      return node.name == PbsName::kNothing ? 0.0 : known[static_cast<std::size_t>(node.name)];
    case PbsOperation::kIf: {
      const double condition = below(node, 0, known);
      if (std::isnan(condition)) return kFails;
      return below(node, condition != 0 ? 1 : 2, known);
    }
    case PbsOperation::kAnd:
    case PbsOperation::kOr: {
      const double first = below(node, 0, known);
      if (std::isnan(first)) return kFails;
      return (first == 0) == (node.operation == PbsOperation::kAnd) ? first : below(node, 1, known);
    }
    default:
      break;
  }
  const double first = below(node, 0, known);
  if (std::isnan(first)) return kFails;
  double found = 0;
  if (node.below.size() == 1) {
    found = of_one(node.operation, first);
  } else {
    const double second = below(node, 1, known);
    if (std::isnan(second)) return kFails;
    found = of_two(node.operation, first, second);
  }
  return std::isfinite(found) ? found : kFails;
}

}  // namespace foretime
