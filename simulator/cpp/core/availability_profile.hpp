// Processors free as a step function of time, from now on: what reservations are planned in.
//
// The steps lie in blocks that know their least and most free processors. A search skips the blocks
// that can't matter, a reservation adds to the blocks that it covers whole without opening them,
// and only the blocks at its two ends are touched. With n steps in blocks of B every operation
// costs O(n / B + B); only a search for a gap must also look into the blocks in which the free
// processors cross the number asked for.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/types.hpp"

namespace foretime {

class AvailabilityProfile {
 public:
  static constexpr std::size_t kBlockSteps = 128;

  AvailabilityProfile(Processors capacity, Seconds now)
      : capacity_(capacity), blocks_(1, Block(now, capacity)) {}

  // Duration kNever: for good. What lies before now() is past, and left out. False, and nothing
  // changed, if that many are not free (release: not taken) for the whole time.
  bool reserve(Seconds start, Seconds duration, Processors processors);
  bool release(Seconds start, Seconds duration, Processors processors);

  // First moment from `from` on at which `processors` are free for the whole duration; kNever if
  // there is none. A duration of 0 asks for that moment alone.
  Seconds earliest_fit(Seconds from, Seconds duration, Processors processors) const;
  // First moment in [from, before) from which `processors` are free for the duration, or until
  // `until` if that is earlier; kNever if there is none.
  Seconds earlier_fit(Seconds from, Seconds before, Seconds until, Seconds duration,
                      Processors processors) const;
  bool is_free(Seconds start, Seconds end, Processors processors) const;
  Processors free_at(Seconds time) const;
  // Least free in [start, end), or at `start` if that is empty.
  Processors min_free(Seconds start, Seconds end) const;
  Processors max_free(Seconds start, Seconds end) const;

  // Adds to what is free in [start, end) without a check: what is free may fall below 0.
  void shift(Seconds start, Seconds end, Processors change);

  // Forgets what lies before `to`; never goes back.
  void advance(Seconds to);

  Seconds now() const { return blocks_.front().first_time(); }
  Processors capacity() const { return capacity_; }
  std::size_t size() const { return size_; }
  // The steps, each from its time to the next one's; the last for good.
  std::vector<std::pair<Seconds, Processors>> steps() const;
  template <class Visit>
  void for_each_step(Visit visit) const {
    for (const Block& block : blocks_) {
      for (std::size_t i = 0; i < block.size(); ++i) visit(block.times[i], block.free_of(i));
    }
  }

 private:
  struct Block {
    Block(Seconds time, Processors free_processors)
        : least(free_processors), most(free_processors), times{time}, free{free_processors} {}
    Block(const Block& from, std::size_t first_step);

    Processors least = 0;
    Processors most = 0;
    Processors added = 0;  // still to be added to each of `free`
    std::vector<Seconds> times;
    std::vector<Processors> free;

    std::size_t size() const { return times.size(); }
    Seconds first_time() const { return times.front(); }
    Processors free_of(std::size_t step) const { return free[step] + added; }
    void summarize();
    void erase(std::size_t first, std::size_t last);
  };
  struct Place {
    std::size_t block = 0;
    std::size_t step = 0;
  };

  Place step_at(Seconds time) const;
  Place step_from(Seconds time);
  void add(Seconds start, Seconds end, Processors change);
  bool merge(const Place& place);
  void join_if_small(std::size_t index);
  bool find_at_least(Place& place, Processors processors) const;
  bool find_below(Place& place, Processors processors, Seconds end) const;

  Processors capacity_;
  std::size_t size_ = 1;
  std::vector<Block> blocks_;  // never empty, nor is any of them
};

}  // namespace foretime
