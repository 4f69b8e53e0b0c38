#include "engine/plain_easy.hpp"

#include <algorithm>

#include "engine/engine.hpp"

namespace foretime {
namespace {

// With what is known of it at its submission.
Job job_beside(const Job& job) {
  Job beside = job;
  beside.queue_time = beside.backfill_time = beside.drain_time = job.requested;
  beside.actual_runtime = std::min(job.backfill_time, job.time_limit);
  beside.awaited = false;
  return beside;
}

}  // namespace

PlainEasy::PlainEasy(Processors machine, const Policy& policy, Seconds now) {
  Policy plain;
  plain.order = policy.order;
  plain.interval = policy.interval;
  engine_ = std::make_unique<Engine>(machine, plain, now);
  engine_->watch_heads();
}

PlainEasy::~PlainEasy() = default;

const Job& PlainEasy::job(JobIndex index) const {
  return engine_->jobs()[static_cast<std::size_t>(index)];
}

void PlainEasy::submitted(const Job& job) { engine_->submit(job_beside(job)); }

void PlainEasy::started(JobIndex index, Seconds now) {
  engine_->advance(now);
  const Job& beside = job(index);
  const bool is_running = beside.state == State::kRunning;
  if (beside.state == State::kFinished || (is_running && beside.start < now)) return;
  engine_->tell_runtime(index, beside.time_limit);
}

void PlainEasy::ended(JobIndex index, Seconds runtime, Seconds now) {
  engine_->advance(now);
  engine_->tell_runtime(index, runtime);
}

void PlainEasy::updated(JobIndex index, const Job& to, Seconds now) {
  engine_->advance(now);
  Job changed = job_beside(to);
  if (to.state != State::kSubmitted && to.state != State::kPending) {
    changed.actual_runtime = job(index).actual_runtime;
  }
  engine_->update(index, changed);
}

void PlainEasy::cancelled(JobIndex index, Seconds now) {
  engine_->advance(now);
  const Job& beside = job(index);
  if (beside.state == State::kRunning) {
    engine_->tell_runtime(index, now - beside.start);
  } else {
    engine_->cancel(index);
  }
}

PlainEasy::Lateness PlainEasy::lateness(JobIndex head, const Guard& guard, Seconds now) {
  engine_->advance(now);
  engine_->settle();
  const Job& beside = job(head);
  const bool has_started = beside.state == State::kRunning || beside.state == State::kFinished;
  Seconds since = has_started ? beside.start : kNever;
  if (guard.eases_in()) since = std::min(since, beside.blocked_since);
  if (since == kNever) return {};
  Seconds bound = guard.bound;
  if (guard.by == GuardBy::kPlainEasyLongest) bound = std::min(bound, engine_->longest_wait());
  const auto off = static_cast<Seconds>(guard.share * static_cast<double>(since - beside.submit));
  return {now - since, std::max<Seconds>(0, bound - off)};
}

}  // namespace foretime
