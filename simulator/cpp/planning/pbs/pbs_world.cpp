#include "planning/pbs/pbs_world.hpp"

#include <algorithm>

namespace foretime {
namespace {

// The next span of dedicated time, or the one that a time is in; null if there is none.
const std::pair<Seconds, Seconds>* next_span(const PbsSite& site, Seconds time) {
  for (const auto& span : site.dedicated_time) {
    if (span.second >= time) return &span;
  }
  return nullptr;
}

}  // namespace

bool is_dedicated(const PbsSite& site, Seconds time) {
  const auto* const span = next_span(site, time);
  return span != nullptr && span->first <= time && time < span->second;
}

// By its walltime where a reservation begins before that.
Seconds PbsWorld::end_of(const PbsRecord& job) const {
  if (job.planned() != job.hard) {
    for (const PbsComing& each : calendar_.coming) {
      if (each.job < 0 && is_to_begin(each) && each.start <= now_ + job.hard) {
        return now_ + job.hard;
      }
    }
  }
  return now_ + job.planned();
}

bool PbsWorld::begins_before(Seconds end) const {
  return std::any_of(
      calendar_.coming.begin(), calendar_.coming.end(),
      [this, end](const PbsComing& each) { return is_to_begin(each) && each.start < end; });
}

// By how much what is counted for a limit rises until the end, as top jobs begin.
std::int64_t PbsWorld::rise(JobIndex index, const PbsLimit& limit, Seconds end) const {
  const PbsCounted& mine = state_.record(index).counted;
  const bool any =
      std::any_of(calendar_.coming.begin(), calendar_.coming.end(), [&](const PbsComing& each) {
        return each.job >= 0 && is_to_begin(each) && each.start < end &&
               state_.record(each.job).counted.is_with(mine, limit);
      });
  if (!any) return 0;
  std::int64_t then = 0;
  std::int64_t most = 0;
  for (std::size_t i = next_; i < calendar_.events.size(); ++i) {
    const PbsEvent& event = calendar_.events[i];
    if (event.time >= end) break;
    if (event.job < 0 || event.job == index) continue;
    const PbsCounted& its = state_.record(event.job).counted;
    if (!its.is_with(mine, limit)) continue;
    const bool begins = event.kind == PbsEventKind::kRun;
    then += begins ? its.amount(limit) : -its.amount(limit);
    if (begins) most = std::max(most, then);
  }
  return most;
}

bool PbsWorld::within_limits(JobIndex index, const PbsCounts& counts, Seconds end) const {
  if (counts.empty()) return true;
  return counts.allow(state_.record(index).counted, [this, index, end](const PbsLimit& limit) {
    return rise(index, limit, end);
  });
}

// Judged by the soft walltime, whatever is reserved (`check_ded_time_boundary`).
bool PbsWorld::dedicated_time_allows(const PbsRecord& job) const {
  const PbsSite& site = *state_.site;
  if (site.dedicated_time.empty()) return !state_.queue_of(job).dedicated;
  const bool dedicated = is_dedicated(site, now_);
  if (dedicated != state_.queue_of(job).dedicated) return false;
  const auto* const span = next_span(site, now_);
  if (span == nullptr) return true;
  const auto [begins, ends] = *span;
  const Seconds end = now_ + job.planned();
  if (dedicated) return end <= ends;
  const bool ends_in_it = begins < end && end < ends;
  const bool is_over_all = now_ <= begins && end >= ends;
  return !ends_in_it && !is_over_all;
}

std::optional<PbsPlacement> PbsWorld::place(JobIndex index, const PbsHosts& hosts,
                                            const PbsCounts& counts) {
  const PbsRecord& job = state_.record(index);
  const Seconds end = end_of(job);
  if (!fits_into(state_.select_of(job).total, hosts.free(state_.queue_of(job).pool)) ||
      !within_limits(index, counts, end) || !dedicated_time_allows(job)) {
    return std::nullopt;
  }
  return room(job, hosts, end);
}

std::optional<PbsPlacement> PbsWorld::room(const PbsRecord& job, const PbsHosts& hosts,
                                           Seconds end) {
  const PbsSelect& select = state_.select_of(job);
  const auto& pool = state_.site->pools[static_cast<std::size_t>(state_.queue_of(job).pool)];
  const bool meets = begins_before(end);
  if (meets) {
    ++scratch_.search;
    for (const PbsComing& each : calendar_.coming) {
      if (!is_to_begin(each) || each.start >= end) continue;
      for (const PbsShare& share : each.placement) {
        scratch_.met[static_cast<std::size_t>(share.host)] = scratch_.search;
      }
    }
  }
  bool found = false;
  if (select.place == PbsPlace::kPack) {
    for (std::size_t i = 0; i < pool.size() && !found; ++i) {
      found = put(select, {pool[i]}, hosts, end, meets);
    }
  } else {
    found = put(select, pool, hosts, end, meets);
  }
  if (!found) return std::nullopt;
  PbsPlacement placement;
  placement.reserve(scratch_.given.size());
  for (const std::int32_t host : scratch_.given) {
    placement.push_back({host, scratch_.mine[static_cast<std::size_t>(host)]});
  }
  return placement;
}

// Chunk by chunk, each on the first host that has room for it at every moment.
bool PbsWorld::put(const PbsSelect& select, const std::vector<std::int32_t>& pool,
                   const PbsHosts& hosts, Seconds end, bool meets) {
  for (const std::int32_t host : scratch_.given) {
    scratch_.mine[static_cast<std::size_t>(host)] = {};
  }
  scratch_.given.clear();
  const bool scatters = select.place == PbsPlace::kScatter;
  for (const PbsChunk& chunk : select.chunks) {
    std::int64_t left = chunk.count;
    for (std::size_t i = 0; i < pool.size() && left > 0; ++i) {
      Resources& mine = scratch_.mine[static_cast<std::size_t>(pool[i])];
      const bool is_new = mine == Resources{};
      if (scatters && !is_new) continue;
      std::int64_t times = times_on(pool[i], select, chunk.each, hosts, end, meets);
      times = std::min(times, scatters ? std::min<std::int64_t>(left, 1) : left);
      if (times <= 0) continue;
      left -= times;
      if (is_new) scratch_.given.push_back(pool[i]);
      mine += {times * chunk.each.gpus, times * chunk.each.memory, times * chunk.each.cpus};
    }
    if (left > 0) return false;
  }
  return true;
}

// How many chunks a host has room for besides what the job has of it.
std::int64_t PbsWorld::times_on(std::int32_t number, const PbsSelect& select,
                                const Resources& chunk, const PbsHosts& hosts, Seconds end,
                                bool meets) {
  const PbsHosts::Host& host = hosts.at(number);
  if (host.exclusive || (select.exclusive && host.jobs > 0)) return 0;
  const auto place = static_cast<std::size_t>(number);
  Resources free = host.free;
  free += -scratch_.mine[place];
  std::int64_t times = times_into(chunk, free);
  if (times == 0 || !meets || scratch_.met[place] != scratch_.search) return times;
  note_visits(number, end);
  for (const PbsScratch::Visit& visit : scratch_.visits) {
    if (visit.exclusive || select.exclusive) return 0;
    free += visit.begins ? -visit.amount : visit.amount;
    if (visit.begins) times = std::min(times, times_into(chunk, free));
  }
  return times;
}

// What begins and ends on a host before the end, in order.
void PbsWorld::note_visits(std::int32_t host, Seconds end) {
  auto& visits = scratch_.visits;
  visits.clear();
  const auto note = [&](Seconds time, bool begins, const Resources& amount, bool exclusive) {
    if (performed_ < time && time < end) visits.push_back({time, begins, exclusive, amount});
  };
  const auto note_end = [&](Seconds time, const PbsPlacement& placement, bool exclusive) {
    for (const PbsShare& share : placement) {
      if (share.host == host) note(time, false, share.amount, exclusive);
    }
  };
  for (const JobIndex index : state_.running_on[static_cast<std::size_t>(host)]) {
    const PbsRecord& job = state_.record(index);
    note_end(job.planned_end, job.placement, job.exclusive);
  }
  for (const std::int32_t number : state_.reserved) {
    const PbsReservation& reservation = state_.site->reservations[static_cast<std::size_t>(number)];
    note_end(reservation.end, reservation.hosts, false);
  }
  for (const PbsCalendar::Visit& visit : calendar_.visits[static_cast<std::size_t>(host)]) {
    const PbsComing& who = calendar_.coming[visit.coming];
    note(who.start, true, visit.amount, who.exclusive);
    note(who.end, false, visit.amount, who.exclusive);
  }
  std::sort(visits.begin(), visits.end(), [](const auto& a, const auto& b) {
    return a.time != b.time ? a.time < b.time : !a.begins && b.begins;
  });
}

const PbsComing& PbsWorld::top_job(JobIndex index) const {
  return *std::find_if(calendar_.coming.begin(), calendar_.coming.end(),
                       [index](const PbsComing& each) { return each.job == index; });
}

void PbsWorld::perform(const PbsEvent& event, PbsHosts& hosts, PbsCounts& counts) {
  now_ = event.time;
  if (event.kind != PbsEventKind::kRun && event.kind != PbsEventKind::kEnd) return;
  const bool begins = event.kind == PbsEventKind::kRun;
  const PbsPlacement* placement = nullptr;
  bool exclusive = false;
  if (event.job < 0) {
    placement = &state_.site->reservations[static_cast<std::size_t>(event.reservation)].hosts;
  } else if (const PbsRecord& job = state_.record(event.job); job.runs) {
    placement = &job.placement;
    exclusive = job.exclusive;
  } else {
    const PbsComing& top = top_job(event.job);
    placement = &top.placement;
    exclusive = top.exclusive;
  }
  if (begins) {
    hosts.take(*placement, exclusive);
  } else {
    hosts.give_back(*placement, exclusive);
  }
  if (event.job >= 0) counts.add(state_.record(event.job).counted, begins ? 1 : -1);
}

std::optional<std::pair<Seconds, PbsPlacement>> PbsWorld::planned_start(JobIndex index,
                                                                        PbsHosts& hosts,
                                                                        PbsCounts& counts) {
  const std::vector<PbsEvent>& events = calendar_.events;
  while (true) {
    if (auto placement = place(index, hosts, counts)) return std::pair{now_, std::move(*placement)};
    // All that happens until the end of the span that the next event is in, until something ends.
    bool ended = false;
    while (!ended) {
      if (next_ == events.size()) return std::nullopt;
      const Seconds span = std::max<Seconds>(state_.site->fuzzy, 1);
      const Seconds since = events[next_].time + state_.site->epoch + span;
      const Seconds last = since - ((since % span) + span) % span - state_.site->epoch;
      for (; next_ < events.size() && events[next_].time <= last; ++next_) {
        const PbsEvent& event = events[next_];
        perform(event, hosts, counts);
        ended |= event.kind == PbsEventKind::kEnd || event.kind == PbsEventKind::kDedicatedEnd;
      }
      performed_ = last;
    }
  }
}

}  // namespace foretime
