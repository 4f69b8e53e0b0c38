// How a site's PBS is set up, as sites/pbs/site.py explains it, in numbers: queues, hosts and
// people by their codes, times on the engine's clock.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/types.hpp"
#include "nodes/node_types.hpp"
#include "planning/pbs/pbs_formula.hpp"

namespace foretime {

// What a job asks for in all, in the order of PbsName: ncpus, mem (bytes), ngpus, walltime and
// soft_walltime. 0: it has none of it.
inline constexpr std::size_t kPbsListed = 5;
using PbsList = std::array<std::int64_t, kPbsListed>;

// Who is counted together.
enum class PbsWho : std::uint8_t { kAll, kUser, kProject };
constexpr auto names_of(PbsWho) { return named("o", "u", "p"); }

struct PbsLimit {
  std::int32_t queue = -1;  // whose jobs are counted; -1: all
  PbsWho who = PbsWho::kAll;
  std::int32_t what = -1;            // place in PbsList; -1: jobs
  std::optional<std::int64_t> most;  // of those who are not named
  std::map<std::int32_t, std::int64_t> named;
  bool if_asked = false;  // does not hold for jobs that ask for none of it
};

struct PbsQueue {
  std::int64_t priority = 0;
  bool enabled = true;
  bool started = true;
  bool dedicated = false;  // only in dedicated time
  std::optional<std::int64_t> depth;
  Seconds default_soft = 0;  // of jobs without a soft_walltime; 0: none
  PbsList least{};           // of a job that asks for any
  PbsList most{};
  // What makes its jobs differ to the scheduler besides select, place and walltime.
  bool apart = false;  // from those of other queues
  bool apart_by_user = false;
  bool apart_by_project = false;
  bool apart_by_soft = false;
  std::int32_t pool = 0;  // whose hosts it has
};

struct PbsHost {
  Resources room;  // memory in bytes
  std::int32_t pool = 0;
};

// What somebody has of a host.
struct PbsShare {
  std::int32_t host = 0;
  Resources amount;
};
using PbsPlacement = std::vector<PbsShare>;

struct PbsReservation {
  Seconds start = 0;
  Seconds end = 0;
  PbsPlacement hosts;
};

struct PbsShareGroup {
  std::int32_t parent = 0;
  std::int64_t shares = 0;
  double usage = 1;
};

enum class PbsEntity : std::uint8_t { kUser, kProject, kQueue };
constexpr auto names_of(PbsEntity) { return named("euser", "project", "queue"); }

struct PbsFairShareSettings {
  bool on = false;
  bool enforce_no_shares = true;
  PbsEntity entity = PbsEntity::kUser;
  Seconds decay_time = 0;
  double decay_factor = 1;
  PbsFormula usage;
  std::vector<PbsShareGroup> groups;            // the root, then those who are unknown
  std::map<std::int32_t, std::int32_t> number;  // of a code: place in groups
};

// What a job is sorted by: a place in PbsList, or these.
inline constexpr std::int32_t kPbsByPriority = 5;
inline constexpr std::int32_t kPbsByShare = 6;

struct PbsSite {
  std::vector<PbsHost> hosts;
  std::vector<std::vector<std::int32_t>> pools;  // hosts, in the order in which they are tried
  std::vector<PbsQueue> queues;
  std::vector<std::int32_t> queue_of_partition;
  std::vector<std::vector<std::int32_t>> levels;  // queues of one priority, higher ones first
  bool by_queue = true;
  bool round_robin = false;
  bool strict = false;
  std::int64_t depth = 1;
  Seconds fuzzy = 60;
  Seconds iteration = 600;
  Seconds epoch = 0;      // of the engine's zero
  Seconds usage_lag = 0;  // how old is what is known of usage
  std::vector<std::pair<std::int32_t, bool>> sort_keys;
  std::optional<PbsFormula> formula;
  std::optional<double> threshold;
  PbsFairShareSettings fair_share;
  std::vector<PbsLimit> limits;  // of running jobs
  std::vector<PbsLimit> limits_in_queue;
  std::vector<PbsLimit> limits_of_waiting;
  std::vector<std::pair<Seconds, Seconds>> dedicated_time;
  std::vector<PbsReservation> reservations;
  std::optional<Seconds> decayed_at;  // usage, the last time; nothing: as the engine begins

  // Whether there may be top jobs (`should_backfill_with_job`).
  bool backfills() const {
    return depth != 0 || std::any_of(queues.begin(), queues.end(), [](const PbsQueue& queue) {
             return queue.depth.value_or(0) != 0;
           });
  }
  // Whether what starts may change though nothing begins or ends.
  bool goes_by_clock() const { return !dedicated_time.empty() || !reservations.empty(); }
  // Whether jobs change places in the queue while they wait.
  bool order_changes() const { return fair_share.on || (formula && formula->goes_by_shares()); }
  // Whether who comes last is last in the queue.
  bool is_in_order_of_submission() const {
    return !fair_share.on && !formula && sort_keys.empty() &&
           (queues.size() == 1 || !(by_queue || round_robin));
  }
};

}  // namespace foretime
