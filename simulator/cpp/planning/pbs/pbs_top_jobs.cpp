#include "planning/pbs/pbs_top_jobs.hpp"

#include <algorithm>

namespace foretime {

PbsTopJobs::PbsTopJobs(PbsState& state, PbsScratch& scratch)
    : state_(state),
      site_(*state.site),
      scratch_(scratch),
      count_(site_.queues.size() + 1, 0),
      empty_hosts_(site_),
      empty_counts_(site_.limits),
      trial_hosts_(site_),
      trial_counts_(site_.limits) {}

void PbsTopJobs::begin(Seconds now) {
  now_ = now;
  calendar_.clear();
  unplanned_.clear();
  next_ = 0;
  planned_.clear();
  std::fill(count_.begin(), count_.end(), 0);
  last_ = -1;
  may_move_ = false;
  // What is set aside frees hosts, too, and may let a job run that later could not.
  waits_ = true;
  for (const PbsReservation& reservation : site_.reservations) {
    if (reservation.end <= now) continue;
    waits_ = false;
    if (reservation.start <= now) continue;
    calendar_.expect({reservation.start, reservation.end, -1, reservation.hosts, false},
                     site_.hosts.size());
  }
  for (const auto& [begins, ends] : site_.dedicated_time) waits_ &= ends <= now;
  if (!calendar_.coming.empty()) complete_calendar();
}

// Puts in all that is known.
void PbsTopJobs::complete_calendar() {
  calendar_.complete = true;
  calendar_.events.reserve(state_.ends.size() + 16);
  for (const auto& [end, index] : state_.ends) {
    calendar_.events.push_back({end, PbsEventKind::kEnd, index, -1});
  }
  for (std::size_t i = 0; i < site_.reservations.size(); ++i) {
    const PbsReservation& reservation = site_.reservations[i];
    const auto number = static_cast<std::int32_t>(i);
    if (reservation.end <= now_) continue;
    if (reservation.start > now_) {
      calendar_.add({reservation.start, PbsEventKind::kRun, -1, number});
    }
    calendar_.add({reservation.end, PbsEventKind::kEnd, -1, number});
  }
  for (const auto& [begins, ends] : site_.dedicated_time) {
    if (ends <= now_) continue;
    calendar_.add({begins, PbsEventKind::kDedicatedStart, -1, -1});
    calendar_.add({ends, PbsEventKind::kDedicatedEnd, -1, -1});
  }
}

bool PbsTopJobs::may_add(std::int32_t queue) const {
  if (!site_.strict || !site_.backfills()) return false;
  const auto number = static_cast<std::size_t>(queue);
  if (const auto own = site_.queues[number].depth) return count_[number] < *own;
  return count_.back() < site_.depth;
}

bool PbsTopJobs::add(JobIndex index, bool judged) {
  if (waits_ && can_ever_run(index)) {
    unplanned_.push_back({index, earliest(index)});
  } else {
    plan_all();
    if (!plan(index)) return false;
  }
  const PbsRecord& job = state_.record(index);
  const auto number = static_cast<std::size_t>(job.counted.queue);
  ++count_[state_.queue_of(job).depth ? number : site_.queues.size()];
  last_ = index;
  may_move_ |= !judged && state_.any_soft;
  return true;
}

// Whether it could if all else had ended. Who could not may yet, as a job that has ended but still
// has its hosts is taken from the counts twice.
bool PbsTopJobs::can_ever_run(JobIndex index) {
  PbsGroup& group = state_.groups[static_cast<std::size_t>(state_.record(index).group)];
  if (!group.can_ever_run) {
    const PbsCalendar nothing;
    PbsWorld world(state_, nothing, scratch_, now_);
    group.can_ever_run = world.place(index, empty_hosts_, empty_counts_).has_value();
  }
  return *group.can_ever_run;
}

// Not before as much has been given back as it asks for, wherever that is.
Seconds PbsTopJobs::earliest(JobIndex index) const {
  const PbsRecord& job = state_.record(index);
  const Resources& asked = state_.select_of(job).total;
  const std::int32_t pool = state_.queue_of(job).pool;
  Resources free = state_.hosts.free(pool);
  if (fits_into(asked, free)) return now_;
  const bool one_pool = site_.pools.size() == 1;
  for (const auto& [end, other] : state_.ends) {
    const PbsRecord& running = state_.record(other);
    if (one_pool) {
      const PbsList& has = running.counted.list;
      free += {has[2], has[1], has[0]};
    } else {
      for (const PbsShare& share : running.placement) {
        if (site_.hosts[static_cast<std::size_t>(share.host)].pool == pool) free += share.amount;
      }
    }
    if (fits_into(asked, free)) return end;
  }
  return kNever;
}

bool PbsTopJobs::delays_unplanned(JobIndex index) const {
  const Seconds end = now_ + state_.record(index).planned();
  return std::any_of(unplanned_.begin() + static_cast<std::ptrdiff_t>(next_), unplanned_.end(),
                     [end](const Unplanned& each) { return each.not_before < end; });
}

// More plans never make room. Who has none with some of them needs no others.
std::optional<PbsPlacement> PbsTopJobs::place(JobIndex index) {
  while (true) {
    PbsWorld world(state_, calendar_, scratch_, now_);
    auto placement = world.place(index, state_.hosts, state_.counts);
    if (!placement || !delays_unplanned(index)) return placement;
    plan_next();
  }
}

void PbsTopJobs::started(JobIndex index) {
  if (!calendar_.complete) return;
  calendar_.add({state_.record(index).planned_end, PbsEventKind::kEnd, index, -1});
}

bool PbsTopJobs::plan_next() { return plan(unplanned_[next_++].job); }

void PbsTopJobs::plan_all() {
  while (!is_all_planned()) plan_next();
}

// `add_job_to_calendar`; no start is found for who could never run.
bool PbsTopJobs::plan(JobIndex index) {
  if (!calendar_.complete) complete_calendar();
  trial_hosts_ = state_.hosts;
  trial_counts_ = state_.counts;
  PbsWorld world(state_, calendar_, scratch_, now_);
  auto found = world.planned_start(index, trial_hosts_, trial_counts_);
  if (!found) return false;
  const PbsRecord& job = state_.record(index);
  planned_.emplace_back(index, found->first);
  const Seconds end = found->first + job.planned();
  calendar_.add({found->first, PbsEventKind::kRun, index, -1});
  calendar_.add({end, PbsEventKind::kEnd, index, -1});
  calendar_.expect({found->first, end, index, std::move(found->second), job.exclusive},
                   site_.hosts.size());
  return true;
}

bool PbsTopJobs::has(JobIndex index) const {
  const auto is_it = [index](const auto& each) { return each.first == index; };
  return std::any_of(planned_.begin(), planned_.end(), is_it) ||
         std::any_of(unplanned_.begin() + static_cast<std::ptrdiff_t>(next_), unplanned_.end(),
                     [index](const Unplanned& each) { return each.job == index; });
}

Seconds PbsTopJobs::planned_start(JobIndex index) {
  if (!has(index)) return kNever;
  plan_all();
  const auto found = std::find_if(planned_.begin(), planned_.end(),
                                  [index](const auto& each) { return each.first == index; });
  return found == planned_.end() ? kNever : found->second;
}

}  // namespace foretime
