// The site at one moment of a cycle, or of a simulation in it: whether and where a job can start.
#pragma once

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "planning/pbs/pbs_state.hpp"

namespace foretime {

enum class PbsEventKind : std::uint8_t { kEnd, kRun, kDedicatedStart, kDedicatedEnd };

// What is known of the future. At one second ends are before all else.
struct PbsEvent {
  Seconds time = 0;
  PbsEventKind kind = PbsEventKind::kEnd;
  JobIndex job = -1;  // none: a reservation, or dedicated time
  std::int32_t reservation = -1;
  friend bool operator<(const PbsEvent& a, const PbsEvent& b) {
    if (a.time != b.time) return a.time < b.time;
    return a.kind == PbsEventKind::kEnd && b.kind != PbsEventKind::kEnd;
  }
};

// A top job or a reservation that is still to begin.
struct PbsComing {
  Seconds start = 0;
  Seconds end = 0;
  JobIndex job = -1;
  PbsPlacement placement;
  bool exclusive = false;
};

// Events in their order, and who is to begin.
struct PbsCalendar {
  // What somebody who is to begin has of a host.
  struct Visit {
    std::size_t coming = 0;
    Resources amount;
  };
  std::vector<PbsEvent> events;
  std::vector<PbsComing> coming;
  std::vector<std::vector<Visit>> visits;  // by host, once there is any
  bool complete = false;                   // whether ends of running jobs are among the events

  void clear() {
    for (const PbsComing& each : coming) {
      for (const PbsShare& share : each.placement) {
        visits[static_cast<std::size_t>(share.host)].clear();
      }
    }
    events.clear();
    coming.clear();
    complete = false;
  }
  void expect(PbsComing who, std::size_t hosts) {
    visits.resize(hosts);
    for (const PbsShare& share : who.placement) {
      visits[static_cast<std::size_t>(share.host)].push_back({coming.size(), share.amount});
    }
    coming.push_back(std::move(who));
  }
  void add(const PbsEvent& event) {
    const auto place = event.kind == PbsEventKind::kEnd
                           ? std::lower_bound(events.begin(), events.end(), event)
                           : std::upper_bound(events.begin(), events.end(), event);
    events.insert(place, event);
  }
};

// Room that is used again by each search.
struct PbsScratch {
  struct Visit {
    Seconds time = 0;
    bool begins = false;
    bool exclusive = false;
    Resources amount;
  };
  std::vector<std::int64_t> met;    // by host: the last search that found a beginning on it
  std::vector<Resources> mine;      // by host: what the job has been given
  std::vector<std::int32_t> given;  // hosts where that is anything
  std::vector<Visit> visits;
  std::int64_t search = 0;
};

class PbsWorld {
 public:
  PbsWorld(const PbsState& state, const PbsCalendar& calendar, PbsScratch& scratch, Seconds now)
      : state_(state), calendar_(calendar), scratch_(scratch), now_(now) {}

  // Where a job can start now (`is_ok_to_run`).
  std::optional<PbsPlacement> place(JobIndex index, const PbsHosts& hosts, const PbsCounts& counts);
  // Where there is room for it until an end.
  std::optional<PbsPlacement> room(const PbsRecord& job, const PbsHosts& hosts, Seconds end);
  // When and where at the earliest, by what the calendar knows (`calc_run_time`). What is given is
  // spent.
  std::optional<std::pair<Seconds, PbsPlacement>> planned_start(JobIndex index, PbsHosts& hosts,
                                                                PbsCounts& counts);

 private:
  Seconds end_of(const PbsRecord& job) const;
  bool is_to_begin(const PbsComing& coming) const { return coming.start > performed_; }
  bool begins_before(Seconds end) const;
  bool within_limits(JobIndex index, const PbsCounts& counts, Seconds end) const;
  std::int64_t rise(JobIndex index, const PbsLimit& limit, Seconds end) const;
  bool dedicated_time_allows(const PbsRecord& job) const;
  bool put(const PbsSelect& select, const std::vector<std::int32_t>& pool, const PbsHosts& hosts,
           Seconds end, bool meets);
  std::int64_t times_on(std::int32_t number, const PbsSelect& select, const Resources& chunk,
                        const PbsHosts& hosts, Seconds end, bool meets);
  void note_visits(std::int32_t host, Seconds end);
  void perform(const PbsEvent& event, PbsHosts& hosts, PbsCounts& counts);
  const PbsComing& top_job(JobIndex index) const;

  const PbsState& state_;
  const PbsCalendar& calendar_;
  PbsScratch& scratch_;
  Seconds now_;
  std::size_t next_ = 0;  // event
  Seconds performed_ = std::numeric_limits<Seconds>::min();
};

bool is_dedicated(const PbsSite& site, Seconds time);

}  // namespace foretime
