// Jobs from their submission until they start: times, equivalence classes, groups of the queue.
#include <algorithm>

#include "planning/pbs/pbs_planner.hpp"

namespace foretime {

// A scheduled time below the request is its soft_walltime.
void PbsPlanner::take_times(JobIndex index) {
  const Job& of = job(index);
  PbsRecord& record = state_.record(index);
  const Seconds scheduled = of.state == State::kRunning ? of.drain_time : of.backfill_time;
  record.hard = of.requested;
  record.soft = scheduled < of.requested ? scheduled : state_.queue_of(record).default_soft;
  if (record.soft >= record.hard) record.soft = 0;
  state_.any_soft |= record.soft > 0;
  record.priority = of.priority;
  record.counted.list[static_cast<std::size_t>(PbsName::kWalltime)] = record.hard;
  record.counted.list[static_cast<std::size_t>(PbsName::kSoftWalltime)] = record.soft;
  record.counted.user = record.facts.user;
  record.counted.project = record.facts.project;
}

std::int32_t PbsPlanner::alike_of(const PbsRecord& job) {
  const PbsQueue& queue = state_.queue_of(job);
  const PbsRequest& request = state_.requests[static_cast<std::size_t>(job.request)];
  const std::vector<std::int64_t> same{queue.apart ? job.counted.queue : -1,
                                       queue.apart_by_user ? job.facts.user : -2,
                                       queue.apart_by_project ? job.facts.project : -2,
                                       request.select,
                                       job.hard,
                                       queue.apart_by_soft ? job.soft : -1};
  const auto [found, is_new] =
      state_.alike_number.try_emplace(same, static_cast<std::int32_t>(state_.refused_at.size()));
  if (is_new) state_.refused_at.push_back(0);
  return found->second;
}

void PbsPlanner::enter_group(JobIndex index) {
  const PbsSite& site = *state_.site;
  PbsRecord& record = state_.record(index);
  record.alike = alike_of(record);
  const auto is_key = [&site](std::int32_t key) {
    return std::any_of(site.sort_keys.begin(), site.sort_keys.end(),
                       [key](const auto& each) { return each.first == key; });
  };
  const auto uses = [&site](PbsName name) { return site.formula && site.formula->uses(name); };
  const bool by_priority = is_key(kPbsByPriority) || uses(PbsName::kJobPriority);
  const bool by_soft =
      is_key(static_cast<std::int32_t>(PbsName::kSoftWalltime)) || uses(PbsName::kSoftWalltime);
  const bool by_share =
      site.fair_share.on || is_key(kPbsByShare) || (site.formula && site.formula->goes_by_shares());
  const std::vector<std::int64_t> same{
      record.alike, record.counted.queue, by_share ? record.entity : -1,
      by_priority ? record.priority : 0, by_soft ? record.soft : -1};
  const auto [found, is_new] =
      state_.group_number.try_emplace(same, static_cast<std::int32_t>(state_.groups.size()));
  if (is_new) {
    PbsGroup made;
    made.alike = record.alike;
    made.queue = record.counted.queue;
    made.select = state_.requests[static_cast<std::size_t>(record.request)].select;
    made.entity = record.entity;
    for (std::size_t i = 0; i < kPbsListed; ++i) {
      made.values[i] = static_cast<double>(record.counted.list[i]);
    }
    made.values[static_cast<std::size_t>(PbsName::kQueuePriority)] =
        static_cast<double>(state_.queue_of(record).priority);
    made.values[static_cast<std::size_t>(PbsName::kJobPriority)] =
        static_cast<double>(record.priority);
    if (site.formula) made.value = site.formula->value(made.values);
    state_.groups.push_back(std::move(made));
  }
  record.group = found->second;
  PbsGroup& group = state_.groups[static_cast<std::size_t>(record.group)];
  if (group.jobs.empty()) {
    group.place = state_.filled.size();
    state_.filled.push_back(record.group);
  }
  const auto place =
      std::upper_bound(group.jobs.begin(), group.jobs.end(), index,
                       [this](JobIndex a, JobIndex b) { return job(a).rank < job(b).rank; });
  group.jobs.insert(place, index);
}

void PbsPlanner::leave_group(JobIndex index) {
  PbsRecord& record = state_.record(index);
  PbsGroup& group = state_.groups[static_cast<std::size_t>(record.group)];
  group.jobs.erase(std::find(group.jobs.begin(), group.jobs.end(), index));
  if (group.jobs.empty()) {
    const std::int32_t last = state_.filled.back();
    state_.filled[group.place] = last;
    state_.groups[static_cast<std::size_t>(last)].place = group.place;
    state_.filled.pop_back();
  }
  record.group = -1;
}

// Submissions

// Limits on what is queued, and the range of what a job may ask for.
bool PbsPlanner::is_refused(const PbsRecord& job) const {
  const auto none = [](const PbsLimit&) { return std::int64_t{0}; };
  const PbsQueue& queue = state_.queue_of(job);
  if (!queue.enabled || !state_.in_queue.allow(job.counted, none) ||
      !state_.of_waiting.allow(job.counted, none)) {
    return true;
  }
  for (std::size_t i = 0; i < kPbsListed; ++i) {
    const std::int64_t amount = job.counted.list[i];
    if (amount > queue.most[i] || (amount > 0 && amount < queue.least[i])) return true;
  }
  return false;
}

void PbsPlanner::find_entity(PbsRecord& job) {
  const PbsFairShareSettings& shares = state_.site->fair_share;
  std::int32_t code = job.counted.queue;
  if (shares.entity == PbsEntity::kUser) code = job.facts.user;
  if (shares.entity == PbsEntity::kProject) code = job.facts.project;
  job.entity = state_.fair_share.entity(code);
}

void PbsPlanner::take_up(JobIndex index, bool is_new) {
  take_times(index);
  PbsRecord& record = state_.record(index);
  if (is_new && !record.accepted && is_refused(record)) {
    record.refused = true;
    return;
  }
  find_entity(record);
  enter_group(index);
  ++state_.waiting;
  state_.in_queue.add(record.counted, 1);
  state_.of_waiting.add(record.counted, 1);
}

void PbsPlanner::cancelled(JobIndex index) {
  if (std::erase(coming_, index) > 0) return;
  const PbsRecord& record = state_.record(index);
  if (record.refused) return;
  top_jobs_->plan_all();
  leave_group(index);
  --state_.waiting;
  state_.in_queue.add(record.counted, -1);
  state_.of_waiting.add(record.counted, -1);
  ++state_.freed;
}

void PbsPlanner::changed_waiting(JobIndex index) {
  const PbsRecord& record = state_.record(index);
  if (record.group < 0) return;  // it is taken up in the pass that follows, or was refused
  top_jobs_->plan_all();
  leave_group(index);
  state_.in_queue.add(record.counted, -1);
  state_.of_waiting.add(record.counted, -1);
  take_times(index);
  state_.in_queue.add(record.counted, 1);
  state_.of_waiting.add(record.counted, 1);
  enter_group(index);
  ++state_.freed;
}

}  // namespace foretime
