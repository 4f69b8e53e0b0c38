// A slurmctld whose jobs get other numbers: those of a snapshot in place of an engine's.
#include <algorithm>
#include <map>

#include "planning/slurm/slurm_controller.hpp"

namespace foretime {

// What the jobs ask for becomes this one's own, each request once.
std::vector<std::int32_t> SlurmController::take_requests(const SlurmController& other,
                                                         const Renumbering& jobs) {
  std::vector<std::int32_t> numbers = jobs.column(other.request_of_, std::int32_t{-1});
  std::map<std::int32_t, std::int32_t> renamed;
  std::vector<std::int32_t> chosen;
  for (std::int32_t& number : numbers) {
    if (number < 0) continue;
    const auto [place, is_new] =
        renamed.try_emplace(number, static_cast<std::int32_t>(chosen.size()));
    if (is_new) chosen.push_back(number);
    number = place->second;
  }
  requests_ = std::make_shared<SlurmRequests>(*other.requests_, chosen);
  return numbers;
}

SlurmJob SlurmController::with_numbers(const SlurmController& other, JobIndex old, JobIndex job,
                                       const Renumbering& jobs) {
  SlurmJob facts = other.facts_[at(old)];
  if (facts.after < 0) return facts;
  const SlurmRecord& first = other.records_[at(facts.after)];
  const bool is_over = first.refused || (first.slurm_partition >= 0 && first.rows.empty());
  const JobIndex after = jobs.to(facts.after);
  facts.after = after;
  // One that will never come is waited for for ever, as a job waits for itself.
  if (after < 0 && !is_over) facts.after = job;
  return facts;
}

SlurmController::SlurmController(const SlurmController& other, const Renumbering& jobs)
    : site_(other.site_),
      table_(other.table_),
      all_nodes_(other.all_nodes_),
      nodes_of_partition_(other.nodes_of_partition_),
      nodes_of_reservation_(other.nodes_of_reservation_),
      soft_in_select_(other.soft_in_select_),
      free_(std::make_unique<FreeNodes>(*other.free_)),
      marks_(std::make_unique<GpuMarks>(*other.marks_)),
      chooser_(std::make_unique<NodeChooser>(*free_, *site_, *marks_)),
      rules_(site_, 0),
      request_of_(take_requests(other, jobs)),
      records_(jobs.column(other.records_, {})),
      held_back_(jobs.column(other.held_back_, false)),
      kept_jobs_(jobs.column(other.kept_jobs_, {})),
      kept_groups_(other.kept_groups_),
      waiting_(other.waiting_),
      conditional_(jobs.all(other.conditional_)),
      any_partition_down_(other.any_partition_down_),
      may_keep_(other.may_keep_),
      kept_jobs_matter_(other.kept_jobs_matter_),
      nodes_in_use_(other.nodes_in_use_),
      closed_(other.closed_),
      configured_(other.configured_),
      candidates_(other.candidates_) {
  std::vector<const slurm::PricedRequest*> asked;
  for (std::size_t job = 0; job < jobs.from().size(); ++job) {
    const JobIndex old = jobs.from()[job];
    facts_.push_back(old < 0 ? SlurmJob{}
                             : with_numbers(other, old, static_cast<JobIndex>(job), jobs));
    const std::int32_t request = request_of_[job];
    if (request >= 0) {
      asked.push_back(&requests_->counted(request).priced);
    } else {
      const std::int32_t in = records_[job].slurm_partition;
      asked.push_back(in < 0 ? nullptr : &requests_->counted_in(in).priced);
    }
  }
  rules_ = SlurmRules(other.rules_, jobs, asked);
  for (QueueEntry entry : other.queue_) {
    if (!other.records_[at(entry.job)].waits) continue;
    entry.job = jobs.to(entry.job);
    queue_.push_back(entry);
  }
  std::sort(queue_.begin(), queue_.end());
  for (const auto& [end, job] : other.ends_) ends_.insert({end, jobs.to(job)});
  for (const JobIndex job : other.kept_otherwise_) {
    if (jobs.to(job) >= 0) kept_otherwise_.insert(jobs.to(job));
  }
}

}  // namespace foretime
