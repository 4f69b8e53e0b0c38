#include "core/availability_profile.hpp"

#include <algorithm>
#include <iterator>

namespace foretime {
namespace {

Seconds end_of(Seconds start, Seconds duration) {
  return duration == kNever || start > kNever - duration ? kNever : start + duration;
}

std::ptrdiff_t offset(std::size_t index) { return static_cast<std::ptrdiff_t>(index); }

}  // namespace

// Takes over the steps of another block from one on.
AvailabilityProfile::Block::Block(const Block& from, std::size_t first_step)
    : added(from.added),
      times(from.times.begin() + offset(first_step), from.times.end()),
      free(from.free.begin() + offset(first_step), from.free.end()) {
  summarize();
}

void AvailabilityProfile::Block::summarize() {
  // Without branches: what is free goes up and down unpredictably.
  Processors low = free.front();
  Processors high = low;
  for (const Processors step : free) {
    low = std::min(low, step);
    high = std::max(high, step);
  }
  least = low + added;
  most = high + added;
}

// Leaves the summary to the caller.
void AvailabilityProfile::Block::erase(std::size_t first, std::size_t last) {
  times.erase(times.begin() + offset(first), times.begin() + offset(last));
  free.erase(free.begin() + offset(first), free.begin() + offset(last));
}

bool AvailabilityProfile::reserve(Seconds start, Seconds duration, Processors processors) {
  const Seconds end = end_of(start, duration);
  start = std::max(start, now());
  if (start >= end) return true;
  if (min_free(start, end) < processors) return false;
  add(start, end, -processors);
  return true;
}

bool AvailabilityProfile::release(Seconds start, Seconds duration, Processors processors) {
  const Seconds end = end_of(start, duration);
  start = std::max(start, now());
  if (start >= end) return true;
  if (max_free(start, end) > capacity_ - processors) return false;
  add(start, end, processors);
  return true;
}

Seconds AvailabilityProfile::earliest_fit(Seconds from, Seconds duration,
                                          Processors processors) const {
  from = std::max(from, now());
  Place place = step_at(from);
  while (find_at_least(place, processors)) {
    const Seconds start = std::max(from, blocks_[place.block].times[place.step]);
    if (!find_below(place, processors, end_of(start, duration))) return start;
  }
  return kNever;
}

Seconds AvailabilityProfile::earlier_fit(Seconds from, Seconds before, Seconds until,
                                         Seconds duration, Processors processors) const {
  from = std::max(from, now());
  if (from >= before) return kNever;
  Place place = step_at(from);
  while (find_at_least(place, processors)) {
    const Seconds start = std::max(from, blocks_[place.block].times[place.step]);
    if (start >= before) break;
    if (!find_below(place, processors, std::min(until, start + duration))) return start;
  }
  return kNever;
}

bool AvailabilityProfile::is_free(Seconds start, Seconds end, Processors processors) const {
  Place place = step_at(std::max(start, now()));
  return start >= end || !find_below(place, processors, end);
}

void AvailabilityProfile::shift(Seconds start, Seconds end, Processors change) {
  start = std::max(start, now());
  if (start < end) add(start, end, change);
}

Processors AvailabilityProfile::free_at(Seconds time) const {
  const Place place = step_at(std::max(time, now()));
  return blocks_[place.block].free_of(place.step);
}

Processors AvailabilityProfile::min_free(Seconds start, Seconds end) const {
  Place place = step_at(std::max(start, now()));
  Processors least = capacity_;
  for (bool first = true; place.block < blocks_.size(); ++place.block, place.step = 0) {
    const Block& block = blocks_[place.block];
    if (!first && (block.first_time() >= end || block.least >= least)) {
      if (block.first_time() >= end) break;
      continue;
    }
    for (; place.step < block.size(); ++place.step) {
      if (!first && block.times[place.step] >= end) return least;
      least = std::min(least, block.free_of(place.step));
      first = false;
    }
  }
  return least;
}

Processors AvailabilityProfile::max_free(Seconds start, Seconds end) const {
  Place place = step_at(std::max(start, now()));
  Processors most = 0;
  for (bool first = true; place.block < blocks_.size(); ++place.block, place.step = 0) {
    const Block& block = blocks_[place.block];
    if (!first && (block.first_time() >= end || block.most <= most)) {
      if (block.first_time() >= end) break;
      continue;
    }
    for (; place.step < block.size(); ++place.step) {
      if (!first && block.times[place.step] >= end) return most;
      most = std::max(most, block.free_of(place.step));
      first = false;
    }
  }
  return most;
}

void AvailabilityProfile::advance(Seconds to) {
  if (to <= now()) return;
  const Place place = step_at(to);
  for (std::size_t i = 0; i < place.block; ++i) size_ -= blocks_[i].size();
  blocks_.erase(blocks_.begin(), blocks_.begin() + offset(place.block));
  Block& front = blocks_.front();
  if (place.step > 0) {
    front.erase(0, place.step);
    front.summarize();
    size_ -= place.step;
  }
  front.times.front() = to;
  join_if_small(0);
}

std::vector<std::pair<Seconds, Processors>> AvailabilityProfile::steps() const {
  std::vector<std::pair<Seconds, Processors>> all;
  all.reserve(size_);
  for_each_step([&](Seconds time, Processors free) { all.emplace_back(time, free); });
  return all;
}

// The step in which a time lies that is not before now().
AvailabilityProfile::Place AvailabilityProfile::step_at(Seconds time) const {
  const auto later = [](Seconds t, const Block& block) { return t < block.first_time(); };
  const auto block = std::upper_bound(blocks_.begin() + 1, blocks_.end(), time, later) - 1;
  const auto step = std::upper_bound(block->times.begin(), block->times.end(), time) - 1;
  return {static_cast<std::size_t>(block - blocks_.begin()),
          static_cast<std::size_t>(step - block->times.begin())};
}

// The step that begins at a time, made if there is none.
AvailabilityProfile::Place AvailabilityProfile::step_from(Seconds time) {
  Place place = step_at(time);
  if (blocks_[place.block].times[place.step] == time) return place;
  if (blocks_[place.block].size() == kBlockSteps) {
    const std::size_t half = kBlockSteps / 2;
    Block right(blocks_[place.block], half);
    Block& left = blocks_[place.block];
    left.erase(half, left.size());
    left.summarize();
    blocks_.insert(blocks_.begin() + offset(place.block) + 1, std::move(right));
    if (place.step >= half) place = {place.block + 1, place.step - half};
  }
  Block& block = blocks_[place.block];
  const Processors same = block.free[place.step];
  ++place.step;
  block.times.insert(block.times.begin() + offset(place.step), time);
  block.free.insert(block.free.begin() + offset(place.step), same);
  ++size_;
  return place;
}

void AvailabilityProfile::add(Seconds start, Seconds end, Processors change) {
  if (change == 0) return;
  if (end != kNever) step_from(end);
  const Place first = step_from(start);
  Place place = first;
  while (place.block < blocks_.size()) {
    Block& block = blocks_[place.block];
    if (block.first_time() >= end) break;
    const std::size_t stop =
        end > block.times.back()
            ? block.size()
            : static_cast<std::size_t>(
                  std::lower_bound(block.times.begin(), block.times.end(), end) -
                  block.times.begin());
    if (place.step == 0 && stop == block.size()) {
      block.added += change;
      block.least += change;
      block.most += change;
    } else {
      for (std::size_t i = place.step; i < stop; ++i) block.free[i] += change;
      block.summarize();
    }
    place.step = stop;
    if (stop < block.size()) break;
    place = {place.block + 1, 0};
  }
  // The step at the end first: that at the start stays where it is.
  const bool end_merged = end != kNever && merge(place);
  const std::size_t blocks = blocks_.size();
  const bool start_merged = merge(first);
  if (end_merged) join_if_small(place.block - (blocks - blocks_.size()));
  if (start_merged) join_if_small(first.block);
}

// Drops a step if it is as high as the one before; true if that leaves its block shorter.
bool AvailabilityProfile::merge(const Place& place) {
  if (place.block == 0 && place.step == 0) return false;
  Block& block = blocks_[place.block];
  const Processors before =
      place.step > 0 ? block.free_of(place.step - 1)
                     : blocks_[place.block - 1].free_of(blocks_[place.block - 1].size() - 1);
  if (block.free_of(place.step) != before) return false;
  --size_;
  if (block.size() == 1) {
    blocks_.erase(blocks_.begin() + offset(place.block));
    return false;
  }
  // Where the step before is in the same block the block's extremes stay.
  block.erase(place.step, place.step + 1);
  if (place.step == 0) block.summarize();
  return true;
}

// Few steps to a block would make the list of blocks long.
void AvailabilityProfile::join_if_small(std::size_t index) {
  if (blocks_.size() == 1 || index >= blocks_.size()) return;
  if (blocks_[index].size() >= kBlockSteps / 4) return;
  const std::size_t at = index + 1 < blocks_.size() ? index : index - 1;
  Block& left = blocks_[at];
  const Block& right = blocks_[at + 1];
  if (left.size() + right.size() > kBlockSteps * 3 / 4) return;
  for (std::size_t i = 0; i < right.size(); ++i) {
    left.times.push_back(right.times[i]);
    left.free.push_back(right.free_of(i) - left.added);
  }
  left.least = std::min(left.least, right.least);
  left.most = std::max(left.most, right.most);
  blocks_.erase(blocks_.begin() + offset(at) + 1);
}

// Moves on to the first step, from `place` on, with so many free.
bool AvailabilityProfile::find_at_least(Place& place, Processors processors) const {
  for (; place.block < blocks_.size(); ++place.block, place.step = 0) {
    const Block& block = blocks_[place.block];
    if (block.most < processors) continue;
    for (; place.step < block.size(); ++place.step) {
      if (block.free_of(place.step) >= processors) return true;
    }
  }
  return false;
}

// Moves on to the first step that begins before `end` with fewer free.
bool AvailabilityProfile::find_below(Place& place, Processors processors, Seconds end) const {
  for (; place.block < blocks_.size(); ++place.block, place.step = 0) {
    const Block& block = blocks_[place.block];
    if (block.times[place.step] >= end) return false;
    if (block.least >= processors) continue;
    for (; place.step < block.size(); ++place.step) {
      if (block.times[place.step] >= end) return false;
      if (block.free_of(place.step) < processors) return true;
    }
  }
  return false;
}

}  // namespace foretime
