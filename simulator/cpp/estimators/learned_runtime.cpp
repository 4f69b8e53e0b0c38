#include "estimators/learned_runtime.hpp"

#include <algorithm>
#include <cmath>

namespace foretime {

RolePrediction LearnedRuntime::predict(const JobRequest& job, Seconds now) {
  const Features features = features_.of(job, now);
  remember(job.index, features);
  return alike(predicted(job, features));
}

Seconds LearnedRuntime::predicted(const JobRequest& job, const Features& features) const {
  if (regression_.learned().examples == 0) return job.requested;
  const double predicted = regression_.predict(features);
  if (!std::isfinite(predicted)) return job.requested;
  const double seconds = absolute_ ? std::fabs(predicted) : predicted;
  if (seconds >= static_cast<double>(job.requested)) return job.requested;
  return seconds < 1 ? 1 : static_cast<Seconds>(seconds);
}

void LearnedRuntime::finish(const FinishedJob& job) {
  const auto index = static_cast<std::size_t>(job.request.index);
  const bool is_kept = index < place_.size() && place_[index] != kNowhere;
  if (job.evidence != Evidence::kNone) {
    regression_.learn(
        is_kept ? kept_[place_[index]] : features_.of(job.request, job.request.submit),
        loss_.of(job.runtime(), job.request.processors));
  }
  if (is_kept) forget(job.request.index);
  features_.finish(job);
}

// Jobs are asked about in the order of their indices, each once.
void LearnedRuntime::remember(JobIndex job, const Features& features) {
  if (kept_.size() - unused_.size() >= most_asked_) {
    while (place_[oldest_] == kNowhere) ++oldest_;
    forget(static_cast<JobIndex>(oldest_));
  }
  if (unused_.empty()) {
    unused_.push_back(kept_.size());
    kept_.emplace_back();
  }
  place_.resize(std::max(place_.size(), static_cast<std::size_t>(job) + 1), kNowhere);
  place_[static_cast<std::size_t>(job)] = unused_.back();
  kept_[unused_.back()] = features;
  unused_.pop_back();
}

void LearnedRuntime::forget(JobIndex job) {
  unused_.push_back(std::exchange(place_[static_cast<std::size_t>(job)], kNowhere));
}

std::vector<std::pair<JobIndex, Features>> LearnedRuntime::asked() const {
  std::vector<std::pair<JobIndex, Features>> jobs;
  for (std::size_t job = oldest_; job < place_.size(); ++job) {
    if (place_[job] != kNowhere) jobs.emplace_back(static_cast<JobIndex>(job), kept_[place_[job]]);
  }
  return jobs;
}

}  // namespace foretime
