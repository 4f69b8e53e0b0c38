// The nodes of a group by what is free of them: those of a class are told apart by number only.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nodes/node_types.hpp"

namespace foretime {

struct ResourcesHash {
  std::size_t operator()(const Resources& r) const {
    std::uint64_t hash = static_cast<std::uint64_t>(r.cpus) * 0x9E3779B97F4A7C15U;
    hash = (hash ^ static_cast<std::uint64_t>(r.memory)) * 0xBF58476D1CE4E5B9U;
    hash = (hash ^ (hash >> 29U) ^ static_cast<std::uint64_t>(r.gpus)) * 0x94D049BB133111EBU;
    return static_cast<std::size_t>(hash ^ (hash >> 32U));
  }
};

// A class keeps its number when it has lost its last node. Its nodes are bits: a large job moves
// many of them from one class to another, and finds those with the lowest numbers.
class NodeClasses {
 public:
  using Number = std::int32_t;

  NodeClasses() = default;
  NodeClasses(std::int32_t first_unit, std::int64_t units)
      : first_unit_(first_unit), words_((static_cast<std::size_t>(units) + 63) / 64) {}

  std::size_t size() const { return classes_.size(); }
  const Resources& free(Number number) const { return at(number).free; }
  std::int64_t count(Number number) const { return at(number).count; }
  // Those that have nodes, in any order.
  const std::vector<Number>& inhabited() const { return inhabited_; }

  Number with(const Resources& free) {
    const auto [known, added] = numbers_.try_emplace(free, static_cast<Number>(classes_.size()));
    if (added) classes_.push_back({free, 0, 0, {}});
    return known->second;
  }
  // The class of a node after a change. Neighbours are mostly in one class and change alike.
  Number changed(Number from, const Resources& change) {
    if (from != last_from_ || change != last_change_) {
      Resources free = at(from).free;
      free += change;
      last_to_ = with(free);
      last_from_ = from;
      last_change_ = change;
    }
    return last_to_;
  }

  void insert(Number number, std::int32_t unit) {
    Class& of = classes_[static_cast<std::size_t>(number)];
    if (of.count++ == 0) {
      of.place = inhabited_.size();
      inhabited_.push_back(number);
      if (spare_.empty()) {
        of.nodes.assign(words_, 0);
      } else {
        of.nodes = std::move(spare_.back());
        spare_.pop_back();
      }
    }
    const auto bit = static_cast<std::size_t>(unit - first_unit_);
    of.nodes[bit / 64] |= std::uint64_t{1} << (bit % 64);
  }
  void erase(Number number, std::int32_t unit) {
    Class& of = classes_[static_cast<std::size_t>(number)];
    const auto bit = static_cast<std::size_t>(unit - first_unit_);
    of.nodes[bit / 64] &= ~(std::uint64_t{1} << (bit % 64));
    if (--of.count > 0) return;
    spare_.push_back(std::move(of.nodes));
    of.nodes = {};
    const Number moved = inhabited_.back();
    inhabited_[of.place] = moved;
    classes_[static_cast<std::size_t>(moved)].place = of.place;
    inhabited_.pop_back();
  }

  // Gives its nodes by number, as long as `take` says that it wants more.
  template <typename Take>
  void each(Number number, Take take) const {
    const std::vector<std::uint64_t>& nodes = at(number).nodes;
    for (std::size_t word = 0; word < nodes.size(); ++word) {
      for (std::uint64_t bits = nodes[word]; bits != 0; bits &= bits - 1) {
        const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
        if (!take(first_unit_ + static_cast<std::int32_t>(word * 64 + bit))) return;
      }
    }
  }

 private:
  struct Class {
    Resources free;
    std::int64_t count = 0;
    std::size_t place = 0;  // in inhabited_
    std::vector<std::uint64_t> nodes;
  };
  const Class& at(Number number) const { return classes_[static_cast<std::size_t>(number)]; }

  std::int32_t first_unit_ = 0;
  std::size_t words_ = 0;
  std::vector<Class> classes_;
  std::unordered_map<Resources, Number, ResourcesHash> numbers_;
  std::vector<Number> inhabited_;
  std::vector<std::vector<std::uint64_t>> spare_;  // of classes without nodes; all zero
  Number last_from_ = -1;
  Number last_to_ = -1;
  Resources last_change_;
};

}  // namespace foretime
