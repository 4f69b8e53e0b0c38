#include "bindings/pbs_bindings.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "bindings/choices.hpp"
#include "bindings/numpy_columns.hpp"

namespace nb = nanobind;

namespace foretime {
namespace {

using Column = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Operation, number, name, and the places of what is below it.
using FormulaNodes =
    std::vector<std::tuple<PbsOperation, double, PbsName, std::vector<std::size_t>>>;

PbsFormula formula_of(const FormulaNodes& nodes) {
  std::vector<PbsFormula::Node> made;
  made.reserve(nodes.size());
  for (const auto& [operation, number, name, below] : nodes) {
    made.push_back({operation, number, name, below});
  }
  return PbsFormula(std::move(made));
}

void use_pbs(Engine& engine, const std::shared_ptr<PbsSite>& site, bool record) {
  engine.use_pbs(PbsState(site, engine.now()));
  if (record) engine.pbs_planner().record();
}

// Rows of user and project, one a job.
void describe_all(Engine& engine, Rows rows) {
  for (std::size_t i = 0; i < rows.shape(0); ++i) {
    engine.pbs_planner().describe(
        static_cast<JobIndex>(i),
        {static_cast<std::int32_t>(rows(i, 0)), static_cast<std::int32_t>(rows(i, 1))});
  }
}

PbsNotes notes_of(const Engine& engine, Column running, Column pending) {
  const auto jobs = [](Column column) {
    return std::vector<JobIndex>(column.data(), column.data() + column.shape(0));
  };
  return engine.pbs_planner().notes_of(jobs(running), jobs(pending));
}

void begin_with_pbs(Beginning& beginning, std::shared_ptr<PbsSite> site,
                    std::vector<ResourceRequest> requests, Column request_of,
                    Column slurm_partition, Rows held, const std::optional<PbsNotes>& notes) {
  PbsBeginning& pbs = beginning.pbs.emplace();
  pbs.site = std::move(site);
  pbs.requests = std::move(requests);
  for (std::size_t i = 0; i < request_of.shape(0); ++i) {
    pbs.request_of.push_back(static_cast<std::int32_t>(request_of(i)));
  }
  pbs.running.resize(slurm_partition.shape(0));
  for (std::size_t i = 0; i < pbs.running.size(); ++i) {
    pbs.running[i].slurm_partition = static_cast<std::int32_t>(slurm_partition(i));
  }
  for (std::size_t i = 0; i < held.shape(0); ++i) {
    pbs.running.at(static_cast<std::size_t>(held(i, 0)))
        .nodes.push_back({held(i, 1), held(i, 2), {held(i, 5), held(i, 4), held(i, 3)}});
  }
  pbs.notes = notes;
}

std::vector<PbsJobFacts> facts_of(Rows rows) {
  std::vector<PbsJobFacts> facts;
  facts.reserve(rows.shape(0));
  for (std::size_t i = 0; i < rows.shape(0); ++i) {
    facts.push_back({static_cast<std::int32_t>(rows(i, 0)), static_cast<std::int32_t>(rows(i, 1))});
  }
  return facts;
}

// Rows of user and project, one a job; of running jobs whether their hosts are their own, and for
// how long they have been charged.
void describe_told(Beginning& beginning, Rows rows, Column exclusive, Column charged) {
  if (!beginning.pbs) throw std::logic_error("the site comes before its jobs");
  PbsBeginning& pbs = *beginning.pbs;
  pbs.facts = facts_of(rows);
  for (std::size_t i = 0; i < exclusive.shape(0); ++i) {
    pbs.exclusive.push_back(exclusive(i) != 0);
    pbs.charged.push_back(charged(i));
  }
}

// Whose arrivals may be, and which of these each is.
void give_pbs_owners(Arrivals& arrivals, Rows rows, Column owner) {
  arrivals.pbs_owners = facts_of(rows);
  for (std::size_t i = 0; i < owner.shape(0); ++i) {
    arrivals.owner_of.push_back(static_cast<std::int32_t>(owner(i)));
  }
}

// CPUs, memory, GPUs.
Resources resources_of(const std::array<std::int64_t, 3>& amounts) {
  return {amounts[2], amounts[1], amounts[0]};
}

void add_host(PbsSite& self, const std::array<std::int64_t, 3>& room, std::int32_t pool) {
  self.hosts.push_back({resources_of(room), pool});
}

void add_reservation(
    PbsSite& self, Seconds start, Seconds end,
    const std::vector<std::pair<std::int32_t, std::array<std::int64_t, 3>>>& hosts) {
  PbsReservation reservation{start, end, {}};
  for (const auto& [host, amounts] : hosts) {
    reservation.hosts.push_back({host, resources_of(amounts)});
  }
  self.reservations.push_back(std::move(reservation));
}

void register_site(nb::module_& m) {
  nb::class_<PbsLimit>(m, "PbsLimit")
      .def(
          "__init__",
          [](PbsLimit* self, std::int32_t queue, PbsWho who, std::int32_t what,
             std::optional<std::int64_t> most, std::map<std::int32_t, std::int64_t> named,
             bool if_asked) {
            new (self) PbsLimit{queue, who, what, most, std::move(named), if_asked};
          },
          nb::arg("queue"), nb::arg("who"), nb::arg("what"), nb::arg("most").none(),
          nb::arg("named"), nb::arg("if_asked"));
  nb::class_<PbsQueue>(m, "PbsQueue")
      .def(nb::init<>())
      .def_rw("priority", &PbsQueue::priority)
      .def_rw("enabled", &PbsQueue::enabled)
      .def_rw("started", &PbsQueue::started)
      .def_rw("dedicated", &PbsQueue::dedicated)
      .def_rw("depth", &PbsQueue::depth, nb::arg().none())
      .def_rw("default_soft", &PbsQueue::default_soft)
      .def_rw("least", &PbsQueue::least)
      .def_rw("most", &PbsQueue::most)
      .def_rw("apart", &PbsQueue::apart)
      .def_rw("apart_by_user", &PbsQueue::apart_by_user)
      .def_rw("apart_by_project", &PbsQueue::apart_by_project)
      .def_rw("apart_by_soft", &PbsQueue::apart_by_soft)
      .def_rw("pool", &PbsQueue::pool);
  nb::class_<PbsSite>(m, "PbsSite")
      .def(nb::init<>())
      .def_rw("pools", &PbsSite::pools)
      .def_rw("queue_of_partition", &PbsSite::queue_of_partition)
      .def_rw("levels", &PbsSite::levels)
      .def_rw("by_queue", &PbsSite::by_queue)
      .def_rw("round_robin", &PbsSite::round_robin)
      .def_rw("strict", &PbsSite::strict)
      .def_rw("depth", &PbsSite::depth)
      .def_rw("fuzzy", &PbsSite::fuzzy)
      .def_rw("iteration", &PbsSite::iteration)
      .def_rw("epoch", &PbsSite::epoch)
      .def_rw("usage_lag", &PbsSite::usage_lag)
      .def_rw("decayed_at", &PbsSite::decayed_at, nb::arg().none())
      .def_rw("sort_keys", &PbsSite::sort_keys)
      .def_rw("threshold", &PbsSite::threshold, nb::arg().none())
      .def_rw("limits", &PbsSite::limits)
      .def_rw("limits_in_queue", &PbsSite::limits_in_queue)
      .def_rw("limits_of_waiting", &PbsSite::limits_of_waiting)
      .def_rw("dedicated_time", &PbsSite::dedicated_time)
      .def_rw("queues", &PbsSite::queues)
      .def("add_host", &add_host, nb::arg("room"), nb::arg("pool"))
      .def("add_reservation", &add_reservation, nb::arg("start"), nb::arg("end"), nb::arg("hosts"))
      .def(
          "order_by",
          [](PbsSite& self, const FormulaNodes& formula) { self.formula = formula_of(formula); },
          nb::arg("formula"))
      .def(
          "share",
          [](PbsSite& self, bool on, bool enforce_no_shares, PbsEntity entity, Seconds decay_time,
             double decay_factor, const FormulaNodes& usage,
             const std::vector<std::tuple<std::int32_t, std::int64_t, double>>& groups,
             std::map<std::int32_t, std::int32_t> number) {
            self.fair_share = {on,           enforce_no_shares, entity, decay_time,
                               decay_factor, formula_of(usage), {},     std::move(number)};
            for (const auto& [parent, shares, used] : groups) {
              self.fair_share.groups.push_back({parent, shares, used});
            }
          },
          nb::arg("on"), nb::arg("enforce_no_shares"), nb::arg("entity"), nb::arg("decay_time"),
          nb::arg("decay_factor"), nb::arg("usage"), nb::arg("groups"), nb::arg("number"));
}

}  // namespace

void register_pbs_beginning(nb::module_& m, nb::class_<Beginning>& beginning) {
  nb::class_<PbsNotes>(m, "PbsNotes");
  beginning
      .def("use_pbs", &begin_with_pbs, nb::arg("site"), nb::arg("requests"), nb::arg("request_of"),
           nb::arg("slurm_partition"), nb::arg("held"), nb::arg("notes").none())
      .def("describe_for_pbs", &describe_told, nb::arg("rows"), nb::arg("exclusive"),
           nb::arg("charged"));
  m.def("give_pbs_owners", &give_pbs_owners, nb::arg("arrivals"), nb::arg("rows"),
        nb::arg("owner"));
  m.def("pbs_notes", &notes_of, nb::arg("engine"), nb::arg("running"), nb::arg("pending"));
}

void register_pbs(nb::module_& m, nb::class_<Engine>& engine) {
  register_site(m);
  // For the tests of formulas.
  m.def(
      "pbs_formula_value",
      [](const FormulaNodes& nodes, const std::map<std::string, double>& known) {
        PbsValues values{};
        for (const auto& [name, value] : known) {
          PbsName found{};
          if (find_choice(name, found) && found != PbsName::kNothing) {
            values[static_cast<std::size_t>(found)] = value;
          }
        }
        return formula_of(nodes).value(values);
      },
      nb::arg("nodes"), nb::arg("known"));
  engine.def("use_pbs", &use_pbs, nb::arg("site"), nb::arg("record"))
      .def(
          "describe_for_pbs",
          [](Engine& e, JobIndex index, std::int32_t user, std::int32_t project) {
            e.pbs_planner().describe(index, {user, project});
          },
          nb::arg("index"), nb::arg("user"), nb::arg("project"))
      .def("describe_all_for_pbs", &describe_all, nb::arg("rows"))
      // When it was decayed and charged last, what each entity has used, and their numbers by code.
      .def("pbs_usage", [](const Engine& e) {
        const PbsState& state = e.pbs_planner().state();
        const PbsFairShare& shares = state.fair_share;
        return std::tuple(shares.decayed_at(), state.last_cycle, shares.usage(), shares.number());
      });
}

}  // namespace foretime
