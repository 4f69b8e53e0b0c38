#include "bindings/forward_bindings.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <tuple>
#include <utility>

#include "bindings/node_snapshot_bindings.hpp"
#include "bindings/owned_array.hpp"
#include "bindings/pbs_bindings.hpp"
#include "bindings/slurm_bindings.hpp"
#include "engine/engine.hpp"
#include "engine/forward.hpp"

namespace nb = nanobind;

namespace foretime {
namespace {

using Column = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<2>>;
using Clock = std::chrono::steady_clock;

// Taking the interpreter's lock can take as long as another thread's turn.
constexpr auto kBetweenSignalChecks = std::chrono::milliseconds(50);

void add_running(Beginning& beginning, Column start_time, Column processors, Column requested_time,
                 Column drain_time, Column time_limit) {
  for (std::size_t i = 0; i < start_time.shape(0); ++i) {
    Job job;
    job.submit = start_time(i);
    job.start = start_time(i);
    job.processors = processors(i);
    job.requested = requested_time(i);
    job.queue_time = requested_time(i);
    job.backfill_time = requested_time(i);
    job.drain_time = drain_time(i);
    job.time_limit = time_limit(i);
    beginning.running.push_back(job);
  }
}

std::vector<Job> waiting_jobs(Column submit_time, Column processors, Column requested_time,
                              Column queue_time, Column backfill_time, Column drain_time,
                              Column time_limit, Column priority) {
  std::vector<Job> jobs(submit_time.shape(0));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].submit = submit_time(i);
    jobs[i].processors = processors(i);
    jobs[i].requested = requested_time(i);
    jobs[i].queue_time = queue_time(i);
    jobs[i].backfill_time = backfill_time(i);
    jobs[i].drain_time = drain_time(i);
    jobs[i].time_limit = time_limit(i);
    jobs[i].priority = priority(i);
  }
  return jobs;
}

Arrivals arrivals(Column first, Column actual_runtime, Column submit_time, Column processors,
                  Column requested_time, Column queue_time, Column backfill_time, Column drain_time,
                  Column time_limit, Column priority, Column request_of) {
  Arrivals made;
  made.jobs = waiting_jobs(submit_time, processors, requested_time, queue_time, backfill_time,
                           drain_time, time_limit, priority);
  for (std::size_t i = 0; i < made.jobs.size(); ++i) {
    made.jobs[i].actual_runtime = actual_runtime(i);
  }
  for (std::size_t i = 0; i < first.shape(0); ++i) {
    made.first.push_back(static_cast<std::size_t>(first(i)));
  }
  for (std::size_t i = 0; i < request_of.shape(0); ++i) {
    made.request_of.push_back(static_cast<std::int32_t>(request_of(i)));
  }
  return made;
}

Table run(const Beginning& beginning, Rows actual_runtime, const Arrivals& arrivals,
          const std::optional<std::vector<std::size_t>>& only, std::size_t threads, Seconds until,
          double most_cpu_s) {
  const std::size_t jobs = beginning.running.size() + beginning.pending.size();
  const Samples samples{actual_runtime.shape(0), actual_runtime.data(), arrivals, until,
                        most_cpu_s};
  const std::size_t columns = only ? only->size() : jobs;
  nb::capsule owner;
  auto* start_time = owned_array<std::int64_t>(samples.count * columns, owner);
  auto checked = Clock::now();
  const auto interrupted = [&checked] {
    const auto now = Clock::now();
    if (now - checked < kBetweenSignalChecks) return false;
    checked = now;
    const nb::gil_scoped_acquire locked;
    return PyErr_CheckSignals() != 0;
  };
  bool complete = false;
  try {
    const nb::gil_scoped_release unlocked;
    complete = forward_runs(beginning, samples, only, threads, start_time, interrupted);
  } catch (const TookTooLong&) {
    PyErr_SetString(PyExc_TimeoutError, "a forward run has taken longer than it may");
    throw nb::python_error();
  }
  if (!complete) throw nb::python_error();
  return Table(start_time, {samples.count, columns}, owner);
}

// What is found of a moment, without the interpreter's lock.
template <class Stored, class Value>
nb::ndarray<nb::numpy, Stored, nb::ndim<1>> found_of(const Beginning& beginning,
                                                     std::vector<Value> (*find)(const Beginning&)) {
  std::vector<Value> found;
  {
    const nb::gil_scoped_release unlocked;
    found = find(beginning);
  }
  nb::capsule owner;
  auto* values = owned_array<Stored>(found.size(), owner);
  std::transform(found.begin(), found.end(), values,
                 [](Value value) { return static_cast<Stored>(value); });
  return {values, {found.size()}, owner};
}

