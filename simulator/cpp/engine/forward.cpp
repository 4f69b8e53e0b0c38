#include "engine/forward.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
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

// Which of the pending jobs are asked about: marked for each, and the columns of the result.
struct Asked {
  std::vector<bool> marked;          // by pending job
  std::vector<std::size_t> columns;  // by place in submission order, after the running jobs
};

// What all samples have in common.
struct Prepared {
  std::vector<std::size_t> order;  // in which the pending jobs are submitted
  std::optional<Asked> asked;      // none: every job
  std::optional<NodeScheduling> nodes;
  std::optional<SlurmState> slurm;
  std::int32_t first_request = 0;  // of the snapshot, among those that its Slurm knows
  std::optional<PbsState> pbs;
  std::shared_ptr<const AdmissionRules> rules;
};

// The number that each row of a snapshot has in the engines, and the other way round.
std::vector<JobIndex> numbers_of(std::size_t running, const std::vector<std::size_t>& order) {
  std::vector<JobIndex> numbers(running + order.size());
  for (std::size_t i = 0; i < running; ++i) numbers[i] = static_cast<JobIndex>(i);
  for (std::size_t at = 0; at < order.size(); ++at) {
    numbers[running + order[at]] = static_cast<JobIndex>(running + at);
  }
  return numbers;
}

SlurmState known_of(const SlurmBeginning& from, Seconds now, std::size_t running,
                    const std::vector<std::size_t>& order) {
  if (!from.known) return {from.site, now};
  const std::size_t known = from.known->controller.request_of().size();
  std::vector<JobIndex> rows(running + order.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t row = i < running ? i : running + order[i - running];
    rows[i] = row < known ? static_cast<JobIndex>(row) : -1;
  }
  return {*from.known, Renumbering(std::move(rows), known)};
}

// The same of a site's Slurm, whose jobs wait already as far as they do at the moment.
void prepare_slurm(const Beginning& beginning, Prepared& made) {
  if (!beginning.slurm) return;
  const SlurmBeginning& from = *beginning.slurm;
  const std::vector<std::size_t>& order = made.order;
  const std::size_t running = beginning.running.size();
  Engine engine(beginning.machine, beginning.policy, beginning.now);
  engine.use_slurm(known_of(from, beginning.now, running, order));
  if (made.rules) engine.admit_by(made.rules);
  SlurmPlanner& planner = engine.slurm_planner();
  SlurmController& controller = planner.controller();
  made.first_request = static_cast<std::int32_t>(controller.requests().size());
  for (const ResourceRequest& request : from.requests) planner.add_request(request);
  const std::vector<JobIndex> numbers = numbers_of(running, order);
  for (std::size_t row = 0; row < from.facts.size(); ++row) {
    controller.describe(numbers[row], from.facts[row]);
  }
  for (std::size_t i = 0; i < running; ++i) {
    const auto index = static_cast<JobIndex>(i);
    if (!from.known)
      planner.has_already(index, from.running[i].slurm_partition, from.running[i].nodes);
    engine.add_running(beginning.running[i]);
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    const auto index = static_cast<JobIndex>(running + at);
    const auto place = static_cast<std::size_t>(index);
    const std::vector<std::int32_t>& request_of = controller.request_of();
    if (place >= request_of.size() || request_of[place] < 0) {
      planner.set_request(index, made.first_request + from.request_of[order[at]]);
    }
    engine.submit(beginning.pending[order[at]]);
  }
  if (from.coarse) planner.run_coarsely();
  if (!from.known) planner.look_at_once();
  engine.resume_queue({}, beginning.pass_due);
  made.slurm.emplace(planner.state());
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
    if (!from.facts.empty()) planner.describe_running(index, from.facts[i], from.exclusive[i]);
    engine.add_running(beginning.running[i]);
    if (!from.facts.empty()) planner.is_charged(index, from.charged[i]);
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    const auto index = static_cast<JobIndex>(running + at);
    planner.set_request(index, from.request_of[order[at]]);
    const std::size_t place = running + order[at];
    if (!from.facts.empty()) planner.describe_accepted(index, from.facts[place]);
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

// Takes an engine to the moment that runs begin with.
void begin(Engine& engine, const Beginning& beginning, const Samples& samples,
           const Prepared& prepared, std::size_t sample) {
  const std::vector<std::size_t>& order = prepared.order;
  const std::optional<Asked>& only = prepared.asked;
  const std::optional<NodeScheduling>& nodes = prepared.nodes;
  const std::size_t running = beginning.running.size();
  const std::size_t jobs = running + beginning.pending.size();
  const Seconds* actual_runtime = samples.actual_runtime + sample * jobs;
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
      if (!arrivals.owner_of.empty() && prepared.pbs) {
        engine.pbs_planner().describe(
            arriving, arrivals.pbs_owners[static_cast<std::size_t>(arrivals.owner_of[i])]);
      } else if (!arrivals.owner_of.empty()) {
        engine.slurm_planner().controller().describe(
            arriving, arrivals.owners[static_cast<std::size_t>(arrivals.owner_of[i])]);
      }
      if (nodes || prepared.slurm || prepared.pbs) {
        engine.on_nodes().set_request(arriving, prepared.first_request + arrivals.request_of[i]);
      }
    }
  }
  if (beginning.plans || prepared.slurm || prepared.pbs || !beginning.pass_due) {
    engine.resume_queue(notes_by_index(beginning, order), beginning.pass_due);
  }
}

