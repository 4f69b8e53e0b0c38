// One slurmctld: its jobs, what they have, and how one is started.
// reference/slurm/loops/controller.py is the specification.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "planning/planner.hpp"
#include "planning/slurm/slurm_rules.hpp"
#include "planning/slurm/slurm_state.hpp"

namespace foretime {

// What came of an attempt to start a job.
enum class Verdict : std::uint8_t { kStarted, kBusy, kNotAvailable, kReserved, kPolicy, kLicenses };

class SlurmController {
 public:
  SlurmController(std::shared_ptr<const SlurmSite> site, Seconds now);
  SlurmController(const SlurmController& other);
  // The same with other numbers of jobs: all that run or wait are taken along.
  SlurmController(const SlurmController& other, const Renumbering& jobs);
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
  const GpuMarks& marks() const { return *marks_; }
  const SlurmRules& rules() const { return rules_; }
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
  void withdraw(JobIndex job, Seconds now);
  // Why it is refused.
  slurm::Reason why_refused(JobIndex job) const { return rules_.why_refused(ruled(job)); }
  // As it is submitted it is tested for whether it could ever run.
  void test_submission(JobIndex job, Seconds now);
  // The decay thread looks; whether the loops may now do what they did not before.
  bool tick(Seconds now);
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
  bool array_may_start(JobIndex job) const { return !rules_.array_is_full(ruled(job)); }
  std::int64_t array_running(std::int32_t array) const {
    return rules_.limits().tasks_running(array);
  }
  bool has_licenses(JobIndex job) const { return rules_.has_licenses(ruled(job)); }
  // Licenses of a job that backfill plans; none without bf_licenses.
  const LicenseCounts& planned_licenses(JobIndex job) const {
    static const LicenseCounts kNone;
    return parameters().bf_licenses ? facts_[at(job)].licenses : kNone;
  }
  // What backfill begins with of each license.
  std::vector<std::int64_t> licenses_to_plan() const;

  // Limits. A job is kept by one, or (0) by something else, as it is looked at.
  void keep(JobIndex job, slurm::Reason reason);
  // Whether the main loop goes by which jobs a limit kept before, and whether that has changed
  // since the loop began.
  bool goes_by_kept_jobs() const { return may_keep_ && kept_jobs_matter_; }
  bool kept_others() const { return !kept_otherwise_.empty(); }
  // Whether a limit keeps a job from being looked at in one of its slurm_partitions; it is noted.
  bool is_kept(JobIndex job, std::int32_t slurm_partition);
  // Remembers that a limit keeps a job, as was just noted, where that is in one slurm_partition and
  // nothing else may hold it, and it has no plan. So thousands of them cost little.
  void remember_kept(JobIndex job);
  // Where a remembered job is kept still; -1: it is not known to be.
  std::int32_t known_kept_in(JobIndex job) {
    const KeptJob& kept = kept_jobs_[at(job)];
    if (kept.group < 0) return -1;
    KeptGroup& group = kept_groups_[static_cast<std::size_t>(kept.group)];
    if (group.as_of != rules_.limits().changes()) bring_up_to_date(group);
    return group.changes == kept.changes ? group.slurm_partition : -1;
  }
  // Whether one keeps it from a plan on these nodes.
  bool is_kept_from(JobIndex job, std::int32_t slurm_partition, const NodeSet& nodes);
  // What keeps a waiting job, also one that the loops need not have tried; 0: no limit.
  slurm::Reason why_kept(JobIndex job) const;
  // Whether a running job is ended for what its group, or it, has used.
  bool is_killed(JobIndex job, Seconds now) const { return rules_.is_killed(ruled(job), now); }
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

  // A job that starts has this time limit, though it may be tried with a lower one.
  Verdict select_nodes(JobIndex job, std::int32_t number, const NodeSet& available, Seconds now,
                       Seconds time_limit, StartedBy how, Pass& pass);
  // As the engine has started it; where is what select_nodes() found.
  void started(JobIndex job, Seconds now);
  // One that runs already; its record says whether its nodes are its alone.
  void runs(JobIndex job, std::int32_t slurm_partition, std::vector<NodeRow> rows, Seconds start);
  // Jobs have run before what is known begins.
  void ran_before() { free_->others_never_count(); }
  void finished(JobIndex job, Seconds now);
  // Waiting or running.
  void change_limits(JobIndex job, Seconds time_limit, Seconds time_min);
  // A job that waits, or has not come yet, says something else.
  void change(JobIndex job, SlurmJob to, Seconds now);
  // A waiting job is as it is now.
  void look_for_keepers(JobIndex job);

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
  RuledJob ruled(JobIndex job) const {
    const std::int32_t request = request_of_[at(job)];
    return {job, facts_[at(job)],
            request < 0 ? requests_->counted_in(records_[at(job)].slurm_partition)
                        : requests_->counted(request),
            records_[at(job)].time_limit};
  }
  bool is_independent(JobIndex job, Seconds now);
  std::int32_t group_of(std::int32_t association, std::int32_t qos, std::int32_t slurm_partition);
  void bring_up_to_date(KeptGroup& group) const;
  void forget_kept(JobIndex job) {
    if (has_room_for(job)) kept_jobs_[at(job)] = {};
  }
  bool reorder();
  void enqueue(JobIndex job);
  void forget_started();
  std::vector<std::int32_t> take_requests(const SlurmController& other, const Renumbering& jobs);
  static SlurmJob with_numbers(const SlurmController& other, JobIndex old, JobIndex job,
                               const Renumbering& jobs);
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
  std::unique_ptr<GpuMarks> marks_;
  std::unique_ptr<NodeChooser> chooser_;
  SlurmRules rules_;
  std::vector<std::int32_t> request_of_;
  std::vector<SlurmJob> facts_;
  std::vector<SlurmRecord> records_;
  std::vector<bool> held_back_;
  std::vector<KeptJob> kept_jobs_;
  std::vector<KeptGroup> kept_groups_;
  std::vector<QueueEntry> queue_;
  std::size_t gone_ = 0;  // entries of jobs that wait no longer
  std::size_t waiting_ = 0;
  std::vector<JobIndex> conditional_;  // waiting jobs that more than the queue may hold
  std::set<std::pair<Seconds, JobIndex>> ends_;
  std::unordered_set<JobIndex> kept_otherwise_;
  bool any_partition_down_;
  bool may_keep_;                           // any limit any job
  bool kept_jobs_matter_ = false;           // to those behind them
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
  NodeSet configured_;  // large enough, and not closed to the job
  NodeSet candidates_;  // of these, those that a loop offers
};

}  // namespace foretime
