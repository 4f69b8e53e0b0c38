// Jobs that run: when they are planned to end, what they have used, how they end.
#include <algorithm>

#include "planning/pbs/pbs_planner.hpp"

namespace foretime {

// Past its soft_walltime it is extended by whole soft_walltimes, up to its walltime
// (`set_job_times`). Past its walltime it is expected to be killed within a second.
Seconds PbsPlanner::end_of(const PbsRecord& job, Seconds now) {
  if (job.exiting) return now + 1;
  const Seconds end = job.start + job.planned();
  if (end >= now) return end;
  if (job.soft == 0) return now + 1;
  return job.start + std::min(job.soft * (1 + (now - job.start) / job.soft), job.hard);
}

void PbsPlanner::set_end(JobIndex index, Seconds end) {
  PbsRecord& record = state_.record(index);
  auto& ends = state_.ends;
  const std::pair before{record.planned_end, index};
  const auto place = std::lower_bound(ends.begin(), ends.end(), before);
  if (place != ends.end() && *place == before) ends.erase(place);
  record.planned_end = end;
  if (end == kNever) return;
  const std::pair entry{end, index};
  ends.insert(std::lower_bound(ends.begin(), ends.end(), entry), entry);
}

void PbsPlanner::refresh_ends(Seconds now) {
  std::vector<JobIndex> over;
  for (const auto& [end, index] : state_.ends) {
    if (end > now) break;
    over.push_back(index);
  }
  for (const JobIndex index : over) {
    const Seconds end = end_of(state_.record(index), now);
    // Whoever waits for it is planned later.
    if (state_.site->strict && end != state_.record(index).planned_end) ++state_.freed;
    set_end(index, end);
  }
}

void PbsPlanner::add_running(JobIndex index) {
  PbsRecord& record = state_.record(index);
  record.runs = true;
  record.start = job(index).start;
  take_times(index);
  record.planned_end = kNever;
  set_end(index, end_of(record, now_));
  state_.running.push_back(index);
  state_.hosts.take(record.placement, record.exclusive);
  for (const PbsShare& share : record.placement) {
    state_.running_on[static_cast<std::size_t>(share.host)].push_back(index);
  }
  state_.counts.add(record.counted, 1);
}

void PbsPlanner::started(JobIndex index, Seconds /*now*/) {
  const PbsRecord& record = state_.record(index);
  leave_group(index);
  --state_.waiting;
  state_.of_waiting.add(record.counted, -1);
  state_.in_queue.add(record.counted, -1);
  add_running(index);
  state_.in_queue.add(record.counted, 1);
  if (!records_) return;
  for (const NodeRow& row : rows_of(index)) {
    rows_.insert(rows_.end(),
                 {index, row.node, row.of_each.cpus, row.of_each.memory, row.of_each.gpus});
  }
}

// Where nothing is told of its place, it has the first that is free.
void PbsPlanner::runs_already(JobIndex index, Seconds now) {
  PbsRecord& record = make_record(index);
  if (record.runs) return;
  refresh_reservations(now);
  if (record.request >= 0 && record.placement.empty()) {
    auto found = PbsWorld(state_, {}, scratch_, now).room(record, state_.hosts, now);
    if (found) record.placement = std::move(*found);
  }
  take_times(index);
  find_entity(record);
  add_running(index);
  state_.in_queue.add(record.counted, 1);
}

void PbsPlanner::changed_running(JobIndex index, Seconds now) {
  top_jobs_->plan_all();
  const PbsRecord& record = state_.record(index);
  const std::pair before{record.hard, record.soft};
  const PbsCounted counted = record.counted;
  take_times(index);
  if (before == std::pair{record.hard, record.soft}) return;
  state_.counts.add(counted, -1);
  state_.counts.add(record.counted, 1);
  set_end(index, end_of(record, now));
  ++state_.freed;
}

void PbsPlanner::finished(JobIndex index, Seconds now) {
  ended_.push_back(index);
  ended_at_ = now;
}

// The server ends the jobs of a second one by one: those that follow still have their hosts, but
// are no longer counted.
void PbsPlanner::end_first(Seconds now) {
  const auto first = std::min_element(ended_.begin(), ended_.end());
  const JobIndex index = *first;
  ended_.erase(first);
  const auto no_longer_count = [this](JobIndex each) {
    PbsRecord& record = state_.record(each);
    if (!record.exiting) state_.counts.add(record.counted, -1);
    record.exiting = true;
  };
  no_longer_count(index);
  for (const JobIndex each : ended_) {
    no_longer_count(each);
    set_end(each, now + 1);
  }
  PbsRecord& record = state_.record(index);
  set_end(index, kNever);
  record.runs = false;
  state_.running.erase(std::find(state_.running.begin(), state_.running.end(), index));
  state_.hosts.give_back(record.placement, record.exclusive);
  for (const PbsShare& share : record.placement) {
    std::erase(state_.running_on[static_cast<std::size_t>(share.host)], index);
  }
  state_.in_queue.add(record.counted, -1);
  ++state_.freed;
}

void PbsPlanner::refresh_reservations(Seconds now) {
  const auto& reservations = state_.site->reservations;
  for (std::size_t i = 0; i < reservations.size(); ++i) {
    const auto number = static_cast<std::int32_t>(i);
    const bool holds = reservations[i].start <= now && now < reservations[i].end;
    const auto held = std::find(state_.reserved.begin(), state_.reserved.end(), number);
    if (holds == (held != state_.reserved.end())) continue;
    if (holds) {
      state_.hosts.take(reservations[i].hosts, false);
      state_.reserved.push_back(number);
    } else {
      state_.hosts.give_back(reservations[i].hosts, false);
      state_.reserved.erase(held);
    }
  }
}

double PbsPlanner::used_by(const PbsRecord& job, Seconds known) const {
  PbsValues values{};
  for (std::size_t i = 0; i < kPbsListed; ++i) values[i] = static_cast<double>(job.counted.list[i]);
  values[static_cast<std::size_t>(PbsName::kWalltime)] = static_cast<double>(known);
  // CPU time is not known of a log: as if all CPUs were busy.
  values[static_cast<std::size_t>(PbsName::kCput)] =
      static_cast<double>(known * job.counted.list[0]);
  return state_.site->fair_share.usage.value(values);
}

// Running jobs, with what they have used since the last cycle.
void PbsPlanner::charge(Seconds now) {
  for (const JobIndex index : state_.running) {
    PbsRecord& record = state_.record(index);
    if (record.exiting) continue;
    const Seconds known = std::max<Seconds>(0, now - record.start - state_.site->usage_lag);
    const double used = used_by(record, known);
    if (record.seen) {
      state_.fair_share.charge(record.entity, std::max(used - record.used, 0.0));
    }
    record.seen = true;
    record.used = used;
  }
}

void PbsPlanner::describe_running(JobIndex index, PbsJobFacts facts, bool exclusive) {
  PbsRecord& record = make_record(index);
  record.facts = facts;
  record.exclusive = exclusive;
}

void PbsPlanner::describe_accepted(JobIndex index, PbsJobFacts facts) {
  PbsRecord& record = make_record(index);
  record.facts = facts;
  record.accepted = true;
}

void PbsPlanner::is_charged(JobIndex index, Seconds known) {
  PbsRecord& record = state_.record(index);
  record.seen = true;
  record.used = used_by(record, known);
}

PbsNotes PbsPlanner::notes_of(const std::vector<JobIndex>& running,
                              const std::vector<JobIndex>& pending) const {
  PbsNotes notes{{}, {}, {}, state_.fair_share, state_.last_cycle};
  for (const JobIndex index : running) {
    const PbsRecord& job = state_.record(index);
    notes.facts.push_back(job.facts);
    notes.exclusive.push_back(job.exclusive);
    notes.seen.emplace_back(job.seen, job.used);
  }
  for (const JobIndex index : pending) notes.facts.push_back(state_.record(index).facts);
  return notes;
}

void PbsPlanner::begin_with(const PbsNotes& notes) {
  state_.fair_share = notes.fair_share;
  state_.last_cycle = notes.last_cycle;
  for (std::size_t i = 0; i < notes.seen.size(); ++i) {
    PbsRecord& job = make_record(static_cast<JobIndex>(i));
    job.facts = notes.facts[i];
    job.exclusive = notes.exclusive[i];
    job.seen = notes.seen[i].first;
    job.used = notes.seen[i].second;
  }
}

}  // namespace foretime
