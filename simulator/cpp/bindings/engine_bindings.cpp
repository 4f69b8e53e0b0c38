#include "bindings/engine_bindings.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <utility>

#include "bindings/choices.hpp"
#include "bindings/interruption.hpp"
#include "bindings/numpy_columns.hpp"
#include "bindings/pbs_bindings.hpp"
#include "bindings/python_policies.hpp"
#include "bindings/slurm_bindings.hpp"
#include "engine/engine.hpp"

namespace nb = nanobind;

namespace foretime {
namespace {

void use_nodes(Engine& engine, std::vector<NodeGroup> groups,
               const std::vector<std::optional<std::int64_t>>& most_nodes_in_use, bool record) {
  NodeMachine machine{std::move(groups), {}};
  for (const auto& most : most_nodes_in_use) {
    machine.most_nodes_in_use.push_back(most.value_or(kNever));
  }
  engine.use_nodes(machine);
  if (record) engine.on_nodes().record();
}

using Rows = nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void use_bgp(Engine& engine, In nodes, Rows conflicts) {
  BgpMachine machine;
  for (std::size_t i = 0; i < nodes.shape(0); ++i) {
    machine.nodes.push_back(nodes(i));
    machine.conflicts.emplace_back(nodes.shape(0));
    for (std::size_t j = 0; j < nodes.shape(0); ++j) {
      if (conflicts(i, j)) machine.conflicts.back().insert(j);
    }
  }
  engine.use_bgp(std::move(machine));
}

using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

using Moves = std::pair<Out<JobIndex>, Out<JobIndex>>;

Moves take_moves(Engine& engine) {
  auto started = to_numpy(engine.take_started());
  auto finished = to_numpy(engine.take_finished());
  return {std::move(started), std::move(finished)};
}

template <class Work>
Moves moves_after(Engine& engine, Work work) {
  interruptibly(engine, [&] { work(engine); });
  return take_moves(engine);
}

const Job& at(const Engine& engine, JobIndex index) {
  return engine.jobs().at(static_cast<std::size_t>(index));
}

// One value a job, of every job so far: of its index.
template <class T, class Get>
Out<T> column(const Engine& engine, Get get) {
  const auto jobs = static_cast<JobIndex>(engine.jobs().size());
  std::vector<T> values;
  values.reserve(engine.jobs().size());
  for (JobIndex index = 0; index < jobs; ++index) values.push_back(static_cast<T>(get(index)));
  return to_numpy(std::move(values));
}

// The same, of what the engine knows of a job.
template <class T>
Out<T> column(const Engine& engine, auto Job::* member) {
  return column<T>(engine, [&](JobIndex index) { return at(engine, index).*member; });
}

Job make_job(Seconds submit, Processors processors, Seconds actual_runtime, Seconds requested_time,
             Seconds queue_time, Seconds backfill_time, Seconds drain_time, Seconds time_limit,
             std::int64_t priority) {
  Job job;
  job.submit = submit;
  job.processors = processors;
  job.actual_runtime = actual_runtime;
  job.requested = requested_time;
  job.queue_time = queue_time;
  job.backfill_time = backfill_time;
  job.drain_time = drain_time;
  job.time_limit = time_limit;
  job.priority = priority;
  return job;
}

void submit_all(Engine& engine, In submit, In processors, In actual_runtime, In requested_time,
                In queue_time, In backfill_time, In drain_time, In time_limit, In priority) {
  engine.reserve(engine.jobs().size() + submit.shape(0));
  for (std::size_t i = 0; i < submit.shape(0); ++i) {
    engine.submit(make_job(submit(i), processors(i), actual_runtime(i), requested_time(i),
                           queue_time(i), backfill_time(i), drain_time(i), time_limit(i),
                           priority(i)));
  }
}

void describe_for_slack(Engine& engine, Doubles user_priority, Doubles political_priority,
                        std::optional<Doubles> average_wait_s) {
  std::vector<SlackJob> jobs(user_priority.shape(0));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].user_priority = user_priority(i);
    jobs[i].political_priority = political_priority(i);
    if (average_wait_s) jobs[i].average_wait = (*average_wait_s)(i);
  }
  engine.describe_for_slack(std::move(jobs));
}

}  // namespace

