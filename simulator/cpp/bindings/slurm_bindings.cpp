#include "bindings/slurm_bindings.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "bindings/numpy_columns.hpp"
#include "bindings/slurm_limit_bindings.hpp"
#include "bindings/slurm_priority_bindings.hpp"
#include "planning/slurm/slurm_site.hpp"

namespace nb = nanobind;

namespace foretime {
namespace {

using Licenses = std::vector<std::pair<std::int32_t, std::int64_t>>;

void use_slurm(Engine& engine, const std::shared_ptr<SlurmSite>& site, bool record, bool keep_plans,
               bool coarse) {
  engine.use_slurm(SlurmState(site, engine.now()));
  if (record) engine.slurm_planner().record();
  if (keep_plans) engine.slurm_planner().keep_plans();
  if (coarse) engine.slurm_planner().run_coarsely();
}

// A row of what a job says (foretime_sim.engine.native.slurm_core).
SlurmJob job_of(std::span<const std::int64_t> row, Licenses licenses) {
  const auto small = [row](std::size_t column) { return static_cast<std::int32_t>(row[column]); };
  SlurmJob job;
  job.user = small(0);
  job.account = small(1);
  job.association = small(2);
  job.qos = small(3);
  job.limited_association = small(4);
  job.limited_qos = small(5);
  job.flaw = static_cast<slurm::Flaw>(row[6]);
  job.nice = row[7];
  job.site_factor = row[8];
  job.time_min = row[9];
  job.begin = row[10];
  job.reservation = small(11);
  job.array = small(12);
  job.array_most = row[13];
  job.after = small(14);
  job.after_end = row[15] != 0;
  job.licenses = std::move(licenses);
  return job;
}
inline constexpr std::size_t kJobColumns = 16;

void describe(Engine& engine, JobIndex index, const std::vector<std::int64_t>& row,
              Licenses licenses) {
  if (row.size() != kJobColumns) throw std::invalid_argument("a job has another number of columns");
  engine.slurm_planner().controller().describe(index, job_of(row, std::move(licenses)));
}

// One row a job.
using Rows = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void describe_all(Engine& engine, Rows rows) {
  if (rows.shape(1) != kJobColumns) {
    throw std::invalid_argument("jobs have another number of columns");
  }
  for (std::size_t i = 0; i < rows.shape(0); ++i) {
    engine.slurm_planner().controller().describe(
        static_cast<JobIndex>(i), job_of({rows.data() + (i * kJobColumns), kJobColumns}, {}));
  }
}

using Column = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Rows of job, node, nodes, CPUs, memory, GPUs; `slurm_partition` has one value a job.
std::vector<NodeBeginning::Held> held_nodes(Column slurm_partition, Rows rows) {
  std::vector<NodeBeginning::Held> held(slurm_partition.shape(0));
  for (std::size_t i = 0; i < held.size(); ++i) {
    held[i].slurm_partition = static_cast<std::int32_t>(slurm_partition(i));
  }
  for (std::size_t i = 0; i < rows.shape(0); ++i) {
    held.at(static_cast<std::size_t>(rows(i, 0)))
        .nodes.push_back({rows(i, 1), rows(i, 2), {rows(i, 5), rows(i, 4), rows(i, 3)}});
  }
  return held;
}

void begin_with_slurm(Beginning& beginning, std::shared_ptr<SlurmSite> site,
                      std::vector<ResourceRequest> requests, Column request_of,
                      Column slurm_partition, Rows held, std::shared_ptr<const SlurmState> known,
                      bool coarse) {
  SlurmBeginning& slurm = beginning.slurm.emplace();
  slurm.site = std::move(site);
  slurm.requests = std::move(requests);
  for (std::size_t i = 0; i < request_of.shape(0); ++i) {
    slurm.request_of.push_back(static_cast<std::int32_t>(request_of(i)));
  }
  slurm.running = held_nodes(slurm_partition, held);
  slurm.known = std::move(known);
  slurm.coarse = coarse;
}

// Of a real scheduler's jobs, by row; `told` has since when each pending one ages, kNever if it
// does not, and `priority` what it is told to be.
void describe_beginning(Beginning& beginning, Rows rows, const std::vector<Licenses>& licenses,
                        Column eligible, std::vector<std::optional<std::int64_t>> priority) {
  if (!beginning.slurm) throw std::invalid_argument("facts come after the site");
  SlurmBeginning& slurm = *beginning.slurm;
  const std::size_t running = beginning.running.size();
  if (rows.shape(1) != kJobColumns || rows.shape(0) != running + beginning.pending.size() ||
      licenses.size() != rows.shape(0) || eligible.shape(0) != beginning.pending.size() ||
      priority.size() != beginning.pending.size()) {
    throw std::invalid_argument("what is known of jobs has another number of rows or columns");
  }
  for (std::size_t i = 0; i < rows.shape(0); ++i) {
    slurm.facts.push_back(job_of({rows.data() + (i * kJobColumns), kJobColumns}, licenses[i]));
  }
  for (std::size_t i = 0; i < priority.size(); ++i) {
    slurm.facts[running + i].told = {.ages_since = eligible(i), .priority = priority[i]};
  }
}

// Whose jobs that come later may be, and which of these each is.
void give_owners(Arrivals& arrivals, Rows owners, Column owner_of) {
  if (owners.shape(1) != kJobColumns || owner_of.shape(0) != arrivals.jobs.size()) {
    throw std::invalid_argument("owners have another number of rows or columns");
  }
  for (std::size_t i = 0; i < owners.shape(0); ++i) {
    arrivals.owners.push_back(job_of({owners.data() + (i * kJobColumns), kJobColumns}, {}));
  }
  for (std::size_t i = 0; i < owner_of.shape(0); ++i) {
    arrivals.owner_of.push_back(static_cast<std::int32_t>(owner_of(i)));
    if (std::cmp_greater_equal(arrivals.owner_of.back(), arrivals.owners.size())) {
      throw std::invalid_argument("there is no such owner");
    }
  }
}

// Of the jobs of a snapshot, in its order.
SlurmState known_state(const Engine& engine, Column jobs) {
  std::vector<JobIndex> from;
  from.reserve(jobs.shape(0));
  for (std::size_t i = 0; i < jobs.shape(0); ++i) from.push_back(static_cast<JobIndex>(jobs(i)));
  return {engine.slurm_planner().state(), Renumbering(std::move(from), engine.jobs().size())};
}

}  // namespace

void register_slurm_beginning(nb::module_& m, nb::class_<Beginning>& beginning) {
  nb::class_<SlurmState>(m, "SlurmState");
  beginning.def_prop_ro("pending_jobs", [](const Beginning& of) { return of.pending.size(); });
  beginning.def("use_slurm", &begin_with_slurm, nb::arg("site").none(), nb::arg("requests"),
                nb::arg("request_of"), nb::arg("slurm_partition"), nb::arg("held"),
                nb::arg("known").none(), nb::arg("coarse"));
  beginning.def("describe_for_slurm", &describe_beginning, nb::arg("rows"), nb::arg("licenses"),
                nb::arg("eligible"), nb::arg("priority"));
  m.def("give_owners", &give_owners, nb::arg("arrivals"), nb::arg("owners"), nb::arg("owner_of"));
  m.def("slurm_state", &known_state, nb::arg("engine"), nb::arg("jobs"));
}

void register_slurm(nb::module_& m, nb::class_<Engine>& engine) {
  nb::class_<SlurmSite>(m, "SlurmSite")
      .def(
          "__init__",
          [](SlurmSite* self, const std::pair<int, int>& version, FamilySettings parameters,
             std::vector<NodeGroup> groups, const nb::object& priority, const nb::object& limits,
             Seconds epoch) {
            new (self) SlurmSite;
            self->version = version;
            self->parameters = settings_of<SlurmParameters>(std::move(parameters));
            self->machine.groups = std::move(groups);
            self->priority = priority_site_of(priority);
            self->limits = limits_setup_of(limits);
            self->enforces = self->limits->associations_count;
            self->epoch = epoch;
          },
          nb::arg("version"), nb::arg("parameters"), nb::arg("groups"), nb::arg("priority"),
          nb::arg("limits"), nb::arg("epoch"))
      .def(
          "add_partition",
          [](SlurmSite& self, std::int64_t priority_tier,
             std::optional<std::int64_t> most_nodes_in_use,
             std::optional<std::int64_t> max_cpus_per_node, std::int64_t default_memory_per_node,
             Seconds over_time_limit, bool starts, bool submits, std::vector<std::int32_t> groups) {
            self.partitions.push_back({priority_tier, most_nodes_in_use.value_or(kNever),
                                       max_cpus_per_node.value_or(kNever), default_memory_per_node,
                                       over_time_limit, starts, submits, std::move(groups)});
          },
          nb::arg("priority_tier"), nb::arg("most_nodes_in_use").none(),
          nb::arg("max_cpus_per_node").none(), nb::arg("default_memory_per_node"),
          nb::arg("over_time_limit"), nb::arg("starts"), nb::arg("submits"), nb::arg("groups"))
      .def(
          "add_reservation",
          [](SlurmSite& self, Seconds start, Seconds end, std::vector<std::int32_t> groups) {
            self.reservations.push_back({start, end, std::move(groups)});
          },
          nb::arg("start"), nb::arg("end"), nb::arg("groups"))
      .def(
          "add_switch",
          [](SlurmSite& self, std::vector<std::int32_t> groups, std::vector<std::int32_t> below) {
            self.switches.push_back({std::move(groups), std::move(below)});
          },
          nb::arg("groups"), nb::arg("below"));
  engine
      .def("use_slurm", &use_slurm, nb::arg("site"), nb::arg("record"), nb::arg("keep_plans"),
           nb::arg("coarse"))
      .def("describe_for_slurm", &describe, nb::arg("index"), nb::arg("row"), nb::arg("licenses"))
      .def(
          "change_for_slurm",
          [](Engine& e, JobIndex index, const std::vector<std::int64_t>& row) {
            if (row.size() != kJobColumns) {
              throw std::invalid_argument("a job has another number of columns");
            }
            SlurmPlanner& planner = e.slurm_planner();
            planner.change(index, job_of(row, planner.controller().facts(index).licenses));
          },
          nb::arg("index"), nb::arg("row"))
      .def("describe_all_for_slurm", &describe_all, nb::arg("rows"))
      .def(
          "give_licenses",
          [](Engine& e, JobIndex index, Licenses licenses) {
            e.slurm_planner().controller().facts(index).licenses = std::move(licenses);
          },
          nb::arg("index"), nb::arg("licenses"))
      .def(
          "slurm_priority",
          [](const Engine& e, JobIndex index) -> std::optional<std::int64_t> {
            const SlurmController& controller = e.slurm_planner().state().controller;
            if (!controller.record(index).waits) return std::nullopt;
            const Wish& first = controller.wishes(index).front();
            return controller.rules().priority_of(index, first.slurm_partition);
          },
          nb::arg("index"))
      .def(
          "slurm_reason",
          [](const Engine& e, JobIndex index) {
            return e.slurm_planner().state().controller.record(index).reason;
          },
          nb::arg("index"))
      .def(
          "why_slurm_keeps",
          [](const Engine& e, JobIndex index) {
            return e.slurm_planner().state().controller.why_kept(index);
          },
          nb::arg("index"))
      .def("estimates", [](const Engine& e) {
        std::vector<Seconds> estimates;
        estimates.reserve(e.jobs().size());
        for (std::size_t i = 0; i < e.jobs().size(); ++i) {
          estimates.push_back(
              e.slurm_planner().state().controller.record(static_cast<JobIndex>(i)).estimate);
        }
        return to_numpy(std::move(estimates));
      });
}

}  // namespace foretime
