#include "core/availability.hpp"

#include <algorithm>

#include "core/correction.hpp"

namespace foretime {

Availability::Availability(Processors machine, const Policy& policy, std::vector<Job>& jobs)
    : jobs_(jobs),
      correction_(policy.correction),
      correction_steps_(policy.correction_steps),
      keeps_hard_ends_(policy.guard.has_value()),
      free_(machine) {}

Availability::Release Availability::expected_release(JobIndex index) const {
  return {job(index).expected_end, index, job(index).processors};
}

Availability::Release Availability::hard_release(JobIndex index) const {
  return {job(index).hard_end(), index, job(index).processors};
}

void Availability::start(JobIndex index) {
  Job& started = job(index);
  started.expected_end = started.start + started.drain_time;
  started.belief = Belief::kEstimate;
  free_ -= started.processors;
  expected_.insert(expected_release(index));
  if (keeps_hard_ends_) hard_ends_.insert(hard_release(index));
}

void Availability::finish(JobIndex index) {
  free_ += job(index).processors;
  forget(index);
  if (keeps_hard_ends_) hard_ends_.erase(hard_release(index));
}

void Availability::resume(JobIndex index, Seconds now) {
  Job& resumed = job(index);
  resumed.expected_end = resumed.start + resumed.drain_time;
  resumed.belief = Belief::kEstimate;
  resumed.corrections = 0;  // a new plan is corrected from its beginning
  while (resumed.expected_end <= now && resumed.expected_end < resumed.hard_end()) {
    correct(index, now);
  }
  // The clock has moved on since the last pass: an end in the past would turn it back.
  if (resumed.belief == Belief::kOverstaying && expected_end(index) < now) reestimate(now);
  free_ -= resumed.processors;
  believe(index, now);
  if (keeps_hard_ends_) hard_ends_.insert(hard_release(index));
}

void Availability::extend(JobIndex index, Seconds more) {
  forget(index);
  Job& extended = job(index);
  extended.extended += more;
  extended.expected_end = extended.hard_end();
  extended.belief = Belief::kEstimate;
  expected_.insert(expected_release(index));
}

// Files a running job by its expected end, as the correction left it.
void Availability::believe(JobIndex index, Seconds now) {
  Job& running = job(index);
  if (running.expected_end <= now) {
    running.belief = Belief::kOverdue;
    overdue_.push_back(index);
    overdue_processors_ += running.processors;
  } else if (running.belief == Belief::kOverstaying) {
    overstaying_.insert(hard_release(index));
  } else {
    expected_.insert(expected_release(index));
  }
}

void Availability::forget(JobIndex index) {
  switch (job(index).belief) {
    case Belief::kEstimate:
      expected_.erase(expected_release(index));
      break;
    case Belief::kOverstaying:
      overstaying_.erase(hard_release(index));
      break;
    case Belief::kOverdue:
      std::erase(overdue_, index);
      overdue_processors_ -= job(index).processors;
      break;
  }
}

// At its requested time a job has no better estimate left, and becomes overdue.
void Availability::correct(JobIndex index, Seconds now) {
  Job& running = job(index);
  if (running.hard_end() <= now) {
    running.expected_end = running.hard_end();
    return;
  }
  const bool in_steps = !correction_steps_ || running.corrections < *correction_steps_;
  running.expected_end =
      corrected_end(in_steps ? correction_ : Correction::kRequested, running, now);
  ++running.corrections;
  if (correction_ == Correction::kSlurm) running.belief = Belief::kOverstaying;
}

Seconds Availability::expected_end(JobIndex index) const {
  const Job& running = job(index);
  return running.belief == Belief::kOverstaying
             ? slurm_expected_end(running.hard_end(), estimated_at_)
             : running.expected_end;
}

std::vector<JobIndex> Availability::running() const {
  std::vector<JobIndex> jobs = overdue_;
  for (const Releases* list : {&expected_, &overstaying_}) {
    for (const auto& block : list->blocks()) {
      for (const Release& release : block) jobs.push_back(release.job);
    }
  }
  return jobs;
}

Seconds Availability::next_expiry() const {
  const Seconds next = expected_.empty() ? kNever : expected_.front().time;
  if (overstaying_.empty()) return next;
  return std::min(next, slurm_expected_end(overstaying_.front().time, estimated_at_));
}

const std::vector<JobIndex>& Availability::correct_all(Seconds now) {
  expired_.clear();
  for (const auto& block : expected_.blocks()) {
    if (block.begin()->time > now) break;
    for (const Release& release : block) {
      if (release.time <= now) expired_.push_back(release.job);
    }
  }
  for (const auto& block : overstaying_.blocks()) {
    if (slurm_expected_end(block.begin()->time, estimated_at_) > now) break;
    for (const Release& release : block) {
      if (slurm_expected_end(release.time, estimated_at_) <= now) expired_.push_back(release.job);
    }
  }
  for (const JobIndex index : expired_) {
    forget(index);
    correct(index, now);
    believe(index, now);
  }
  reestimate(now);
  return expired_;
}

Plan Availability::plan(Processors needed, Seconds now) const {
  if (!overstaying_.empty()) return plan_with_overstaying(needed, now);
  return first_fit(expected_, free_ + overdue_processors_, needed, now);
}

Plan Availability::plan_on_requested(Processors needed, Seconds now) const {
  return first_fit(hard_ends_, free_, needed, now);
}

// The shadow time is the first at which enough is free; the extra processors count every job
// expected to end at that time, not only those up to the first that suffices. A release that lies
// in the past is as good as now.
Plan Availability::first_fit(const Releases& releases, Processors available, Processors needed,
                             Seconds now) {
  Plan plan{now, 0};
  bool found = available >= needed;
  for (const auto& block : releases.blocks()) {
    if (!found && available + block.summary.processors < needed) {
      available += block.summary.processors;
      continue;
    }
    for (const Release& release : block) {
      if (found && release.time > plan.shadow_time) {
        plan.extra = available - needed;
        return plan;
      }
      available += release.processors;
      if (!found && available >= needed) {
        found = true;
        plan.shadow_time = std::max(now, release.time);
      }
    }
  }
  plan.extra = available - needed;
  return plan;
}

// As first_fit, over two lists that are each in the order of their expected ends.
Plan Availability::plan_with_overstaying(Processors needed, Seconds now) const {
  Processors available = free_ + overdue_processors_;
  Plan plan{now, 0};
  bool found = available >= needed;
  Cursor<Releases> estimate(expected_);
  Cursor<Releases> overstaying(overstaying_);
  while (estimate || overstaying) {
    const Seconds overstaying_end =
        overstaying ? slurm_expected_end(overstaying->time, estimated_at_) : kNever;
    const bool take_estimate = estimate && estimate->time <= overstaying_end;
    const Seconds time = take_estimate ? estimate->time : overstaying_end;
    if (found && time > plan.shadow_time) break;
    Cursor<Releases>& next = take_estimate ? estimate : overstaying;
    available += next->processors;
    ++next;
    if (!found && available >= needed) {
      found = true;
      plan.shadow_time = std::max(now, time);
    }
  }
  plan.extra = available - needed;
  return plan;
}

}  // namespace foretime
