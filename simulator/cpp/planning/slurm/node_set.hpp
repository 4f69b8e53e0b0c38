// A set of nodes by their numbers, as Slurm's bitmaps are.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace foretime {

class NodeSet {
 public:
  NodeSet() = default;
  explicit NodeSet(std::int64_t nodes) : words_((static_cast<std::size_t>(nodes) + 63) / 64) {}

  // The words that have any of its nodes: what is small is looked at quickly.
  struct Extent {
    std::size_t first = 0;
    std::size_t last = 0;
  };
  Extent extent() const {
    Extent found{0, words_.size()};
    while (found.first < found.last && words_[found.first] == 0) ++found.first;
    while (found.first < found.last && words_[found.last - 1] == 0) --found.last;
    return found;
  }

  bool has(std::int64_t node) const { return ((words_[at(node)] >> place(node)) & 1U) != 0; }
  void add(std::int64_t node) { words_[at(node)] |= bit(node); }
  void remove(std::int64_t node) { words_[at(node)] &= ~bit(node); }
  void set(std::int64_t node, bool in) {
    if (in) {
      add(node);
    } else {
      remove(node);
    }
  }
  void clear() { std::fill(words_.begin(), words_.end(), 0); }

  // Nodes [first, last).
  void add(std::int64_t first, std::int64_t last) {
    each_place(first, last,
               [this](std::size_t place, std::uint64_t mask) { words_[place] |= mask; });
  }
  void remove(std::int64_t first, std::int64_t last) {
    each_place(first, last,
               [this](std::size_t place, std::uint64_t mask) { words_[place] &= ~mask; });
  }
  // Those of the other.
  void add_common(const NodeSet& other, std::int64_t first, std::int64_t last) {
    each_place(first, last, [&](std::size_t place, std::uint64_t mask) {
      words_[place] |= other.words_[place] & mask;
    });
  }
  void add(const NodeSet& other, Extent in) {
    for (std::size_t i = in.first; i < in.last; ++i) words_[i] |= other.words_[i];
  }
  void remove(const NodeSet& other, Extent in) {
    for (std::size_t i = in.first; i < in.last; ++i) words_[i] &= ~other.words_[i];
  }
  bool meets(const NodeSet& other, Extent in) const {
    for (std::size_t i = in.first; i < in.last; ++i) {
      if ((words_[i] & other.words_[i]) != 0) return true;
    }
    return false;
  }
  std::int64_t count_common(const NodeSet& other, std::int64_t first, std::int64_t last) const {
    if (first >= last) return 0;
    const std::size_t from = at(first);
    const std::size_t to = at(last - 1);
    const auto common = [&](std::size_t i) { return words_[i] & other.words_[i]; };
    const std::uint64_t low = ~std::uint64_t{0} << place(first);
    const std::uint64_t high = ~std::uint64_t{0} >> (63U - place(last - 1));
    if (from == to) return ones(common(from) & low & high);
    std::int64_t nodes = ones(common(from) & low) + ones(common(to) & high);
    // So many words that no byte of their sums overflows.
    constexpr std::size_t kBlock = 31;
    for (std::size_t i = from + 1; i < to;) {
      std::uint64_t bytes = 0;
      for (const std::size_t until = std::min(to, i + kBlock); i < until; ++i) {
        bytes += ones_by_byte(common(i));
      }
      bytes = (bytes & 0x00FF'00FF'00FF'00FFU) + ((bytes >> 8U) & 0x00FF'00FF'00FF'00FFU);
      nodes += static_cast<std::int64_t>((bytes * 0x0001'0001'0001'0001U) >> 48U);
    }
    return nodes;
  }
  std::int64_t count(std::int64_t first, std::int64_t last) const {
    std::int64_t nodes = 0;
    each_place(first, last,
               [&](std::size_t place, std::uint64_t mask) { nodes += ones(words_[place] & mask); });
    return nodes;
  }
  bool meets(std::int64_t first, std::int64_t last) const {
    bool any = false;
    each_place(first, last, [&](std::size_t place, std::uint64_t mask) {
      any = any || (words_[place] & mask) != 0;
    });
    return any;
  }
  // Ascending; `visit` may take out the node that it is given.
  template <class Visit>
  void each(std::int64_t first, std::int64_t last, Visit visit) const {
    each_place(first, last, [&](std::size_t place, std::uint64_t mask) {
      for (std::uint64_t word = words_[place] & mask; word != 0; word &= word - 1) {
        visit(static_cast<std::int64_t>(place * 64) + std::countr_zero(word));
      }
    });
  }

  NodeSet& operator&=(const NodeSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    return *this;
  }
  NodeSet& operator|=(const NodeSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  NodeSet& operator-=(const NodeSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
    return *this;
  }
  friend bool operator==(const NodeSet&, const NodeSet&) = default;

  std::int64_t count() const {
    std::int64_t nodes = 0;
    for (const std::uint64_t word : words_) nodes += ones(word);
    return nodes;
  }
  bool empty() const {
    return std::all_of(words_.begin(), words_.end(), [](std::uint64_t word) { return word == 0; });
  }
  // Whether all of it are in the other.
  bool is_within(const NodeSet& other) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if ((words_[i] & ~other.words_[i]) != 0) return false;
    }
    return true;
  }
  // Whether all that it has in common with `one` is in both of the others.
  bool common_is_within(const NodeSet& one, const NodeSet& a, const NodeSet& b) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if ((words_[i] & one.words_[i] & ~(a.words_[i] & b.words_[i])) != 0) return false;
    }
    return true;
  }
  bool meets(const NodeSet& other) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if ((words_[i] & other.words_[i]) != 0) return true;
    }
    return false;
  }

  // Ascending.
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t word = words_[i]; word != 0; word &= word - 1) {
        visit(static_cast<std::int64_t>(i * 64) + std::countr_zero(word));
      }
    }
  }
  // Those of the other, too.
  template <class Visit>
  void each_common(const NodeSet& other, Visit visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t word = words_[i] & other.words_[i]; word != 0; word &= word - 1) {
        visit(static_cast<std::int64_t>(i * 64) + std::countr_zero(word));
      }
    }
  }
  // The first one in [first, last) that is as wanted; -1: there is none.
  template <class Wanted>
  std::int64_t first(std::int64_t first, std::int64_t last, Wanted wanted) const {
    for (std::int64_t node = first; node < last;) {
      const std::uint64_t rest = words_[at(node)] >> place(node);
      if (rest == 0) {
        node = (node / 64 + 1) * 64;
        continue;
      }
      node += std::countr_zero(rest);
      if (node < last && wanted(node)) return node;
      ++node;
    }
    return -1;
  }
  // The first one in [first, last) that is not in it; the last: there is none.
  std::int64_t first_missing(std::int64_t first, std::int64_t last) const {
    for (std::int64_t node = first; node < last;) {
      const int in = std::countr_one(words_[at(node)] >> place(node));
      node += in;
      if (in == 0 || place(node) != 0) return std::min(node, last);
    }
    return last;
  }
  // Runs [first, last) of nodes with consecutive numbers, ascending.
  template <class Visit>
  void each_run(Visit visit) const {
    std::int64_t first = -1;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::uint64_t word = words_[i];
      const auto base = static_cast<std::int64_t>(i * 64);
      if (word == 0 || word == ~std::uint64_t{0}) {
        if (word == 0 && first >= 0) visit(std::exchange(first, -1), base);
        if (word != 0 && first < 0) first = base;
        continue;
      }
      for (unsigned place = 0; place < 64;) {
        const std::uint64_t rest = word >> place;
        if (first < 0) {
          if (rest == 0) break;
          place += static_cast<unsigned>(std::countr_zero(rest));
          first = base + place;
        } else {
          place += static_cast<unsigned>(std::countr_one(rest));
          if (place < 64) visit(std::exchange(first, -1), base + place);
        }
      }
    }
    if (first >= 0) visit(first, static_cast<std::int64_t>(words_.size() * 64));
  }

 private:
  // std::popcount calls a function where the processor is not known to have an instruction for it.
  static std::uint64_t ones_by_byte(std::uint64_t word) {
    word -= (word >> 1U) & 0x5555'5555'5555'5555U;
    word = (word & 0x3333'3333'3333'3333U) + ((word >> 2U) & 0x3333'3333'3333'3333U);
    return (word + (word >> 4U)) & 0x0F0F'0F0F'0F0F'0F0FU;
  }
  static std::int64_t ones(std::uint64_t word) {
    return static_cast<std::int64_t>((ones_by_byte(word) * 0x0101'0101'0101'0101U) >> 56U);
  }
  static std::size_t at(std::int64_t node) { return static_cast<std::size_t>(node) / 64; }
  static unsigned place(std::int64_t node) { return static_cast<std::uint64_t>(node) & 63U; }
  static std::uint64_t bit(std::int64_t node) { return std::uint64_t{1} << place(node); }
  // With what of each word lies within [first, last).
  template <class Visit>
  static void each_place(std::int64_t first, std::int64_t last, Visit visit) {
    if (first >= last) return;
    const std::size_t from = at(first);
    const std::size_t to = at(last - 1);
    const std::uint64_t low = ~std::uint64_t{0} << place(first);
    const std::uint64_t high = ~std::uint64_t{0} >> (63U - place(last - 1));
    if (from == to) {
      visit(from, low & high);
      return;
    }
    visit(from, low);
    for (std::size_t place = from + 1; place < to; ++place) visit(place, ~std::uint64_t{0});
    visit(to, high);
  }

  std::vector<std::uint64_t> words_;
};

}  // namespace foretime
