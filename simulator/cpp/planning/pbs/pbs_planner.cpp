#include "planning/pbs/pbs_planner.hpp"

#include <algorithm>

namespace foretime {

PbsPlanner::PbsPlanner(const Scheduling& engine, PbsState state)
    : QueuePlanner(engine),
      state_(std::move(state)),
      top_jobs_(std::make_unique<PbsTopJobs>(state_, scratch_)) {
  const PbsSite& site = *state_.site;
  state_.running_on.resize(site.hosts.size());
  scratch_.met.resize(site.hosts.size(), 0);
  scratch_.mine.resize(site.hosts.size());
  for (const PbsReservation& reservation : site.reservations) {
    timed_.push_back(reservation.start);
    timed_.push_back(reservation.end);
  }
  for (const auto& [begins, ends] : site.dedicated_time) timed_.push_back(ends + site.iteration);
  std::sort(timed_.begin(), timed_.end());
  const auto first = std::lower_bound(timed_.begin(), timed_.end(), state_.last_cycle);
  next_timed_ = static_cast<std::size_t>(first - timed_.begin());
}

PbsRecord& PbsPlanner::make_record(JobIndex index) {
  const auto place = static_cast<std::size_t>(index);
  if (place >= state_.records.size()) {
    state_.records.resize(std::max(place + 1, jobs_.size()));
  }
  return state_.records[place];
}

// Cycles

// Whether a job that comes can be judged without looking at the others again, if nothing has begun
// or ended since they were looked at.
bool PbsPlanner::is_judged_alone(const PbsRecord& job) const {
  const PbsSite& site = *state_.site;
  if (!site.strict) return true;
  const bool stops = std::any_of(site.queues.begin(), site.queues.end(),
                                 [](const PbsQueue& queue) { return queue.depth == 0; });
  if (!site.backfills() || stops || site.round_robin) return false;
  // Where a class has jobs with and without a soft_walltime, its first one is judged for all.
  return !state_.any_soft || state_.queue_of(job).apart_by_soft || site.is_in_order_of_submission();
}

// Whether a job has started that ends at once: its end comes before all else that is to come.
bool PbsPlanner::cycle(Seconds now, Pass* pass, JobIndex submitted) {
  const PbsSite& site = *state_.site;
  state_.last_cycle = now;
  refresh_ends(now);
  refresh_reservations(now);
  if (site.fair_share.on) charge(now);
  if (goes_by_shares()) state_.fair_share.begin_cycle(now);
  if (state_.waiting == 0) top_jobs_->begin(now);
  if (pass == nullptr || state_.waiting == 0) return false;
  if (site.goes_by_clock() || values_change() || (site.strict && site.order_changes()) ||
      top_jobs_->may_move()) {
    ++state_.freed;
  }
  JobIndex only = -1;
  if (gone_through_ == state_.freed) {
    if (submitted < 0) return false;
    if (is_judged_alone(state_.record(submitted))) {
      only = submitted;
    } else {
      ++state_.freed;
    }
  }
  PbsCycle cycle(state_, *top_jobs_, now, jobs_, *pass, only);
  cycle.run();
  gone_through_ = state_.freed;
  // Top jobs are planned anew after a start, and others may then pass them.
  if (site.strict && !cycle.started().empty()) ++state_.freed;
  bool ends_at_once = false;
  for (const JobIndex index : cycle.started()) {
    PbsRecord& record = state_.record(index);
    if (site.fair_share.on) {
      record.seen = true;
      record.used = used_by(record, 0);
    }
    ends_at_once |= job(index).end <= now;
  }
  return ends_at_once;
}

void PbsPlanner::schedule(Seconds now, const Queue& /*queue*/, Pass& pass) {
  if (reached_ < now) reached(now);
  bool any = false;
  while (!ended_.empty()) {
    any = true;
    end_first(now);
    if (cycle(now, &pass, -1)) return;
  }
  while (!coming_.empty()) {
    const JobIndex index = coming_.front();
    coming_.erase(coming_.begin());
    const bool is_new = job(index).submit == now;
    take_up(index, is_new);
    if (!is_new) {
      asked_ = true;
      continue;
    }
    any = true;
    if (cycle(now, &pass, state_.record(index).refused ? -1 : index)) return;
  }
  for (; next_timed_ < timed_.size() && timed_[next_timed_] <= now; ++next_timed_) {
    any = true;
    if (cycle(now, &pass, -1)) return;
  }
  if (asked_ || (!any && state_.waiting > 0 && now >= state_.last_cycle + state_.site->iteration)) {
    asked_ = false;
    cycle(now, &pass, -1);
  }
}

// Cycles that start nobody.
void PbsPlanner::catch_up(Seconds until) {
  while (true) {
    const bool matters = state_.waiting > 0 || (goes_by_shares() && !state_.running.empty());
    Seconds next = matters ? state_.last_cycle + state_.site->iteration : kNever;
    const bool is_timed = next_timed_ < timed_.size() && timed_[next_timed_] <= next;
    if (is_timed) next = timed_[next_timed_];
    if (next >= until) return;
    if (is_timed) ++next_timed_;
    cycle(next, nullptr, -1);
  }
}

void PbsPlanner::reached(Seconds now) {
  if (now <= reached_) return;
  // Nobody waited when these ended.
  while (!ended_.empty() && ended_at_ < now) {
    catch_up(ended_at_);
    end_first(ended_at_);
    cycle(ended_at_, nullptr, -1);
  }
  catch_up(now);
  reached_ = now;
}

Seconds PbsPlanner::next_moment() const {
  if (state_.waiting == 0) return kNever;
  const PbsSite& site = *state_.site;
  Seconds next = next_timed_ < timed_.size() ? timed_[next_timed_] : kNever;
  const bool idle = state_.running.empty() && next == kNever;
  if (!idle && (site.strict || site.goes_by_clock() || values_change())) {
    next = std::min(next, state_.last_cycle + site.iteration);
  }
  return next == kNever ? kNever : std::max(next, reached_ + 1);
}

void PbsPlanner::resume(const PlanNotes& /*notes*/, Seconds reached) {
  for (const JobIndex index : coming_) {
    if (job(index).submit <= reached) take_up(index, false);
  }
  std::erase_if(coming_, [&](JobIndex index) { return job(index).submit <= reached; });
  asked_ = reached < now_;
  reached_ = reached;
}

std::optional<std::vector<JobIndex>> PbsPlanner::own_queue() const {
  std::vector<JobIndex> jobs;
  for (const std::int32_t number : state_.filled) {
    const PbsGroup& group = state_.groups[static_cast<std::size_t>(number)];
    jobs.insert(jobs.end(), group.jobs.begin(), group.jobs.end());
  }
  jobs.insert(jobs.end(), coming_.begin(), coming_.end());
  return jobs;
}

}  // namespace foretime
