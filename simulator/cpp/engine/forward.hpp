// Forward runs: many futures of one moment, each in an engine of its own, on several threads.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "core/admission.hpp"
#include "core/types.hpp"
#include "nodes/node_scheduling.hpp"
#include "planning/pbs/pbs_planner.hpp"
#include "planning/planner.hpp"
#include "planning/slurm/slurm_planner.hpp"

namespace foretime {

class Engine;

// Nodes in place of a flat pool, and what jobs have and ask of them.
struct NodeBeginning {
  NodeMachine machine;
  std::shared_ptr<std::vector<ResourceRequest>> requests =
      std::make_shared<std::vector<ResourceRequest>>();
  std::vector<std::int32_t> request_of;  // of each pending job
  struct Held {
    std::int32_t slurm_partition = -1;  // none: nothing
    std::vector<NodeRow> nodes;
  };
  std::vector<Held> running;  // of each
  std::vector<Held> planned;  // of each pending job with a planned start; empty if none are known
};

// A site's Slurm in place of a flat pool, and what its jobs have, ask and say.
struct SlurmBeginning {
  std::shared_ptr<const SlurmSite> site;
  std::vector<ResourceRequest> requests;
  std::vector<std::int32_t> request_of;      // of each pending job
  std::vector<NodeBeginning::Held> running;  // of each
  // What is known of an engine's slurmctld, by row: the running jobs, then the pending ones, of
  // which more may have been added behind.
  std::shared_ptr<const SlurmState> known;
  bool coarse = false;
  // Or of a real one's jobs, by row; empty: nothing.
  std::vector<SlurmJob> facts;
};

// A site's PBS in place of a flat pool, and what its jobs have and ask.
struct PbsBeginning {
  std::shared_ptr<const PbsSite> site;
  std::vector<ResourceRequest> requests;
  std::vector<std::int32_t> request_of;      // of each pending job
  std::vector<NodeBeginning::Held> running;  // of each
  std::optional<PbsNotes> notes;             // what is known of an engine's PBS
  // Or of a real one's jobs, by row: whose they are, and of running ones whether their hosts are
  // their own, and for how many seconds fair share has charged them. Empty: nothing.
  std::vector<PbsJobFacts> facts;
  std::vector<bool> exclusive;
  std::vector<Seconds> charged;
};

// What every run begins with. Actual runtimes are those of the samples.
struct Beginning {
  Processors machine = 0;
  Policy policy;
  Seconds now = 0;
  std::vector<AdvanceReservation> reservations;
  std::vector<Job> running;  // in the order in which they started
  std::vector<Job> pending;  // or to be submitted later; ties in this order
  // See Engine::resume_estimates and Engine::resume_queue; planned starts are of the pending jobs.
  std::optional<Seconds> estimated_at;
  bool pass_due = true;
  std::optional<PlanNotes> plans;
  std::optional<NodeBeginning> nodes;
  std::optional<SlurmBeginning> slurm;
  std::optional<PbsBeginning> pbs;
  // By place: the running jobs, then the pending ones; null if nothing keeps jobs from the queue.
  std::shared_ptr<AdmissionRules> admission;
};

// Jobs that are submitted in one sample only.
struct Arrivals {
  std::vector<Job> jobs;           // those of the first sample first
  std::vector<std::size_t> first;  // of each sample, and the end; empty if there are no arrivals
  std::vector<std::int32_t> request_of;  // on nodes
  // Under Slurm or PBS: whose they may be, and which of these each is; empty: nobody's.
  std::vector<SlurmJob> owners;
  std::vector<PbsJobFacts> pbs_owners;
  std::vector<std::int32_t> owner_of;
};

struct Samples {
  std::size_t count = 0;
  const Seconds* actual_runtime = nullptr;  // a row a sample: the running jobs, then the pending
  Arrivals arrivals;
  Seconds until = kNever;  // runs end there; who has not started by then never does
  double most_cpu_s = std::numeric_limits<double>::infinity();  // of each
};

// A run has taken more of a processor's time than it may.
struct TookTooLong {};

// How each pending job starts in one pass at the moment itself, all that run going on beyond it.
std::vector<StartedBy> first_pass(const Beginning& beginning);

// When each pending job starts by the plan that this pass makes; kNever where none is made for it.
std::vector<Seconds> first_plan(const Beginning& beginning);

// An engine at the moment itself, for whoever lives on from there step by step; jobs take
// `actual_runtime`, the running ones first. Their indices are the running jobs', then the pending
// ones' in the order of submission, which is written to `order` as rows of the pending jobs.
std::unique_ptr<Engine> begun(const Beginning& beginning, const Seconds* actual_runtime,
                              std::vector<std::size_t>& order);

// Runs every sample until all pending jobs have started, or only until those at `only` have (each
// named once), and writes a row of start times: running jobs first, or just of those, in their
// order.
//
// `interrupted` is called between samples, on the calling thread alone: once it is true, or a
// sample has thrown, no more are begun. True if every sample was run. Throws TookTooLong.
bool forward_runs(const Beginning& beginning, const Samples& samples,
                  const std::optional<std::vector<std::size_t>>& only, std::size_t threads,
                  Seconds* start_time, const std::function<bool()>& interrupted);

}  // namespace foretime