double thread_cpu_s() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

// Runs an engine as far as is asked for; whether all who are awaited have started.
bool finish_in_time(Engine& engine, const Samples& samples) {
  if (std::isinf(samples.most_cpu_s)) return engine.finish_awaited(samples.until);
  const double until_s = thread_cpu_s() + samples.most_cpu_s;
  engine.set_interrupted([until_s] { return thread_cpu_s() > until_s; });
  try {
    return engine.finish_awaited(samples.until);
  } catch (const Interrupted&) {
    throw TookTooLong();
  }
}

void run_sample(const Beginning& beginning, const Samples& samples, const Prepared& prepared,
                std::size_t sample, Seconds* start_time) {
  Engine engine(beginning.machine, beginning.policy, beginning.now, beginning.reservations);
  begin(engine, beginning, samples, prepared, sample);
  const std::vector<std::size_t>& order = prepared.order;
  const std::optional<Asked>& only = prepared.asked;
  const std::size_t running = beginning.running.size();
  const std::size_t jobs = running + beginning.pending.size();
  // A limit of the site may never let a job start.
  if (!finish_in_time(engine, samples) && samples.until == kNever && !prepared.slurm &&
      !prepared.pbs) {
    throw std::logic_error("a forward run left jobs waiting for ever");
  }
  const auto start_of = [&engine](std::size_t index) {
    const Job& job = engine.jobs()[index];
    return job.state == State::kSubmitted || job.state == State::kPending ? kNever : job.start;
  };
  if (only) {
    Seconds* start = start_time + sample * only->columns.size();
    for (const std::size_t column : only->columns) *start++ = start_of(column);
    return;
  }
  Seconds* row = start_time + sample * jobs;
  for (std::size_t i = 0; i < running; ++i) row[i] = engine.jobs()[i].start;
  for (std::size_t at = 0; at < order.size(); ++at) {
    row[running + order[at]] = start_of(running + at);
  }
}

Prepared prepare(const Beginning& beginning, const std::optional<std::vector<std::size_t>>& only) {
  Prepared made;
  made.order = in_submission_order(beginning.pending);
  if (only) made.asked = asked_of(*only, made.order, beginning.running.size());
  made.nodes = nodes_of(beginning, made.order);
  if (auto pbs = pbs_of(beginning, made.order)) made.pbs.emplace(std::move(*pbs));
  made.rules = rules_of(beginning, made.order);
  prepare_slurm(beginning, made);
  return made;
}

// An engine after one pass at the moment itself, beyond which all that run go on: who starts now
// does so beside them.
std::unique_ptr<Engine> settled(const Beginning& beginning, std::vector<std::size_t>& order) {
  const std::vector<Seconds> for_ever(beginning.running.size() + beginning.pending.size(), kNever);
  std::unique_ptr<Engine> engine = begun(beginning, for_ever.data(), order);
  engine->settle();
  return engine;
}

}  // namespace

std::vector<StartedBy> first_pass(const Beginning& beginning) {
  std::vector<std::size_t> order;
  const std::unique_ptr<Engine> engine = settled(beginning, order);
  std::vector<StartedBy> started(order.size(), StartedBy::kNotStarted);
  for (std::size_t at = 0; at < order.size(); ++at) {
    const Job& job = engine->jobs()[beginning.running.size() + at];
    if (job.state == State::kRunning) started[order[at]] = job.started_by;
  }
  return started;
}

std::vector<Seconds> first_plan(const Beginning& beginning) {
  std::vector<std::size_t> order;
  const std::unique_ptr<Engine> engine = settled(beginning, order);
  std::vector<Seconds> start(order.size(), kNever);
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::size_t index = beginning.running.size() + at;
    const Job& job = engine->jobs()[index];
    start[order[at]] = job.state == State::kRunning
                           ? job.start
                           : engine->planned_start(static_cast<JobIndex>(index));
  }
  return start;
}

std::unique_ptr<Engine> begun(const Beginning& beginning, const Seconds* actual_runtime,
                              std::vector<std::size_t>& order) {
  const Samples samples{1, actual_runtime, {}, kNever};
  const Prepared prepared = prepare(beginning, std::nullopt);
  auto engine = std::make_unique<Engine>(beginning.machine, beginning.policy, beginning.now,
                                         beginning.reservations);
  begin(*engine, beginning, samples, prepared, 0);
  order = prepared.order;
  return engine;
}

bool forward_runs(const Beginning& beginning, const Samples& samples,
                  const std::optional<std::vector<std::size_t>>& only, std::size_t threads,
                  Seconds* start_time, const std::function<bool()>& interrupted) {
  const Prepared prepared = prepare(beginning, only);
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
