// An ordered list in blocks, each with a summary of its entries: searches skip whole blocks.
//
// Insertion and removal touch one block; nothing is ever rebuilt, and there is no size limit.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace foretime {

// Entry: ordered by operator<. Summary: add(entry), and remove(entry), which says whether the
// summary still holds (if not it is made anew from the entries left).
template <class Entry, class Summary>
class BlockList {
 public:
  static constexpr std::size_t kCapacity = 32;

  struct Block {
    Summary summary{};
    std::size_t size = 0;
    std::unique_ptr<std::array<Entry, kCapacity>> entries =
        std::make_unique<std::array<Entry, kCapacity>>();

    const Entry* begin() const { return entries->data(); }
    const Entry* end() const { return entries->data() + size; }
    const Entry& last() const { return (*entries)[size - 1]; }
  };

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  const Entry& front() const { return *blocks_.front().begin(); }

  void insert(const Entry& entry) {
    std::size_t at = find_block(entry);
    if (blocks_.empty()) {
      blocks_.emplace_back();
    } else if (at == blocks_.size()) {
      --at;
    }
    if (blocks_[at].size == kCapacity) {
      split(at, entry);
      if (blocks_[at].last() < entry && at + 1 < blocks_.size()) ++at;
    }
    Block& block = blocks_[at];
    Entry* data = block.entries->data();
    Entry* place = std::lower_bound(data, data + block.size, entry);
    std::move_backward(place, data + block.size, data + block.size + 1);
    *place = entry;
    ++block.size;
    ++size_;
    block.summary.add(entry);
  }

  // The entry must be in the list.
  void erase(const Entry& entry) {
    const std::size_t at = find_block(entry);
    Block& block = blocks_[at];
    Entry* data = block.entries->data();
    Entry* place = std::lower_bound(data, data + block.size, entry);
    const Entry gone = *place;
    std::move(place + 1, data + block.size, place);
    --size_;
    if (--block.size == 0) {
      blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (!block.summary.remove(gone)) {
      summarize(block);
    }
  }

 private:
  // First block whose last entry is not before the given one.
  std::size_t find_block(const Entry& entry) const {
    const auto found = std::partition_point(
        blocks_.begin(), blocks_.end(), [&](const Block& block) { return block.last() < entry; });
    return static_cast<std::size_t>(found - blocks_.begin());
  }

  // Makes room in a full block. A list that grows at its end keeps its blocks full.
  void split(std::size_t at, const Entry& entry) {
    const bool grows_at_end = at + 1 == blocks_.size() && blocks_[at].last() < entry;
    Block right;
    Block& left = blocks_[at];
    if (grows_at_end) {
      // The new block must not be empty while it is searched.
      right.size = 1;
      (*right.entries)[0] = left.last();
      --left.size;
    } else {
      const std::size_t half = kCapacity / 2;
      std::copy(left.begin() + half, left.end(), right.entries->begin());
      right.size = kCapacity - half;
      left.size = half;
    }
    summarize(left);
    summarize(right);
    blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(right));
  }

  static void summarize(Block& block) {
    block.summary = Summary{};
    for (const Entry& entry : block) block.summary.add(entry);
  }

  std::vector<Block> blocks_;
  std::size_t size_ = 0;
};

// Walks a list from its first entry; false at the end. The list must not change meanwhile.
template <class List>
class Cursor {
 public:
  explicit Cursor(const List& list) : list_(list) {}
  explicit operator bool() const { return block_ < list_.blocks().size(); }
  const auto* operator->() const { return list_.blocks()[block_].begin() + entry_; }
  Cursor& operator++() {
    if (++entry_ == list_.blocks()[block_].size) {
      entry_ = 0;
      ++block_;
    }
    return *this;
  }

 private:
  const List& list_;
  std::size_t block_ = 0;
  std::size_t entry_ = 0;
};

}  // namespace foretime
