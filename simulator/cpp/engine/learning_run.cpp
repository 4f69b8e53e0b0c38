#include "engine/learning_run.hpp"

#include <algorithm>

namespace foretime {

void LearningRun::submit_up_to(std::size_t jobs) {
  for (std::size_t i = predicted_.size(); i < std::min(jobs, jobs_.size()); ++i) {
    const LearningJob& next = jobs_[i];
    if (next.submit > engine_.now()) {
      engine_.advance(next.submit);
      learn();
    }
    const RolePrediction times = estimator_.predict(request(static_cast<JobIndex>(i)), next.submit);
    predicted_.push_back(times);
    const auto held = [&next](bool used, Seconds time) {
      return used ? std::clamp<Seconds>(time, 1, next.requested) : next.requested;
    };
    Job job;
    job.submit = next.submit;
    job.processors = next.processors;
    job.actual_runtime = next.actual_runtime;
    job.requested = next.requested;
    job.queue_time = held(roles_.queue, times.queue);
    job.backfill_time = held(roles_.backfill, times.backfill);
    job.drain_time = held(roles_.drain, times.drain);
    job.time_limit = next.requested;
    engine_.submit(job);
  }
}

// Starts and ends in the order of time: at the same moment ends first, as in the engine, but a
// job's own start before its end (foretime_estimators.estimators.job_events).
void LearningRun::learn() {
  const std::vector<JobIndex> started = engine_.take_started();
  const std::vector<JobIndex> finished = engine_.take_finished();
  auto next_start = started.begin();
  const auto start_next = [&] {
    estimator_.start(request(*next_start), ran(*next_start).start);
    ++next_start;
  };
  for (const JobIndex index : finished) {
    const Job& job = ran(index);
    while (next_start != started.end() && ran(*next_start).start < job.end) start_next();
    if (job.start == job.end) {
      while (std::find(next_start, started.end(), index) != started.end()) start_next();
    }
    // Cut at its limit it has run as long as it could, however it ended in the log.
    const bool at_limit = job.end - job.start >= job.requested;
    const Evidence logged = jobs_[static_cast<std::size_t>(index)].evidence;
    estimator_.finish({request(index), job.start, job.end, at_limit ? Evidence::kAtLimit : logged});
  }
  while (next_start != started.end()) start_next();
}

JobRequest LearningRun::request(JobIndex index) const {
  const LearningJob& job = jobs_[static_cast<std::size_t>(index)];
  return {index,      job.user,    job.processors, job.requested,
          job.submit, job.project, job.queue,      job.executable};
}

const Job& LearningRun::ran(JobIndex index) const {
  return engine_.jobs()[static_cast<std::size_t>(index)];
}

}  // namespace foretime
