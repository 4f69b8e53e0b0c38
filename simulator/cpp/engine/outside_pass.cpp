// Where a scheduling pass asks a policy from outside this core.
#include <algorithm>
#include <stdexcept>

#include "engine/engine.hpp"

namespace foretime {

OutsidePolicy& Engine::outside() const {
  if (!outside_) throw std::logic_error("the engine was given no policy from outside to ask");
  return *outside_;
}

// A pass that can't go on is done again, from where it stands, when the engine goes on.
template <class Ask>
auto Engine::ask_outside(Ask ask) {
  try {
    return ask(std::exchange(news_, {}));
  } catch (...) {
    --counters_.passes;
    pass_failed_ = true;
    changed();
    throw;
  }
}

// The queue comes in the order of submission.
void Engine::score_outside(std::vector<Candidate>& queue, OutsideNews&& news) const {
  std::vector<JobIndex> jobs;
  jobs.reserve(queue.size());
  for (const Candidate& waiting : queue) jobs.push_back(waiting.entry.job);
  const std::vector<double> scores = outside().scores(*this, jobs, std::move(news));
  for (std::size_t i = 0; i < queue.size(); ++i) queue[i].score = scores.at(i);
}

void Engine::score_queue_outside() {
  ask_outside([this](OutsideNews&& news) { score_outside(scored_, std::move(news)); });
}

std::vector<Pending> Engine::sort_queue_for_plan() {
  return ask_outside([this](OutsideNews&& news) { return sorted_by_score(std::move(news)); });
}

// The jobs that started from the head are no longer in the queue.
std::vector<Pending> Engine::queue_in_order() {
  std::vector<Pending> queue;
  if (is_time_dependent(policy_.order)) {
    std::sort_heap(scored_.begin(), scored_.end());
    for (auto next = scored_.rbegin(); next != scored_.rend(); ++next) queue.push_back(next->entry);
  } else {
    for (const auto& block : queue_.blocks()) queue.insert(queue.end(), block.begin(), block.end());
  }
  return queue;
}

void Engine::backfill_outside(bool on_requested) {
  const std::vector<Pending> queue = queue_in_order();
  const auto fits = [this](const Pending& entry) {
    return entry.processors <= availability_.free();
  };
  if (std::none_of(queue.begin() + 1, queue.end(), fits)) return;
  std::vector<JobIndex> jobs;
  jobs.reserve(queue.size());
  for (const Pending& entry : queue) jobs.push_back(entry.job);
  const std::vector<JobIndex> chosen = ask_outside([&](OutsideNews&& news) {
    return outside().backfill(*this, jobs, on_requested, std::move(news));
  });
  for (const JobIndex index : chosen) {
    const Pending entry = queue_.entry(index, job(index));
    const Seconds time = backfill_time(entry, on_requested);
    may_start(jobs.front(), entry.processors, time, on_requested);  // makes the plan
    start_before_head(entry, reserve_extra(entry.processors, time), on_requested);
  }
}

Seconds Engine::planned_end(JobIndex index, bool on_requested) const {
  const Seconds end = on_requested ? job(index).hard_end() : availability_.expected_end(index);
  return std::max(now_, end);
}

}  // namespace foretime
