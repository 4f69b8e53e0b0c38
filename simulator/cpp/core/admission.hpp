// What keeps jobs from the queue though they are submitted: others that must start or end before
// them, and limits on what groups of jobs may have at once. reference/forward.py is the
// specification.
//
// Where a limit is, jobs are let into the queue in order, as many as the limit has room for; a job
// counts from then until it ends. So a scheduling pass need not know of limits.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/types.hpp"

namespace foretime {

struct GroupLimit {
  std::int64_t jobs = kNever;
  Processors processors = kNever;
};

// What does not change: the same for all samples of forward runs. By index of job.
struct AdmissionRules {
  struct Successor {
    JobIndex job = 0;
    Seconds delay = 0;
  };
  struct Waits {
    std::int64_t events = 0;
    bool any_suffices = false;
  };
  std::vector<std::vector<Successor>> after_start;
  std::vector<std::vector<Successor>> after_end;
  std::vector<Waits> waits;
  std::vector<GroupLimit> limits;
  std::vector<std::vector<std::size_t>> groups_of;
};

class Admission {
 public:
  explicit Admission(std::shared_ptr<const AdmissionRules> rules);

  // Whether all that a job waits for has happened; and from when on it may then be in the queue.
  bool is_released(JobIndex job) const;
  Seconds released_at(JobIndex job) const;
  // Notes a start or an end; gives the jobs that nothing more has to happen for.
  const std::vector<JobIndex>& started(JobIndex job, Seconds now);
  const std::vector<JobIndex>& ended(JobIndex job, Seconds now);

  bool is_limited(JobIndex job) const { return !of(rules_->groups_of, job).empty(); }
  // Jobs of groups: one that runs; one that ends; one whose time has come.
  void runs(JobIndex job, Processors processors) { count(job, processors, 1); }
  void leaves(JobIndex job, Processors processors) { count(job, processors, -1); }
  void arrives(JobIndex job, std::int64_t priority, std::int64_t rank, Processors processors);
  // Those that there is room for now, larger priorities first, then in the order of their ranks.
  const std::vector<JobIndex>& let_in();

 private:
  struct Kept {
    std::int64_t priority = 0;
    std::int64_t rank = 0;
    JobIndex job = 0;
    Processors processors = 0;
    friend bool operator<(const Kept& a, const Kept& b) {
      return a.priority != b.priority ? a.priority > b.priority : a.rank < b.rank;
    }
  };

  template <class T>
  static const T& of(const std::vector<T>& values, JobIndex job) {
    static const T none{};
    const auto place = static_cast<std::size_t>(job);
    return place < values.size() ? values[place] : none;
  }
  const std::vector<JobIndex>& happened(const std::vector<AdmissionRules::Successor>& successors,
                                        Seconds now);
  void count(JobIndex job, Processors processors, std::int64_t sign);
  bool has_room(const Kept& kept) const;

  std::shared_ptr<const AdmissionRules> rules_;
  std::vector<std::int64_t> waits_;   // by job: events that are still to come
  std::vector<Seconds> released_at_;  // by job
  std::vector<GroupLimit> in_use_;    // by group
  std::vector<Kept> kept_;            // in order
  bool changed_ = false;              // kept_ or in_use_, since the last let_in()
  std::vector<JobIndex> released_;
  std::vector<JobIndex> let_in_;
};

}  // namespace foretime
