#include "planning/profile_planner.hpp"

#include <algorithm>

#include "planning/conservative.hpp"
#include "planning/depth_limited.hpp"
#include "planning/planning.hpp"
#include "planning/slack/slack.hpp"
#include "planning/switching.hpp"

namespace foretime {

ProfilePlanner::ProfilePlanner(std::unique_ptr<PlanProfile> profile, const Policy& policy,
                               const std::vector<Job>& jobs, const Availability& availability,
                               std::vector<AdvanceReservation> reservations)
    : profile_(std::move(profile)),
      policy_(policy),
      jobs_(jobs),
      availability_(availability),
      reservations_(std::move(reservations)) {
  std::sort(reservations_.begin(), reservations_.end(),
            [](const auto& a, const auto& b) { return a.end() < b.end(); });
  for (const AdvanceReservation& reservation : reservations_) profile_->claim(reservation);
}

void ProfilePlanner::make_room() {
  const std::size_t jobs = std::max(jobs_.size(), jobs_.capacity());
  planned_.resize(jobs, kNever);
  first_planned_.resize(jobs, kNever);
  claim_end_.resize(jobs, kNever);
}

void ProfilePlanner::gain(Seconds start, Seconds end) {
  if (start >= end) return;
  gained_from_ = std::min(gained_from_, start);
  gained_until_ = std::max(gained_until_, end);
}

// Changes the end of a running job's claim.
void ProfilePlanner::set_claim_end(JobIndex index, Seconds now, Seconds end) {
  Seconds& claimed = claim_end_[static_cast<std::size_t>(index)];
  if (end < claimed) {
    profile_->release(index, std::max(end, now), claimed);
    gain(std::max(end, now), claimed);
  } else if (end > claimed) {
    profile_->claim(index, std::max(claimed, now), end);
    broken_ = true;
  }
  claimed = end;
}

// An overdue job is planned to end now, and claims nothing.
Seconds ProfilePlanner::believed_end(JobIndex index, Seconds now) const {
  if (has_reservations()) return std::max(now, job(index).start + job(index).time_limit);
  return std::max(now, availability_.expected_end(index));
}

void ProfilePlanner::promise(JobIndex index, Seconds start) {
  const auto place = static_cast<std::size_t>(index);
  set_plan(index, start);
  claim_end_[place] = start + time(index);
  if (claims_plans()) profile_->claim(index, start, claim_end_[place]);
  now_planned(index);
}

void ProfilePlanner::set_plan(JobIndex index, Seconds start) {
  const auto place = static_cast<std::size_t>(index);
  planned_[place] = start;
  if (first_planned_[place] == kNever) first_planned_[place] = start;
}

void ProfilePlanner::move_promise(JobIndex index, Seconds start) {
  const auto place = static_cast<std::size_t>(index);
  const Seconds end = start + time(index);
  profile_->move(index, planned_[place], claim_end_[place], start, end);
  planned_[place] = start;
  claim_end_[place] = end;
}

void ProfilePlanner::break_promise(JobIndex index) {
  const auto place = static_cast<std::size_t>(index);
  no_longer_planned(index);
  if (claims_plans()) profile_->release(index, planned_[place], claim_end_[place]);
  planned_[place] = kNever;
  claim_end_[place] = kNever;
}

Seconds ProfilePlanner::earliest_added(JobIndex index, Seconds now) {
  const Processors processors = job(index).processors;
  const Seconds from = barred_.first_start(processors, time(index), now);
  const Seconds start = profile_->earliest_fit(index, from, time(index));
  if (start > from) barred_.bar(processors, time(index), start);
  return start;
}

void ProfilePlanner::arrived(JobIndex index) {
  if (planned_.size() < jobs_.size()) make_room();
  arrivals_.push_back(index);
}

void ProfilePlanner::cancelled(JobIndex index) {
  std::erase(arrivals_, index);
  if (is_planned(index)) {
    surprised_ = true;
    if (claims_plans()) gain(planned_start(index), claim_end(index));
    break_promise(index);
  }
  changed_ = true;
}

// It keeps its place among the promises, which are all made anew.
void ProfilePlanner::changed_waiting(JobIndex index) {
  changed_ = surprised_ = true;
  broken_ = true;
  waiting_changed(index);
  if (!is_planned(index) || !claims_plans()) return;
  Seconds& end = claim_end_[static_cast<std::size_t>(index)];
  profile_->release(index, planned_start(index), end);
  end = planned_start(index) + time(index);
  profile_->claim(index, planned_start(index), end);
}

void ProfilePlanner::resume(const PlanNotes& notes, Seconds reached) {
  reached_ = reached;
  std::erase_if(arrivals_, [&](JobIndex index) {
    const auto place = static_cast<std::size_t>(index);
    if (place >= notes.planned_start.size() || notes.planned_start[place] == kNever) return false;
    promise(index, notes.planned_start[place]);
    resumed(index);
    return true;
  });
  changed_ = notes.changed;
  broken_ = notes.broken;
  gained_from_ = notes.gained_from;
  gained_until_ = notes.gained_until;
}

std::optional<PlanNotes> ProfilePlanner::notes() const {
  return PlanNotes{{}, changed_, broken_, gained_from_, gained_until_};
}

// Who starts has been promised this moment in the pass before.
void ProfilePlanner::started(JobIndex index, Seconds now) {
  no_longer_planned(index);
  planned_[static_cast<std::size_t>(index)] = kNever;
  if (!claims_plans()) claim_end_[static_cast<std::size_t>(index)] = now;
  const Seconds planned_end = claim_end(index);
  set_claim_end(index, now, believed_end(index, now));
  if (claim_end(index) != planned_end) changed_ = surprised_ = true;
  has_started(index, now);
}

void ProfilePlanner::changed_running(JobIndex index, Seconds now) {
  if (planned_.size() < jobs_.size()) make_room();
  Seconds& claimed = claim_end_[static_cast<std::size_t>(index)];
  if (claimed == kNever) claimed = now;
  changed_ = true;
  if (job(index).belief != Belief::kOverdue) surprised_ = true;  // what it had claimed is over
  set_claim_end(index, now, believed_end(index, now));
}

void ProfilePlanner::finished(JobIndex index, Seconds now) {
  changed_ = true;
  Seconds& claimed = claim_end_[static_cast<std::size_t>(index)];
  if (claimed > now) {
    surprised_ = true;
    profile_->release(index, now, claimed);
    gain(now, claimed);
  }
  claimed = kNever;
}

Seconds ProfilePlanner::last_running_end(Seconds now) const {
  Seconds last = now;
  for (const JobIndex index : availability_.running()) last = std::max(last, claim_end(index));
  return last;
}

Seconds ProfilePlanner::next_moment() const {
  const auto over = [this](const AdvanceReservation& r) { return r.end() <= reached_; };
  const auto next = std::partition_point(reservations_.begin(), reservations_.end(), over);
  const Seconds end = next == reservations_.end() ? kNever : next->end();
  return std::min(end, next_planned_start());
}

Processors ProfilePlanner::really_free(Seconds now) const {
  Processors free = availability_.free();
  for (const AdvanceReservation& claim : reservations_) {
    if (claim.start <= now && now < claim.end()) free -= claim.processors;
  }
  return free;
}

void ProfilePlanner::add_fixed_times(std::vector<Seconds>& times) const {
  const std::vector<JobIndex> running = availability_.running();
  times.reserve(times.size() + running.size() + 2 * reservations_.size());
  for (const JobIndex index : running) times.push_back(claim_end(index));
  for (const AdvanceReservation& claim : reservations_) {
    times.push_back(claim.start);
    times.push_back(claim.end());
  }
}

std::vector<JobIndex> ProfilePlanner::arrivals_in_order(const QueueInOrder& queue) const {
  if (arrivals_.size() < 2) return arrivals_;
  std::vector<Pending> entries;
  if (queue.sorted != nullptr) {
    for (const Pending& entry : *queue.sorted) {
      if (!is_planned(entry.job)) entries.push_back(entry);
    }
  } else {
    for (const JobIndex index : arrivals_) entries.push_back(queue.queue.entry(index, job(index)));
    std::sort(entries.begin(), entries.end());
  }
  std::vector<JobIndex> ordered;
  ordered.reserve(entries.size());
  for (const Pending& entry : entries) ordered.push_back(entry.job);
  return ordered;
}

void ProfilePlanner::claim_again(JobIndex index, Seconds now, Seconds more) {
  profile_->claim(index, now, now + more);
  claim_end_[static_cast<std::size_t>(index)] = now + more;
}

void ProfilePlanner::begin_pass(Seconds now) {
  profile_->advance(now);
  availability_.for_each_overstaying([&](JobIndex index) { changed_running(index, now); });
}

void ProfilePlanner::schedule(Seconds now, const Queue& queue, Pass& pass) {
  const bool by_score = is_time_dependent(policy_.order) && needs_order();
  const std::vector<Pending> sorted = by_score ? pass.queue_by_score() : std::vector<Pending>{};
  begin_pass(now);
  while (const auto verdict = judge_overrun(now)) {
    if (verdict->more > 0) {
      pass.extend(verdict->job, verdict->more);
    } else {
      pass.kill(verdict->job);
    }
  }
  do {
    starts_.clear();
    plan(now, QueueInOrder{queue, by_score ? &sorted : nullptr}, starts_);
    arrivals_.clear();
    changed_ = false;
    broken_ = false;
    gained_from_ = kNever;
    gained_until_ = kLongAgo;
    for (const JobIndex index : take_kills()) pass.kill(index);
    for (const auto& [index, how] : starts_) pass.start(index, how);
  } while (goes_on());
}

bool needs_planner(const Policy& policy, bool any_reservations) {
  if (any_reservations) return true;
  if (is_easy(policy.backfill)) return settings_of<EasySettings>(policy.settings).depth > 1;
  return policy.backfill == Backfill::kConservative || policy.backfill == Backfill::kPlanning ||
         policy.backfill == Backfill::kSlack;
}

std::unique_ptr<Planner> make_planner(std::unique_ptr<PlanProfile> profile, const Policy& policy,
                                      const std::vector<Job>& jobs,
                                      const Availability& availability,
                                      std::vector<AdvanceReservation> reservations) {
  if (policy.switching) {
    return std::make_unique<Switching>(std::move(profile), policy, jobs, availability,
                                       std::move(reservations));
  }
  const auto make = [&]<class Family>() -> std::unique_ptr<Planner> {
    return std::make_unique<Family>(std::move(profile), policy, jobs, availability,
                                    std::move(reservations));
  };
  switch (policy.backfill) {
    case Backfill::kConservative:
      return make.template operator()<Conservative>();
    case Backfill::kPlanning:
      return make.template operator()<Planning>();
    case Backfill::kSlack:
      return make.template operator()<Slack>();
    default:
      return make.template operator()<DepthLimited>();
  }
}

}  // namespace foretime
