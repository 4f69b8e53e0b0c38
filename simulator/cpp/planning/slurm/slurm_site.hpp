// How a site's Slurm is set up, as sites/slurm/site.py explains it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/types.hpp"
#include "nodes/node_types.hpp"
#include "slurm/limit_setup.hpp"
#include "slurm/priorities.hpp"

namespace foretime {

// sites/slurm/parameters.py has the names and their meaning.
struct SlurmParameters {
  bool backfill = true;
  Seconds batch_sched_delay = 3;
  Seconds sched_interval = 60;
  std::int64_t sched_min_interval_us = 2;
  std::int64_t default_queue_depth = 100;
  std::int64_t partition_job_depth = 0;
  std::int64_t max_sched_time = 2;
  std::int64_t sched_max_job_start = 0;
  bool defer = false;
  bool assoc_limit_stop = false;
  std::int64_t max_rpc_cnt = 0;
  bool epilog = false;
  Seconds bf_interval = 30;
  Seconds bf_resolution = 60;
  Seconds bf_window = 86'400;
  Seconds bf_max_time = 30;
  std::int64_t bf_yield_interval_us = 2'000'000;
  std::int64_t bf_yield_sleep_us = 500'000;
  std::int64_t bf_max_job_test = 500;
  std::int64_t bf_max_job_user = 0;
  std::int64_t bf_max_job_part = 0;
  std::int64_t bf_max_job_user_part = 0;
  std::int64_t bf_max_job_assoc = 0;
  std::int64_t bf_max_job_start = 0;
  std::int64_t bf_max_job_array_resv = 20;
  std::int64_t bf_job_part_count_reserve = 0;
  std::int64_t bf_min_prio_reserve = 0;
  Seconds bf_min_age_reserve = 0;
  bool bf_continue = false;
  bool bf_one_resv_per_job = false;
  bool bf_running_job_reserve = false;
  bool bf_licenses = false;
  bool time_min_as_soft_limit = false;
  Seconds over_time_limit_s = 0;
  Seconds kill_wait_s = 30;
  Seconds complete_wait_s = 0;

  template <class Visit>
  void each(Visit visit) {
    visit("backfill", backfill);
    visit("batch_sched_delay", batch_sched_delay);
    visit("sched_interval", sched_interval);
    visit("sched_min_interval_us", sched_min_interval_us);
    visit("default_queue_depth", default_queue_depth);
    visit("partition_job_depth", partition_job_depth);
    visit("max_sched_time", max_sched_time);
    visit("sched_max_job_start", sched_max_job_start);
    visit("defer", defer);
    visit("assoc_limit_stop", assoc_limit_stop);
    visit("max_rpc_cnt", max_rpc_cnt);
    visit("epilog", epilog);
    visit("bf_interval", bf_interval);
    visit("bf_resolution", bf_resolution);
    visit("bf_window", bf_window);
    visit("bf_max_time", bf_max_time);
    visit("bf_yield_interval_us", bf_yield_interval_us);
    visit("bf_yield_sleep_us", bf_yield_sleep_us);
    visit("bf_max_job_test", bf_max_job_test);
    visit("bf_max_job_user", bf_max_job_user);
    visit("bf_max_job_part", bf_max_job_part);
    visit("bf_max_job_user_part", bf_max_job_user_part);
    visit("bf_max_job_assoc", bf_max_job_assoc);
    visit("bf_max_job_start", bf_max_job_start);
    visit("bf_max_job_array_resv", bf_max_job_array_resv);
    visit("bf_job_part_count_reserve", bf_job_part_count_reserve);
    visit("bf_min_prio_reserve", bf_min_prio_reserve);
    visit("bf_min_age_reserve", bf_min_age_reserve);
    visit("bf_continue", bf_continue);
    visit("bf_one_resv_per_job", bf_one_resv_per_job);
    visit("bf_running_job_reserve", bf_running_job_reserve);
    visit("bf_licenses", bf_licenses);
    visit("time_min_as_soft_limit", time_min_as_soft_limit);
    visit("over_time_limit_s", over_time_limit_s);
    visit("kill_wait_s", kill_wait_s);
    visit("complete_wait_s", complete_wait_s);
  }
};

struct SlurmPartition {
  std::int64_t priority_tier = 1;
  std::int64_t most_nodes_in_use = kNever;
  std::int64_t max_cpus_per_node = kNever;
  std::int64_t default_memory_per_node = 0;
  Seconds over_time_limit = 0;
  bool starts = true;   // its state lets jobs start: UP or DRAIN
  bool submits = true;  // and be submitted: UP or DOWN
  std::vector<std::int32_t> groups;
};

// Groups of nodes that are set aside for a time.
struct SlurmReservation {
  Seconds start = 0;
  Seconds end = 0;
  std::vector<std::int32_t> groups;
};

// Of topology/tree: a leaf with nodes, or one with others below it.
struct SlurmSwitch {
  std::vector<std::int32_t> groups;
  std::vector<std::int32_t> below;  // by their places
};

struct SlurmSite {
  SlurmParameters parameters;
  std::pair<int, int> version{26, 5};
  NodeMachine machine;
  std::vector<SlurmPartition> partitions;
  std::vector<SlurmReservation> reservations;
  std::vector<SlurmSwitch> switches;
  std::shared_ptr<const slurm::PrioritySite> priority;
  std::shared_ptr<const slurm::LimitsSetup> limits;
  bool enforces = false;  // associations, limits or QOS
  Seconds epoch = 0;      // of the clock's zero

  bool soft_limits() const {
    return parameters.time_min_as_soft_limit && version >= std::pair{23, 11};
  }
};

// What a real Slurm tells of a waiting job: since when it ages (kNever: it does not), its priority.
struct ToldJob {
  Seconds ages_since = kNever;
  std::optional<std::int64_t> priority;
};

// Places in the site's licenses, and how many of each.
using LicenseCounts = std::vector<std::pair<std::int32_t, std::int64_t>>;

// What a job says to Slurm besides what it asks of nodes; -1: nothing.
struct SlurmJob {
  std::int32_t user = -1;
  std::int32_t account = -1;
  // What priorities go by, and limits, which know of what is handed down to associations.
  std::int32_t association = -1;
  std::int32_t qos = -1;
  std::int32_t limited_association = -1;
  std::int32_t limited_qos = -1;
  slurm::Flaw flaw = slurm::Flaw::none;
  std::int32_t reservation = -1;
  std::int64_t nice = 0;
  std::int64_t site_factor = 0;
  Seconds time_min = 0;         // --time-min; 0: none
  Seconds begin = 0;            // not before
  std::int32_t array = -1;      // which one it is a task of
  std::int64_t array_most = 0;  // of its tasks that may run at once; 0: any number
  JobIndex after = -1;          // the job that it comes after
  bool after_end = false;       // once that one has ended, not only started
  LicenseCounts licenses;
  std::optional<ToldJob> told;
};

}  // namespace foretime