// An engine that goes on from the moment, and the rows of the pending jobs by its indices.
std::pair<std::unique_ptr<Engine>, std::vector<std::size_t>> begun_engine(
    const Beginning& beginning, Column actual_runtime) {
  std::vector<std::size_t> order;
  auto engine = begun(beginning, actual_runtime.data(), order);
  return {std::move(engine), std::move(order)};
}

// Jobs that have not started, in the order of their indices.
nb::ndarray<nb::numpy, JobIndex, nb::ndim<1>> waiting_jobs_of(const Engine& engine) {
  std::vector<JobIndex> jobs = engine.submitted();
  const std::vector<JobIndex> pending = engine.queue();
  jobs.insert(jobs.end(), pending.begin(), pending.end());
  std::sort(jobs.begin(), jobs.end());
  nb::capsule owner;
  auto* values = owned_array<JobIndex>(jobs.size(), owner);
  std::copy(jobs.begin(), jobs.end(), values);
  return {values, {jobs.size()}, owner};
}

// Of the planner, if there is one, but for the planned starts: changed, broken, gained from and
// until.
std::optional<std::tuple<bool, bool, Seconds, Seconds>> plan_notes(const Engine& engine) {
  const std::optional<PlanNotes> notes = engine.plan_notes();
  if (!notes) return std::nullopt;
  return std::tuple{notes->changed, notes->broken, notes->gained_from, notes->gained_until};
}

// A row for each of the jobs: what a snapshot holds of it.
Table snapshot_rows(const Engine& engine, Column jobs) {
  constexpr std::size_t kColumns = 13;
  nb::capsule owner;
  const std::size_t rows = jobs.shape(0);
  auto* values = owned_array<std::int64_t>(rows * kColumns, owner);
  auto* value = values;
  for (std::size_t i = 0; i < rows; ++i) {
    const Job& job = engine.jobs().at(static_cast<std::size_t>(jobs(i)));
    for (const std::int64_t each :
         {job.submit, job.processors, job.requested, job.queue_time, job.backfill_time,
          job.drain_time, job.time_limit, job.priority, job.start, job.tie, job.planned_start,
          static_cast<std::int64_t>(job.guarded), engine.kept_start(jobs(i))}) {
      *value++ = each;
    }
  }
  return Table(values, {rows, kColumns}, owner);
}

// The rules of admission, made where there are none yet.
AdmissionRules& admission_of(Beginning& beginning) {
  if (!beginning.admission) {
    const std::size_t jobs = beginning.running.size() + beginning.pending.size();
    beginning.admission = std::make_shared<AdmissionRules>();
    beginning.admission->after_start.resize(jobs);
    beginning.admission->after_end.resize(jobs);
    beginning.admission->waits.resize(jobs);
    beginning.admission->groups_of.resize(jobs);
  }
  return *beginning.admission;
}

// One row for each event that a job waits for; places count the running jobs, then the pending
// ones.
void add_dependencies(Beginning& beginning, Column job, Column on, Column on_end, Column delay,
                      Column any_suffices) {
  AdmissionRules& rules = admission_of(beginning);
  for (std::size_t i = 0; i < job.shape(0); ++i) {
    auto& after = on_end(i) != 0 ? rules.after_end : rules.after_start;
    after.at(static_cast<std::size_t>(on(i))).push_back({job(i), delay(i)});
    AdmissionRules::Waits& waits = rules.waits.at(static_cast<std::size_t>(job(i)));
    ++waits.events;
    waits.any_suffices = any_suffices(i) != 0;
  }
}

void add_limit(Beginning& beginning, Column jobs, std::optional<std::int64_t> most_jobs,
               std::optional<Processors> most_processors) {
  AdmissionRules& rules = admission_of(beginning);
  for (std::size_t i = 0; i < jobs.shape(0); ++i) {
    rules.groups_of.at(static_cast<std::size_t>(jobs(i))).push_back(rules.limits.size());
  }
  rules.limits.push_back({most_jobs.value_or(kNever), most_processors.value_or(kNever)});
}

}  // namespace

