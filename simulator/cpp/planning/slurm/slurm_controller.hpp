// One slurmctld: its jobs, what they have, and how one is started.
// reference/slurm/loops/controller.py is the specification.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "planning/planner.hpp"
#include "planning/slurm/slurm_priorities.hpp"
#include "planning/slurm/slurm_state.hpp"

namespace foretime {

// What came of an attempt to start a job.
enum class Verdict : std::uint8_t { kStarted, kBusy, kNotAvailable, kReserved, kPolicy, kLicenses };

class SlurmController {
 public:
  explicit SlurmController(std::shared_ptr<const SlurmSite> site);
  SlurmController(const SlurmController& other);
  SlurmController(SlurmController&& other) noexcept = default;
  SlurmController& operator=(const SlurmController&) = delete;
  SlurmController& operator=(SlurmController&&) = delete;
  ~SlurmController() = default;

  const SlurmSite& site() const { return *site_; }
  const SlurmParameters& parameters() const { return site_->parameters; }
  SlurmRequests& requests() { return *requests_; }
  const SlurmRequests& requests() const { return *requests_; }
  const NodeTable& table() const { return *table_; }
  const FreeNodes& free() const { return *free_; }
  NodeChooser& chooser() { return *chooser_; }
  SlurmPriorities& priorities() { return priorities_; }
  const NodeSet& all_nodes() const { return all_nodes_; }
  const NodeSet& nodes_of_partition(std::int32_t partition) const {
    return *nodes_of_partition_[static_cast<std::size_t>(partition)];
  }
  const SlurmPartition& partition(std::int32_t number) const {
    return site_->partitions[static_cast<std::size_t>(number)];
  }

  // Jobs. Facts come before the job itself.
  void describe(JobIndex job, SlurmJob facts);
  void set_request(JobIndex job, std::int32_t request);
  const std::vector<std::int32_t>& request_of() const { return request_of_; }
  const SlurmJob& facts(JobIndex job) const { return facts_[at(job)]; }
  SlurmJob& facts(JobIndex job) { return facts_[at(job)]; }
  SlurmRecord& record(JobIndex job) { return records_[at(job)]; }
  const SlurmRecord& record(JobIndex job) const { return records_[at(job)]; }
  const std::vector<Wish>& wishes(JobIndex job) const {
    return requests_->wishes(request_of_[at(job)]);
  }
  void make_room(std::size_t jobs);
  bool has_room_for(JobIndex job) const { return at(job) < records_.size(); }

  // A job is submitted, or changed while it waits.
  void submitted(JobIndex job, Seconds submit, Seconds now);
  void withdraw(JobIndex job);
  // Its order in the queue has changed.
  void requeue(JobIndex job);
  // All priorities may have changed.
  void sort_queue();
  // Works out who may be looked at, as a loop begins.
  void begin_loop(Seconds now);
  // Pending jobs in each of their slurm_partitions, first of the queue first; also those that have
  // started since, or may not be looked at.
  const std::vector<QueueEntry>& queue() const { return queue_; }
  bool may_be_looked_at(JobIndex job) const {
    return records_[at(job)].waits && !held_back_[at(job)];
  }
  bool may_be_looked_at(const QueueEntry& entry) const {
    return may_be_looked_at(entry.job) &&
           partition(wishes(entry.job)[static_cast<std::size_t>(entry.number)].slurm_partition)
               .starts;
  }
  // How long only the queue has held it.
  Seconds waited(JobIndex job, Seconds now) const {
    const Seconds since = records_[at(job)].eligible;
    return since == kNever ? 0 : now - since;
  }
  bool array_may_start(JobIndex job) const;
  std::int64_t array_running(std::int32_t array) const;
  bool has_licenses(JobIndex job) const;
  // When a job may be looked at that waits for its begin or a reservation; kNever: none.
  Seconds next_begin(Seconds now) const;

  // Closed to a job that starts at a time, of a slurm_partition's nodes.
  struct Usable {
    bool possible = true;
    bool overlap = false;
    bool any_closed = false;
  };
  Usable usable(JobIndex job, Seconds when, std::int32_t partition, NodeSet& closed) const;
  // When a job that was asked about since the loop began would find other nodes closed to it, were
  // it to start then.
  Seconds usable_changes_at() const { return usable_changes_at_; }
  // The first end of a reservation at or after a time; kNever: there is none.
  Seconds next_reservation_end(Seconds when) const;
  const NodeSet& nodes_of_reservation(std::int32_t reservation) const {
    return *nodes_of_reservation_[static_cast<std::size_t>(reservation)];
  }

  Verdict select_nodes(JobIndex job, std::int32_t number, const NodeSet& available, Seconds now,
                       StartedBy how, Pass& pass);
  // As the engine has started it; where is what select_nodes() found.
  void started(JobIndex job, Seconds now);
  // One that runs already; its record says whether its nodes are its alone.
  void runs(JobIndex job, std::int32_t slurm_partition, std::vector<NodeRow> rows, Seconds start);
  void finished(JobIndex job, Seconds now);
  // Waiting or running.
  void change_limits(JobIndex job, Seconds time_limit, Seconds time_min);

  // Running jobs by their soft ends as they were at their starts.
  const std::set<std::pair<Seconds, JobIndex>>& ends() const { return ends_; }
  // When one is thought to end (`_soft_job_end`), and past that (`_guess_job_end`).
  Seconds end(JobIndex job, Seconds now) const;
  Seconds guessed_end(JobIndex job, Seconds now) const;
  bool soft_in_select() const { return soft_in_select_; }

  bool is_idle() const { return ends_.empty(); }
  std::size_t waiting() const { return waiting_; }

 private:
  static std::size_t at(JobIndex job) { return static_cast<std::size_t>(job); }
  bool is_independent(JobIndex job, Seconds now);
  void enqueue(JobIndex job);
  void forget_started();
  bool any_busy(const NodeSet& nodes, bool whole) const;
  Seconds first_end(JobIndex job) const;

  std::shared_ptr<const SlurmSite> site_;
  std::shared_ptr<const NodeTable> table_;
  std::shared_ptr<SlurmRequests> requests_;
  NodeSet all_nodes_;
  std::vector<std::shared_ptr<const NodeSet>> nodes_of_partition_;
  std::vector<std::shared_ptr<const NodeSet>> nodes_of_reservation_;
  bool soft_in_select_;

  std::unique_ptr<FreeNodes> free_;
  std::unique_ptr<NodeChooser> chooser_;
  SlurmPriorities priorities_;
  std::vector<std::int32_t> request_of_;
  std::vector<SlurmJob> facts_;
  std::vector<SlurmRecord> records_;
  std::vector<bool> held_back_;
  std::vector<QueueEntry> queue_;
  std::size_t gone_ = 0;  // entries of jobs that wait no longer
  std::size_t waiting_ = 0;
  std::vector<JobIndex> conditional_;  // waiting jobs that more than the queue may hold
  std::set<std::pair<Seconds, JobIndex>> ends_;
  std::vector<std::int64_t> licenses_used_;
  std::map<std::int32_t, std::int64_t> array_running_;
  std::vector<std::int64_t> nodes_in_use_;  // by slurm_partition, a node once for each job

  // Of the attempt that is going on.
  struct Attempt {
    JobIndex job = -1;
    std::int32_t number = 0;
    std::vector<NodeRow> rows;
  };
  Attempt attempt_;
  mutable NodeSet closed_;
  mutable Seconds usable_changes_at_ = kNever;
  NodeSet candidates_;
};

}  // namespace foretime