void register_engine(nb::module_& m) {
  nb::enum_<State>(m, "State")
      .value("SUBMITTED", State::kSubmitted)
      .value("PENDING", State::kPending)
      .value("RUNNING", State::kRunning)
      .value("FINISHED", State::kFinished)
      .value("CANCELLED", State::kCancelled);

  nb::class_<PolicySwitching>(m, "PolicySwitching")
      .def(nb::init<>())
      .def_rw("decider", &PolicySwitching::decider)
      .def_rw("orders", &PolicySwitching::orders)
      .def_rw("qualities", &PolicySwitching::qualities)
      .def_rw("lower_bound_s", &PolicySwitching::lower_bound)
      .def_rw("upper_bound_s", &PolicySwitching::upper_bound)
      .def_rw("least_waiting", &PolicySwitching::least_waiting)
      .def_rw("slackness", &PolicySwitching::slackness)
      .def_rw("first_starts", &PolicySwitching::first_starts, nb::arg().none())
      .def_rw("horizon_s", &PolicySwitching::horizon, nb::arg().none())
      .def_rw("slowdown_bound_s", &PolicySwitching::slowdown_bound)
      .def_rw("interactive_s", &PolicySwitching::interactive)
      .def_rw("saturation", &PolicySwitching::saturation)
      .def_rw("one_list", &PolicySwitching::one_list);
  nb::class_<SwitchingCounters>(m, "SwitchingCounters")
      .def_ro("tries", &SwitchingCounters::tries)
      .def_ro("switches", &SwitchingCounters::switches)
      .def_ro("waiting_at_tries", &SwitchingCounters::waiting_at_tries)
      .def_prop_ro("cases", [](const SwitchingCounters& counted) {
        return std::vector<std::int64_t>(counted.cases.begin(), counted.cases.end());
      });
  // For the tests of Streit 2002, table 1.
  m.def("chosen_order", &chosen_order, nb::arg("decider"), nb::arg("ranks"), nb::arg("current"));
  m.def("case_of_table_1", &case_of_table_1, nb::arg("ranks"), nb::arg("current"));

  nb::class_<Guard>(m, "Guard")
      .def(nb::init<Seconds, GuardBy, double>(), nb::arg("bound_s"), nb::arg("by"),
           nb::arg("share"));
  nb::class_<Policy>(m, "Policy")
      .def(nb::init<>())
      .def_rw("order", &Policy::order)
      .def_rw("correction", &Policy::correction)
      .def_rw("correction_steps", &Policy::correction_steps, nb::arg().none())
      .def_rw("event_order", &Policy::event_order)
      .def_rw("scheduling_interval_s", &Policy::interval, nb::arg().none())
      .def_rw("backfill", &Policy::backfill)
      .def_rw("guard", &Policy::guard, nb::arg().none())
      .def_rw("settings", &Policy::settings)
      .def_rw("switching", &Policy::switching, nb::arg().none());

  nb::class_<Job>(m, "Job")
      .def_ro("submit_time", &Job::submit)
      .def_ro("processors", &Job::processors)
      .def_ro("actual_runtime", &Job::actual_runtime)
      .def_ro("requested_time", &Job::requested)
      .def_ro("queue_time", &Job::queue_time)
      .def_ro("backfill_time", &Job::backfill_time)
      .def_ro("drain_time", &Job::drain_time)
      .def_ro("time_limit", &Job::time_limit)
      .def_ro("priority", &Job::priority)
      .def_ro("start_time", &Job::start)
      .def_ro("end_time", &Job::end)
      .def_ro("corrections", &Job::corrections)
      .def_ro("used_up", &Job::used_up)
      .def_prop_ro("started_by", [](const Job& job) { return static_cast<int>(job.started_by); })
      .def_ro("state", &Job::state);

  nb::class_<Counters>(m, "Counters")
      .def_ro("passes", &Counters::passes)
      .def_ro("completions", &Counters::completions)
      .def_ro("expiries", &Counters::expiries)
      .def_ro("submissions", &Counters::submissions)
      .def_ro("guard_activations", &Counters::guard_activations)
      .def_ro("deepest_queue", &Counters::deepest_queue);

  nb::class_<Engine> engine(m, "Engine", nb::type_slots(engine_slots.data()));
  register_python_policies(engine);
  register_slurm(m, engine);
  register_pbs(m, engine);
  engine
      .def(
          "__init__",
          [](Engine* self, Processors machine, const Policy& policy, Seconds now,
             const std::vector<std::tuple<Seconds, Seconds, Processors>>& reservations) {
            std::vector<AdvanceReservation> claims;
            claims.reserve(reservations.size());
            for (const auto& [start, duration, processors] : reservations) {
              claims.push_back({start, duration, processors});
            }
            new (self) Engine(machine, policy, now, std::move(claims));
          },
          nb::arg("machine_processors"), nb::arg("policy"), nb::arg("now"), nb::arg("reservations"))
      .def("use_nodes", &use_nodes, nb::arg("groups"), nb::arg("most_nodes_in_use"),
           nb::arg("record"))
      .def(
          "add_request",
          [](Engine& engine, ResourceRequest request) {
            return engine.on_nodes().add_request(std::move(request));
          },
          nb::arg("request"))
      .def(
          "has_room",
          [](Engine& engine, std::int32_t request) { return engine.on_nodes().has_room(request); },
          nb::arg("request"))
      .def(
          "set_request",
          [](Engine& engine, JobIndex index, std::int32_t request) {
            engine.on_nodes().set_request(index, request);
          },
          nb::arg("index"), nb::arg("request"))
      .def(
          "set_requests",
          [](Engine& engine, In requests) {
            OnNodes& planner = engine.on_nodes();
            for (std::size_t i = 0; i < requests.shape(0); ++i) {
              planner.set_request(static_cast<JobIndex>(i), static_cast<std::int32_t>(requests(i)));
            }
          },
          nb::arg("requests"))
      .def("slurm_partitions",
           [](const Engine& engine) {
             return column<std::int32_t>(engine, [&](JobIndex index) {
               return engine.on_nodes().slurm_partition_of(index);
             });
           })
      .def("allocated",
           [](const Engine& engine) {
             return to_numpy(std::vector<std::int64_t>(engine.on_nodes().records()));
           })
      .def("use_bgp", &use_bgp, nb::arg("nodes"), nb::arg("conflicts"))
      .def(
          "has_room_on_bgp",
          [](const Engine& engine, Processors nodes) { return engine.bgp_pool().any_free(nodes); },
          nb::arg("nodes"))
      .def(
          "is_free_on_bgp",
          [](const Engine& engine, std::size_t bgp_partition) {
            return engine.bgp_pool().is_free(bgp_partition);
          },
          nb::arg("bgp_partition"))
      .def("bgp_partitions",
           [](const Engine& engine) {
             return column<std::int32_t>(
                 engine, [&](JobIndex index) { return engine.bgp_pool().partition_of(index); });
           })
      .def(
          "submit",
          [](Engine& engine, Seconds submit, Processors processors, Seconds actual_runtime,
             Seconds requested_time, Seconds queue_time, Seconds backfill_time, Seconds drain_time,
             Seconds time_limit, std::int64_t priority) {
            return engine.submit(make_job(submit, processors, actual_runtime, requested_time,
                                          queue_time, backfill_time, drain_time, time_limit,
                                          priority));
          },
          nb::arg("submit_time"), nb::arg("processors"), nb::arg("actual_runtime"),
          nb::arg("requested_time"), nb::arg("queue_time"), nb::arg("backfill_time"),
          nb::arg("drain_time"), nb::arg("time_limit"), nb::arg("priority"))
      .def("submit_all", &submit_all, nb::arg("submit_time"), nb::arg("processors"),
           nb::arg("actual_runtime"), nb::arg("requested_time"), nb::arg("queue_time"),
           nb::arg("backfill_time"), nb::arg("drain_time"), nb::arg("time_limit"),
           nb::arg("priority"))
      .def(
          "add_running",
          [](Engine& engine, Seconds submit, Seconds start, Processors processors,
             Seconds actual_runtime, Seconds requested_time, Seconds drain_time, Seconds time_limit,
             std::optional<std::size_t> bgp_partition) {
            Job job = make_job(submit, processors, actual_runtime, requested_time, requested_time,
                               requested_time, drain_time, time_limit, 0);
            job.start = start;
            if (bgp_partition) {
              const auto index = static_cast<JobIndex>(engine.jobs().size());
              engine.bgp_planner().place(index, processors, *bgp_partition);
            }
            return engine.add_running(job);
          },
          nb::arg("submit_time"), nb::arg("start_time"), nb::arg("processors"),
          nb::arg("actual_runtime"), nb::arg("requested_time"), nb::arg("drain_time"),
          nb::arg("time_limit"), nb::arg("bgp_partition") = nb::none())
      .def(
          "update",
          [](Engine& engine, JobIndex index, Seconds actual_runtime, Seconds requested_time,
             Seconds queue_time, Seconds backfill_time, Seconds drain_time, Seconds time_limit,
             std::int64_t priority) {
            engine.update(index, make_job(0, 0, actual_runtime, requested_time, queue_time,
                                          backfill_time, drain_time, time_limit, priority));
          },
          nb::arg("index"), nb::arg("actual_runtime"), nb::arg("requested_time"),
          nb::arg("queue_time"), nb::arg("backfill_time"), nb::arg("drain_time"),
          nb::arg("time_limit"), nb::arg("priority"))
      .def("cancel", &Engine::cancel, nb::arg("index"))
      .def(
          "advance",
          [](Engine& engine, Seconds until) {
            return moves_after(engine, [until](Engine& e) { e.advance(until); });
          },
          nb::arg("until"))
      .def("settle",
           [](Engine& engine) { return moves_after(engine, [](Engine& e) { e.settle(); }); })
      .def("finish",
           [](Engine& engine) { return moves_after(engine, [](Engine& e) { e.finish(); }); })
      .def_prop_ro("now", &Engine::now)
      .def_prop_ro("next_event_time",
                   [](Engine& engine) -> std::optional<Seconds> {
                     const Seconds next = engine.next_event_time();
                     return next == kNever ? std::nullopt : std::optional<Seconds>(next);
                   })
      .def_prop_ro("free_processors", &Engine::free)
      .def_prop_ro("counters", &Engine::counters, nb::rv_policy::reference_internal)
      .def("__len__", [](const Engine& engine) { return engine.jobs().size(); })
      .def(
          "job", [](const Engine& engine, JobIndex index) { return at(engine, index); },
          nb::arg("index"))
      .def("expected_end", &Engine::expected_end, nb::arg("index"))
      .def(
          "planned_start",
          [](const Engine& engine, JobIndex index) -> std::optional<Seconds> {
            const Seconds start = engine.planned_start(index);
            return start == kNever ? std::nullopt : std::optional<Seconds>(start);
          },
          nb::arg("index"))
      .def("first_planned_starts",
           [](const Engine& engine) {
             return column<Seconds>(engine, [&](JobIndex index) {
               const Seconds planned = engine.first_planned_start(index);
               return planned == kNever ? at(engine, index).start : planned;
             });
           })
      .def_prop_ro("order", &Engine::order)
      .def_prop_ro("switching_counters",
                   [](const Engine& engine) -> std::optional<SwitchingCounters> {
                     const SwitchingCounters* counted = engine.switching_counters();
                     return counted ? std::optional(*counted) : std::nullopt;
                   })
      .def("started_under",
           [](const Engine& engine) {
             return column<std::int8_t>(
                 engine, [&](JobIndex index) { return engine.started_under(index); });
           })
      .def("describe_for_slack", &describe_for_slack, nb::arg("user_priority"),
           nb::arg("political_priority"), nb::arg("average_wait_s").none())
      .def("latest_starts",
           [](const Engine& engine) {
             return column<Seconds>(engine,
                                    [&](JobIndex index) { return engine.latest_start(index); });
           })
      .def("queue", [](const Engine& engine) { return to_numpy(engine.queue()); })
      .def("running", [](const Engine& engine) { return to_numpy(engine.running()); })
      .def("start_times",
           [](const Engine& engine) { return column<std::int64_t>(engine, &Job::start); })
      .def("end_times",
           [](const Engine& engine) { return column<std::int64_t>(engine, &Job::end); })
      .def("started_by",
           [](const Engine& engine) { return column<std::int8_t>(engine, &Job::started_by); })
      .def("corrections",
           [](const Engine& engine) { return column<std::int32_t>(engine, &Job::corrections); })
      .def("actual_runtimes",
           [](const Engine& engine) { return column<std::int64_t>(engine, &Job::actual_runtime); })
      .def("used_up",
           [](const Engine& engine) { return column<std::int8_t>(engine, &Job::used_up); })
      .def("states", [](const Engine& engine) { return column<std::int8_t>(engine, &Job::state); });
}

}  // namespace foretime