void register_forward(nb::module_& m) {
  nb::class_<Beginning> beginning(m, "Beginning");
  register_node_snapshots(m, beginning);
  register_slurm_beginning(m, beginning);
  register_pbs_beginning(m, beginning);
  beginning
      .def(
          "__init__",
          [](Beginning* self, Processors machine, const Policy& policy, Seconds now,
             std::optional<Seconds> estimated_at, bool pass_due) {
            new (self) Beginning{.machine = machine,
                                 .policy = policy,
                                 .now = now,
                                 .reservations = {},
                                 .running = {},
                                 .pending = {},
                                 .estimated_at = estimated_at,
                                 .pass_due = pass_due,
                                 .plans = {},
                                 .nodes = {},
                                 .slurm = {},
                                 .pbs = {},
                                 .admission = {}};
          },
          nb::arg("machine_processors"), nb::arg("policy"), nb::arg("now"),
          nb::arg("estimated_at").none(), nb::arg("pass_due"))
      .def(
          "add_reservation",
          [](Beginning& self, Seconds start, Seconds duration, Processors processors) {
            self.reservations.push_back({start, duration, processors});
          },
          nb::arg("start"), nb::arg("duration"), nb::arg("processors"))
      .def("add_running", &add_running, nb::arg("start_time"), nb::arg("processors"),
           nb::arg("requested_time"), nb::arg("drain_time"), nb::arg("time_limit"))
      .def(
          "add_pending",
          [](Beginning& self, Column submit_time, Column processors, Column requested_time,
             Column queue_time, Column backfill_time, Column drain_time, Column time_limit,
             Column priority) {
            self.pending = waiting_jobs(submit_time, processors, requested_time, queue_time,
                                        backfill_time, drain_time, time_limit, priority);
          },
          nb::arg("submit_time"), nb::arg("processors"), nb::arg("requested_time"),
          nb::arg("queue_time"), nb::arg("backfill_time"), nb::arg("drain_time"),
          nb::arg("time_limit"), nb::arg("priority"))
      .def(
          "add_guard_notes",
          [](Beginning& self, Column planned_start, Column guarded) {
            for (std::size_t i = 0; i < self.pending.size(); ++i) {
              self.pending[i].planned_start = planned_start(i);
              self.pending[i].guarded = guarded(i) != 0;
            }
          },
          nb::arg("planned_start"), nb::arg("guarded"))
      .def(
          "add_plan_notes",
          [](Beginning& self, Column planned_start, bool changed, bool broken, Seconds gained_from,
             Seconds gained_until) {
            PlanNotes notes{{}, changed, broken, gained_from, gained_until};
            for (std::size_t i = 0; i < self.pending.size(); ++i) {
              notes.planned_start.push_back(planned_start(i));
            }
            self.plans = std::move(notes);
          },
          nb::arg("planned_start"), nb::arg("changed"), nb::arg("broken"), nb::arg("gained_from"),
          nb::arg("gained_until"))
      .def("add_dependencies", &add_dependencies, nb::arg("job"), nb::arg("on"), nb::arg("on_end"),
           nb::arg("delay"), nb::arg("any_suffices"))
      .def("add_limit", &add_limit, nb::arg("jobs"), nb::arg("most_jobs").none(),
           nb::arg("most_processors").none())
      .def("run", &run, nb::arg("actual_runtime"), nb::arg("arrivals"), nb::arg("only").none(),
           nb::arg("threads"), nb::arg("until"), nb::arg("most_cpu_s"))
      .def("first_pass",
           [](const Beginning& self) { return found_of<std::int8_t>(self, first_pass); })
      .def("first_plan",
           [](const Beginning& self) { return found_of<std::int64_t>(self, first_plan); })
      .def("engine", &begun_engine, nb::arg("actual_runtime"));

  nb::class_<Arrivals>(m, "Arrivals")
      .def(nb::init<>())
      .def_static("of", &arrivals, nb::arg("first"), nb::arg("actual_runtime"),
                  nb::arg("submit_time"), nb::arg("processors"), nb::arg("requested_time"),
                  nb::arg("queue_time"), nb::arg("backfill_time"), nb::arg("drain_time"),
                  nb::arg("time_limit"), nb::arg("priority"), nb::arg("request_of"));

  m.def("waiting_jobs", &waiting_jobs_of, nb::arg("engine"));
  m.def("plan_notes", &plan_notes, nb::arg("engine"));
  m.def(
      "estimated_at", [](const Engine& engine) { return engine.estimated_at(); },
      nb::arg("engine"));
  m.def("snapshot_rows", &snapshot_rows, nb::arg("engine"), nb::arg("jobs"));
}

}  // namespace foretime
