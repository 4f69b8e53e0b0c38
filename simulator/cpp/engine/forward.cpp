#include "engine/forward.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "engine/engine.hpp"

namespace foretime {
namespace {

// The pending jobs in the order of their submission, in which an engine takes them at once.
std::vector<std::size_t> in_submission_order(const std::vector<Job>& pending) {
  std::vector<std::size_t> order(pending.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return pending[a].submit < pending[b].submit;
  });
  return order;
}

PlanNotes notes_by_index(const Beginning& beginning, const std::vector<std::size_t>& order) {
  if (!beginning.plans) return {};
  PlanNotes notes = *beginning.plans;
  notes.planned_start.assign(beginning.running.size() + order.size(), kNever);
  for (std::size_t at = 0; at < order.size(); ++at) {
    notes.planned_start[beginning.running.size() + at] = beginning.plans->planned_start[order[at]];
  }
  return notes;
}

// The nodes with what running jobs have of them and waiting ones are planned for: worked out once,
// and copied for each sample.
std::optional<NodeScheduling> nodes_of(const Beginning& beginning,
                                       const std::vector<std::size_t>& order) {
  if (!beginning.nodes) return std::nullopt;
  const NodeBeginning& from = *beginning.nodes;
  Engine engine(beginning.machine, beginning.policy, beginning.now, beginning.reservations);
  engine.use_nodes(from.machine);
  if (beginning.estimated_at) engine.resume_estimates(*beginning.estimated_at);
  for (std::size_t i = 0; i < beginning.running.size(); ++i) {
    const NodeBeginning::Held& has = from.running[i];
    NodePlanner& planner = engine.node_planner();
    const auto index = static_cast<JobIndex>(i);
    planner.place(index, has.slurm_partition, engine.nodes().pool.shares_on(has.nodes));
    engine.add_running(beginning.running[i]);
    planner.end_is_known(index);
  }
  NodeScheduling nodes = engine.nodes();
  nodes.requests = from.requests;
  for (const ResourceRequest& request : *from.requests) nodes.note_closures(request);
  nodes.request_of.assign(beginning.running.size(), 0);
  for (const std::size_t i : order) nodes.request_of.push_back(from.request_of[i]);
  for (std::size_t at = 0; beginning.plans && !from.planned.empty() && at < order.size(); ++at) {
    const NodeBeginning::Held& held = from.planned[order[at]];
    const Seconds start = beginning.plans->planned_start[order[at]];
    if (held.slurm_partition < 0 || start == kNever) continue;
    NodeReservation reservation{
        static_cast<JobIndex>(beginning.running.size() + at), held.slurm_partition, start,
        start + beginning.pending[order[at]].backfill_time, nodes.pool.shares_on(held.nodes)};
    nodes.pool.reserve(reservation.shares, reservation.slurm_partition, beginning.now,
                       reservation.start, reservation.end);
    nodes.reservations.push_back(std::move(reservation));
  }
  return nodes;
}

// The same of a site's Slurm.
std::optional<SlurmState> slurm_of(const Beginning& beginning,
                                   const std::vector<std::size_t>& order) {
  if (!beginning.slurm) return std::nullopt;
  const SlurmBeginning& from = *beginning.slurm;
  Engine engine(beginning.machine, beginning.policy, beginning.now);
  engine.use_slurm(SlurmState(from.site, beginning.now));
  SlurmPlanner& planner = engine.slurm_planner();
  for (const ResourceRequest& request : from.requests) planner.add_request(request);
  for (std::size_t i = 0; i < beginning.running.size(); ++i) {
    const auto index = static_cast<JobIndex>(i);
    if (!from.running_facts.empty()) planner.controller().describe(index, from.running_facts[i]);
    planner.has_already(index, from.running[i].slurm_partition, from.running[i].nodes);
    engine.add_running(beginning.running[i]);
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    const auto index = static_cast<JobIndex>(beginning.running.size() + at);
    planner.set_request(index, from.request_of[order[at]]);
    if (!from.pending_facts.empty()) {
      planner.controller().describe(index, from.pending_facts[order[at]]);
    }
  }
  planner.begin_with(from.notes);
  return planner.state();
}

// The same of a site's PBS.
std::optional<PbsState> pbs_of(const Beginning& beginning, const std::vector<std::size_t>& order) {
  if (!beginning.pbs) return std::nullopt;
  const PbsBeginning& from = *beginning.pbs;
  const std::size_t running = beginning.running.size();
  Engine engine(beginning.machine, beginning.policy, beginning.now);
  engine.use_pbs(PbsState(from.site, beginning.now));
  PbsPlanner& planner = engine.pbs_planner();
  for (const ResourceRequest& request : from.requests) planner.add_request(request);
  if (from.notes) planner.begin_with(*from.notes);
  for (std::size_t i = 0; i < running; ++i) {
    const auto index = static_cast<JobIndex>(i);
    planner.has_already(index, from.running[i].slurm_partition, from.running[i].nodes);
    engine.add_running(beginning.running[i]);
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    const auto index = static_cast<JobIndex>(running + at);
    planner.set_request(index, from.request_of[order[at]]);
    const std::size_t place = running + order[at];
    if (from.notes && place < from.notes->facts.size()) {
      planner.describe(index, from.notes->facts[place]);
    }
  }
  return planner.state();
}

// By the indices that jobs have in the engines.
std::shared_ptr<const AdmissionRules> rules_of(const Beginning& beginning,
                                               const std::vector<std::size_t>& order) {
  if (!beginning.admission) return nullptr;
  std::vector<std::size_t> index(beginning.running.size() + order.size());
  std::iota(index.begin(), index.end(), std::size_t{0});
  for (std::size_t at = 0; at < order.size(); ++at) {
    index[beginning.running.size() + order[at]] = beginning.running.size() + at;
  }
  const AdmissionRules& from = *beginning.admission;
  auto rules = std::make_shared<AdmissionRules>(from);
  for (std::size_t place = 0; place < index.size(); ++place) {
    const std::size_t at = index[place];
    rules->waits[at] = from.waits[place];
    rules->groups_of[at] = from.groups_of[place];
    rules->after_start[at] = from.after_start[place];
    rules->after_end[at] = from.after_end[place];
    for (auto* successors : {&rules->after_start[at], &rules->after_end[at]}) {
      for (AdmissionRules::Successor& successor : *successors) {
        successor.job = static_cast<JobIndex>(index[static_cast<std::size_t>(successor.job)]);
      }
    }
  }
  return rules;
}

// Which of the pending jobs are asked about: marked for each, and the columns of the result.
struct Asked {
  std::vector<bool> marked;          // by pending job
  std::vector<std::size_t> columns;  // by place in submission order, after the running jobs
};

Asked asked_of(const std::vector<std::size_t>& only, const std::vector<std::size_t>& order,
               std::size_t running) {
  Asked asked{std::vector<bool>(order.size(), false), {}};
  std::vector<std::size_t> place(order.size());
  for (std::size_t at = 0; at < order.size(); ++at) place[order[at]] = at;
  for (const std::size_t i : only) {
    asked.marked[i] = true;
    asked.columns.push_back(running + place[i]);
  }
  return asked;
}

// What all samples have in common.
struct Prepared {
  std::vector<std::size_t> order;  // in which the pending jobs are submitted
  std::optional<Asked> asked;      // none: every job
  std::optional<NodeScheduling> nodes;
  std::optional<SlurmState> slurm;
  std::optional<PbsState> pbs;
  std::shared_ptr<const AdmissionRules> rules;
};

void run_sample(const Beginning& beginning, const Samples& samples, const Prepared& prepared,
                std::size_t sample, Seconds* start_time) {
  const std::vector<std::size_t>& order = prepared.order;
  const std::optional<Asked>& only = prepared.asked;
  const std::optional<NodeScheduling>& nodes = prepared.nodes;
  const std::size_t running = beginning.running.size();
  const std::size_t jobs = running + beginning.pending.size();
  const Seconds* actual_runtime = samples.actual_runtime + sample * jobs;
  Engine engine(beginning.machine, beginning.policy, beginning.now, beginning.reservations);
  if (nodes) engine.use_nodes(*nodes);
  if (prepared.slurm) engine.use_slurm(*prepared.slurm);
  if (prepared.pbs) engine.use_pbs(*prepared.pbs);
  if (prepared.rules) engine.admit_by(prepared.rules);
  engine.reserve(jobs);
  if (beginning.estimated_at) engine.resume_estimates(*beginning.estimated_at);
  for (std::size_t i = 0; i < running; ++i) {
    Job job = beginning.running[i];
    job.actual_runtime = actual_runtime[i];
    engine.add_running(job);
  }
  for (const std::size_t i : order) {
    Job job = beginning.pending[i];
    job.actual_runtime = actual_runtime[running + i];
    job.awaited = !only || only->marked[i];
    engine.submit(job);
  }
  if (!samples.arrivals.first.empty()) {
    const Arrivals& arrivals = samples.arrivals;
    for (std::size_t i = arrivals.first[sample]; i < arrivals.first[sample + 1]; ++i) {
      const JobIndex arriving = engine.submit(arrivals.jobs[i]);
      if (nodes || prepared.slurm || prepared.pbs) {
        engine.on_nodes().set_request(arriving, arrivals.request_of[i]);
      }
    }
  }
  if (beginning.plans || prepared.slurm || prepared.pbs || !beginning.pass_due) {
    engine.resume_queue(notes_by_index(beginning, order), beginning.pass_due);
  }
  if (!engine.finish_awaited()) throw std::logic_error("a forward run left jobs waiting for ever");
  if (only) {
    Seconds* start = start_time + sample * only->columns.size();
    for (const std::size_t column : only->columns) *start++ = engine.jobs()[column].start;
    return;
  }
  Seconds* row = start_time + sample * jobs;
  for (std::size_t i = 0; i < running; ++i) row[i] = engine.jobs()[i].start;
  for (std::size_t at = 0; at < order.size(); ++at) {
    row[running + order[at]] = engine.jobs()[running + at].start;
  }
}

}  // namespace

bool forward_runs(const Beginning& beginning, const Samples& samples,
                  const std::optional<std::vector<std::size_t>>& only, std::size_t threads,
                  Seconds* start_time, const std::function<bool()>& interrupted) {
  const Prepared prepared = [&] {
    Prepared made{in_submission_order(beginning.pending), {}, {}, {}, {}, {}};
    if (only) made.asked = asked_of(*only, made.order, beginning.running.size());
    made.nodes = nodes_of(beginning, made.order);
    if (auto slurm = slurm_of(beginning, made.order)) made.slurm.emplace(std::move(*slurm));
    if (auto pbs = pbs_of(beginning, made.order)) made.pbs.emplace(std::move(*pbs));
    made.rules = rules_of(beginning, made.order);
    return made;
  }();
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::exception_ptr failure;
  std::mutex failing;
  const auto work = [&](bool calling_thread) {
    try {
      while (!stop) {
        const std::size_t sample = next++;
        if (sample >= samples.count) return;
        run_sample(beginning, samples, prepared, sample, start_time);
        if (calling_thread && interrupted()) stop = true;
      }
    } catch (...) {
      stop = true;
      const std::scoped_lock lock(failing);
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
