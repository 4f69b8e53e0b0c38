// Where the engine asks a policy from outside this core.
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

void Engine::score(std::vector<Candidate>& queue) {
  ask_outside([&](OutsideNews&& news) { score_outside(queue, std::move(news)); });
}

std::vector<JobIndex> Engine::choose(const std::vector<JobIndex>& queue, bool on_requested) {
  return ask_outside([&](OutsideNews&& news) {
    return outside().backfill(*this, queue, on_requested, std::move(news));
  });
}

std::vector<Pending> Engine::queue_by_score() {
  return ask_outside([this](OutsideNews&& news) { return sorted_by_score(std::move(news)); });
}

}  // namespace foretime
