// When processors are expected to become free: what a plan may know of the running jobs.
#pragma once

#include <vector>

#include "core/block_list.hpp"
#include "core/types.hpp"

namespace foretime {

// EASY's reservation for the head job.
struct Plan {
  Seconds shadow_time = 0;  // when enough processors are expected to be free for it
  Processors extra = 0;     // those free then that it does not need
};

class Availability {
 public:
  Availability(Processors machine, const Policy& policy, std::vector<Job>& jobs);

  Processors free() const { return free_; }

  // A job begins to run now (job.start set), with its t_sched(drain) as estimate.
  void start(JobIndex index);
  void finish(JobIndex index);
  // A job that started earlier, or whose times have changed: it may have outlived its estimate.
  void resume(JobIndex index, Seconds now);
  // Gives an overdue job so much more time.
  void extend(JobIndex index, Seconds more);
  // Past their requested times, in no particular order.
  const std::vector<JobIndex>& overdue() const { return overdue_; }

  // Earliest moment at which an estimate expires; kNever if none does.
  Seconds next_expiry() const;
  // Corrects every estimate that expires at `now`, and gives the jobs.
  const std::vector<JobIndex>& correct_all(Seconds now);
  // Under Slurm's rule every pass works the estimates of overstaying jobs out anew.
  void reestimate(Seconds now) { estimated_at_ = now; }
  Seconds estimated_at() const { return estimated_at_; }
  Seconds expected_end(JobIndex index) const;
  // Every running job, in no particular order.
  std::vector<JobIndex> running() const;
  // Those whose expected end moves with every pass.
  template <class Visit>
  void for_each_overstaying(Visit visit) const {
    for (const auto& block : overstaying_.blocks()) {
      for (const Release& release : block) visit(release.job);
    }
  }

  bool any_overstaying() const { return !overstaying_.empty(); }
  // True while the plan may change though nothing happens.
  bool drifts() const { return !overstaying_.empty() || !overdue_.empty(); }
  Plan plan(Processors needed, Seconds now) const;
  // The same if every running job took its requested time. Needs a policy with a guard.
  Plan plan_on_requested(Processors needed, Seconds now) const;

 private:
  struct Release {
    Seconds time = 0;
    JobIndex job = 0;
    Processors processors = 0;
    friend bool operator<(const Release& a, const Release& b) {
      return a.time != b.time ? a.time < b.time : a.job < b.job;
    }
  };
  struct Sum {
    Processors processors = 0;
    void add(const Release& release) { processors += release.processors; }
    bool remove(const Release& release) {
      processors -= release.processors;
      return true;
    }
  };
  using Releases = BlockList<Release, Sum>;

  static Plan first_fit(const Releases& releases, Processors available, Processors needed,
                        Seconds now);
  Plan plan_with_overstaying(Processors needed, Seconds now) const;
  void believe(JobIndex index, Seconds now);
  void forget(JobIndex index);
  void correct(JobIndex index, Seconds now);
  Release expected_release(JobIndex index) const;
  Release hard_release(JobIndex index) const;
  Job& job(JobIndex index) { return jobs_[static_cast<std::size_t>(index)]; }
  const Job& job(JobIndex index) const { return jobs_[static_cast<std::size_t>(index)]; }

  std::vector<Job>& jobs_;
  Correction correction_;
  std::optional<std::int32_t> correction_steps_;
  bool keeps_hard_ends_;
  Processors free_;
  Releases expected_;              // Belief::kEstimate, by expected end
  Releases overstaying_;           // Belief::kOverstaying, by hard end
  std::vector<JobIndex> overdue_;  // Belief::kOverdue
  Processors overdue_processors_ = 0;
  Releases hard_ends_;  // with a guard: every running job, by hard end
  Seconds estimated_at_ = 0;
  std::vector<JobIndex> expired_;
};

}  // namespace foretime
