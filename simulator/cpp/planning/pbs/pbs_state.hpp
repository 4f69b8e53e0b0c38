// What PBS's server and scheduler have in mind: jobs, hosts, counts and fair share. Copied for each
// forward run.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "planning/pbs/pbs_fair_share.hpp"
#include "planning/pbs/pbs_hosts.hpp"
#include "planning/pbs/pbs_limits.hpp"

namespace foretime {

// Whose a job is, by code; -1: nobody's.
struct PbsJobFacts {
  std::int32_t user = -1;
  std::int32_t project = -1;
};

// What a job asks for: a select statement, and the queue that it is submitted to.
struct PbsRequest {
  std::int32_t select = 0;
  std::int32_t queue = 0;
};

struct PbsRecord {
  PbsJobFacts facts;
  std::int32_t request = -1;
  PbsCounted counted;
  Seconds hard = 0;  // its walltime
  Seconds soft = 0;  // its soft_walltime; 0: none
  std::int64_t priority = 0;
  std::int32_t entity = 0;  // of fair share
  std::int32_t alike = -1;  // its equivalence class
  std::int32_t group = -1;  // of the queue; -1: it does not wait
  bool exclusive = false;   // its hosts are its own
  bool runs = false;
  bool exiting = false;   // it has ended, but still has its hosts
  bool accepted = false;  // before its submission is told of
  bool refused = false;   // at its submission
  Seconds start = 0;
  Seconds planned_end = 0;  // once it runs
  PbsPlacement placement;
  bool seen = false;  // by the last cycle under fair share, having used so much
  double used = 0;

  Seconds planned() const { return soft > 0 ? soft : hard; }
};

// Waiting jobs that the scheduler can't tell apart but by their submission, in that order.
struct PbsGroup {
  std::int32_t alike = -1;
  std::int32_t queue = 0;
  std::int32_t select = 0;
  std::int32_t entity = 0;
  PbsValues values{};  // what formulas and sort keys see of each job
  double value = 0;    // of job_sort_formula
  std::deque<JobIndex> jobs;
  std::size_t place = 0;  // among those that have jobs
  std::optional<bool> can_ever_run;
};

struct PbsState {
  PbsState(std::shared_ptr<const PbsSite> of, Seconds now)
      : site(std::move(of)),
        hosts(*site),
        counts(site->limits),
        in_queue(site->limits_in_queue),
        of_waiting(site->limits_of_waiting),
        fair_share(site->fair_share, site->decayed_at.value_or(now), now),
        last_cycle(now) {}

  PbsRecord& record(JobIndex index) { return records[static_cast<std::size_t>(index)]; }
  const PbsRecord& record(JobIndex index) const { return records[static_cast<std::size_t>(index)]; }
  const PbsSelect& select_of(const PbsRecord& record) const {
    const PbsRequest& request = requests[static_cast<std::size_t>(record.request)];
    return selects[static_cast<std::size_t>(request.select)];
  }
  const PbsQueue& queue_of(const PbsRecord& record) const {
    return site->queues[static_cast<std::size_t>(record.counted.queue)];
  }

  std::shared_ptr<const PbsSite> site;
  std::vector<PbsSelect> selects;
  std::vector<PbsRequest> requests;
  std::vector<PbsRecord> records;
  std::vector<JobIndex> running;                   // in the order in which they started
  std::vector<std::pair<Seconds, JobIndex>> ends;  // ascending: as they are planned
  std::vector<std::vector<JobIndex>> running_on;   // by host, once needed
  std::vector<std::int32_t> reserved;              // reservations that have begun
  PbsHosts hosts;
  PbsCounts counts;
  PbsCounts in_queue;
  PbsCounts of_waiting;
  PbsFairShare fair_share;
  Seconds last_cycle;
  std::size_t waiting = 0;
  bool any_soft = false;  // whether a job has had a soft_walltime

  // Equivalence classes, and groups of the queue, by what makes them.
  std::map<std::vector<std::int64_t>, std::int32_t> alike_number;
  std::map<std::vector<std::int64_t>, std::int32_t> group_number;
  std::vector<PbsGroup> groups;
  std::vector<std::int32_t> filled;  // groups that have jobs
  // By class: since when it has been known not to fit; see `freed`.
  std::vector<std::int64_t> refused_at;
  std::int64_t freed = 1;  // counts what may let jobs start that were refused
};

}  // namespace foretime
