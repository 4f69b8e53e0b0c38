// What a job asks of hosts, and what is in use on them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planning/pbs/pbs_site.hpp"

namespace foretime {

// A select statement and its place: the same for all jobs that ask for the same.
struct PbsSelect {
  std::vector<PbsChunk> chunks;
  PbsPlace place = PbsPlace::kFree;
  bool exclusive = false;
  Resources total;  // of all chunks
  friend bool operator==(const PbsSelect&, const PbsSelect&) = default;

  void add(const PbsChunk& chunk) {
    chunks.push_back(chunk);
    total += {chunk.count * chunk.each.gpus, chunk.count * chunk.each.memory,
              chunk.count * chunk.each.cpus};
  }
};

// Whether all of one fits into the other; what is not asked for may be overdrawn.
inline bool fits_into(const Resources& asked, const Resources& room) {
  return (asked.cpus == 0 || asked.cpus <= room.cpus) &&
         (asked.memory == 0 || asked.memory <= room.memory) &&
         (asked.gpus == 0 || asked.gpus <= room.gpus);
}

// How often it fits.
inline std::int64_t times_into(const Resources& asked, const Resources& room) {
  std::int64_t times = kNever;
  const auto take = [&times](std::int64_t amount, std::int64_t has) {
    if (amount > 0) times = std::min(times, std::max<std::int64_t>(has, 0) / amount);
  };
  take(asked.cpus, room.cpus);
  take(asked.memory, room.memory);
  take(asked.gpus, room.gpus);
  return times;
}

class PbsHosts {
 public:
  struct Host {
    Resources free;
    std::int32_t jobs = 0;  // and reservations
    bool exclusive = false;
  };

  explicit PbsHosts(const PbsSite& site) : site_(&site), free_(site.pools.size()) {
    for (const PbsHost& host : site.hosts) {
      hosts_.push_back({host.room, 0, false});
      free_[static_cast<std::size_t>(host.pool)] += host.room;
    }
  }

  const Host& at(std::int32_t host) const { return hosts_[static_cast<std::size_t>(host)]; }
  // Of all hosts of a pool together.
  const Resources& free(std::int32_t pool) const { return free_[static_cast<std::size_t>(pool)]; }

  void take(const PbsPlacement& placement, bool exclusive) {
    for (const PbsShare& share : placement) {
      Host& host = change(share.host, -share.amount);
      ++host.jobs;
      if (exclusive) host.exclusive = true;
    }
  }
  void give_back(const PbsPlacement& placement, bool exclusive) {
    for (const PbsShare& share : placement) {
      Host& host = change(share.host, share.amount);
      --host.jobs;
      if (exclusive) host.exclusive = false;
    }
  }

 private:
  Host& change(std::int32_t number, const Resources& more) {
    const auto place = static_cast<std::size_t>(number);
    hosts_[place].free += more;
    free_[static_cast<std::size_t>(site_->hosts[place].pool)] += more;
    return hosts_[place];
  }

  const PbsSite* site_;
  std::vector<Host> hosts_;
  std::vector<Resources> free_;
};

}  // namespace foretime
