// What would have happened without predictions: an EASY on requested times that runs beside the
// schedule, with the same jobs in the same queue order, for the guard to compare with. Both know the
// same: there a job ends after its actual runtime from the moment on at which it has ended here.
// Until then it is taken to end after its t_sched(backfill), unless it runs here, too, and began no
// later than there: then its end will be known in time.
#include <algorithm>

#include "engine/engine.hpp"

namespace foretime {

Job Engine::job_beside(const Job& job) const {
  Job beside = job;
  beside.queue_time = beside.backfill_time = beside.drain_time = job.requested;
  beside.actual_runtime = std::min(job.backfill_time, job.time_limit);
  beside.awaited = false;
  return beside;
}

// A job starts here now.
void Engine::started_beside(JobIndex index) {
  beside_->advance(now_);
  const Job& beside = beside_->job(index);
  const bool is_running = beside.state == State::kRunning;
  if (beside.state == State::kFinished || (is_running && beside.start < now_)) return;
  beside_->tell_runtime(index, beside.time_limit);
}

// A job has ended here now.
void Engine::ended_beside(JobIndex index) {
  beside_->advance(now_);
  beside_->tell_runtime(index, job(index).end - job(index).start);
}

void Engine::update_beside(JobIndex index) {
  beside_->advance(now_);
  Job changed = job_beside(job(index));
  const State here = job(index).state;
  if (here != State::kSubmitted && here != State::kPending) {
    changed.actual_runtime = beside_->job(index).actual_runtime;
  }
  beside_->update(index, changed);
}

void Engine::cancel_beside(JobIndex index) {
  beside_->advance(now_);
  const Job& beside = beside_->job(index);
  if (beside.state == State::kRunning) {
    beside_->tell_runtime(index, now_ - beside.start);
  } else {
    beside_->cancel(index);
  }
}

// From now on; who should have ended ends now.
void Engine::tell_runtime(JobIndex index, Seconds actual_runtime) {
  Job& told = job(index);
  if (told.state == State::kFinished || told.state == State::kCancelled) return;
  told.actual_runtime = actual_runtime;
  if (told.state == State::kRunning) set_end(index);
}

// For how long a job that waits here has run there; under a gradual guard, for how long that EASY has
// kept processors for it, which is from when on it was blocked at the head there. And how long that
// may be: the less the longer the job waited there until then.
Engine::Lateness Engine::lateness(JobIndex head) {
  beside_->advance(now_);
  beside_->settle();
  const Job& beside = beside_->job(head);
  const bool has_started = beside.state == State::kRunning || beside.state == State::kFinished;
  Seconds since = has_started ? beside.start : kNever;
  if (policy_.guard->eases_in()) since = std::min(since, beside.blocked_since);
  if (since == kNever) return {};
  Seconds bound = policy_.guard->bound;
  if (policy_.guard->by == GuardBy::kPlainEasyLongest) bound = std::min(bound, beside_->longest_wait_);
  const auto off =
      static_cast<Seconds>(policy_.guard->share * static_cast<double>(since - beside.submit));
  return {now_ - since, std::max<Seconds>(0, bound - off)};
}

}  // namespace foretime
