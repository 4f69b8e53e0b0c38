#include "forward.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "engine.hpp"

namespace foretime {
namespace {

void run_sample(const Beginning& beginning, const Samples& samples, std::optional<std::size_t> only,
                std::size_t sample, Seconds* start_time) {
  const std::size_t running = beginning.running.size();
  const std::size_t jobs = running + beginning.pending.size();
  const Seconds* actual_runtime = samples.actual_runtime + sample * jobs;
  Engine engine(beginning.machine, beginning.policy, beginning.now);
  engine.reserve(jobs);
  for (Job job : beginning.running) {
    job.actual_runtime = *actual_runtime++;
    engine.add_running(job);
  }
  for (std::size_t i = 0; i < beginning.pending.size(); ++i) {
    Job job = beginning.pending[i];
    job.actual_runtime = *actual_runtime++;
    job.awaited = !only || *only == i;
    engine.submit(job);
  }
  if (!samples.arrivals.first.empty()) {
    const Arrivals& arrivals = samples.arrivals;
    for (std::size_t i = arrivals.first[sample]; i < arrivals.first[sample + 1]; ++i) {
      engine.submit(arrivals.jobs[i]);
    }
  }
  if (beginning.last_pass) engine.resume_after_pass(*beginning.last_pass);
  engine.finish_awaited();
  if (only) {
    start_time[sample] = engine.jobs()[running + *only].start;
    return;
  }
  const auto start = [](const Job& job) { return job.start; };
  std::transform(engine.jobs().begin(), engine.jobs().begin() + static_cast<std::ptrdiff_t>(jobs),
                 start_time + sample * jobs, start);
}

}  // namespace

bool forward_runs(const Beginning& beginning, const Samples& samples,
                  std::optional<std::size_t> only, std::size_t threads, Seconds* start_time,
                  const std::function<bool()>& interrupted) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::exception_ptr failure;
  std::mutex failing;
  const auto work = [&](bool calling_thread) {
    try {
      while (!stop) {
        const std::size_t sample = next++;
        if (sample >= samples.count) return;
        run_sample(beginning, samples, only, sample, start_time);
        if (calling_thread && interrupted()) stop = true;
      }
    } catch (...) {
      stop = true;
      const std::lock_guard lock(failing);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < std::min(threads, samples.count); ++i) {
      others.emplace_back(work, false);
    }
    work(true);
  }
  if (failure) std::rethrow_exception(failure);
  return !stop;
}

}  // namespace foretime
