// The cheapest of the schedules in which a newcomer may be given a place, or processors that were
// given back be used (Talby and Feitelson 1999, sections 4.2, 4.5 and 4.6).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/availability_profile.hpp"
#include "core/types.hpp"
#include "planning/slack/slack_pricing.hpp"

namespace foretime {

// A waiting job that is planned, and may be moved.
// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): MoveCost has no default
struct Movable {
  JobIndex job = 0;
  Seconds start = 0;
  std::int64_t rank = 0;
  Seconds duration = 0;
  Processors processors = 0;
  Seconds latest_start = 0;
  double priority = 0;
  MoveCost cost;

  __extension__ __int128 work() const { return static_cast<__int128>(processors) * duration; }
  // It may not be delayed once its slack is used up.
  double cost_of_a_second() const {
    return start < latest_start ? cost.of(1) : std::numeric_limits<double>::infinity();
  }
};

// Who is to be placed. The dummy of section 4.5, for which processors are used that were given
// back, has none and lasts no time.
struct Newcomer {
  Seconds duration = 0;
  Processors processors = 0;
};

struct SlackMove {
  JobIndex job = 0;
  Seconds start = 0;
};

// One of the schedules to choose from: the cheapest is taken, of these that which moves the fewest,
// of these that of the earliest slot.
struct SlackPlan {
  Seconds slot = 0;
  double price = 0;
  std::vector<SlackMove> moves;
  bool is_better_than(const SlackPlan& other) const {
    if (price != other.price) return price < other.price;
    if (moves.size() != other.moves.size()) return moves.size() < other.moves.size();
    return slot < other.slot;
  }
};

class SlackSearch {
 public:
  // Those that may be moved come by planned start; `order` has their places in the order in which
  // they are put back. `planned` has all claims, theirs included.
  SlackSearch(const SlackSettings& settings, const AvailabilityProfile& planned, Seconds now,
              const std::vector<Movable>& movable, const std::vector<std::size_t>& order);

  // Improves on `best`, in which nobody moves, at these slots, which come by time. `settled`:
  // nobody can be moved up alone.
  void insert(SlackPlan& best, const Newcomer& newcomer, std::vector<Seconds> slots, bool settled);
  // The same without a newcomer; false if nobody can be moved up.
  bool use_gains(SlackPlan& best, std::vector<Seconds> slots);

 private:
  struct Claim {
    Seconds start = 0;
    Seconds end = 0;
    Processors processors = 0;
  };
  void try_slots(SlackPlan& best, const Newcomer& newcomer, const std::vector<Seconds>& slots);
  std::vector<Seconds> starts_that_can_move_up() const;
  void try_slot(SlackPlan& best, const Newcomer& newcomer, Seconds slot);
  void claim(Seconds start, Seconds end, Processors processors);
  void undo();

  const SlackSettings& settings_;
  const AvailabilityProfile& planned_;
  AvailabilityProfile staying_;  // what can't be moved, and who is planned before the slot
  AvailabilityProfile profile_;  // with what is tried at it
  Seconds now_;
  const std::vector<Movable>& movable_;
  const std::vector<std::size_t>& order_;
  bool by_start_;  // they are put back in the order of their planned starts
  std::vector<Claim> tried_;
  SlackPlan plan_;
};

}  // namespace foretime
