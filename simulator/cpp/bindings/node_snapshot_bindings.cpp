#include "bindings/node_snapshot_bindings.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "bindings/owned_array.hpp"
#include "engine/engine.hpp"

namespace nb = nanobind;

namespace foretime {
namespace {

using Column = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<2>>;

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

void use_nodes(Beginning& beginning, std::vector<NodeGroup> groups,
               const std::vector<std::optional<std::int64_t>>& most_nodes_in_use,
               std::vector<ResourceRequest> requests) {
  beginning.nodes.emplace();
  beginning.nodes->machine.groups = std::move(groups);
  for (const auto& most : most_nodes_in_use) {
    beginning.nodes->machine.most_nodes_in_use.push_back(most.value_or(kNever));
  }
  *beginning.nodes->requests = std::move(requests);
}

constexpr std::size_t kNodeColumns = 7;

Table table_of(const std::vector<std::int64_t>& values, std::size_t columns) {
  nb::capsule owner;
  auto* owned = owned_array<std::int64_t>(values.size(), owner);
  std::copy(values.begin(), values.end(), owned);
  return Table(owned, {values.size() / columns, columns}, owner);
}

void add_rows(std::vector<std::int64_t>& rows, const NodePool& pool, JobIndex job,
              std::int32_t slurm_partition, const Shares& shares) {
  for (const Share& share : shares) {
    rows.insert(rows.end(), {job, slurm_partition, pool.first_node_of(share.unit), share.nodes,
                             share.node.cpus, share.node.memory, share.node.gpus});
  }
}

// What each of these running jobs has: rows of its place among them, slurm_partition, first node,
// number of nodes, CPUs, memory and GPUs of each.
Table nodes_held(const Engine& engine, Column jobs) {
  std::vector<std::int64_t> rows;
  const OnNodes& nodes = engine.on_nodes();
  for (std::size_t i = 0; i < jobs.shape(0); ++i) {
    const auto place = static_cast<JobIndex>(i);
    for (const NodeRow& row : nodes.rows_of(jobs(i))) {
      rows.insert(rows.end(), {place, nodes.slurm_partition_of(jobs(i)), row.node, row.nodes,
                               row.of_each.cpus, row.of_each.memory, row.of_each.gpus});
    }
  }
  return table_of(rows, kNodeColumns);
}

// The same of waiting jobs that are planned, by their indices; and rows of these and their starts.
std::pair<Table, Table> nodes_planned(const Engine& engine) {
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> starts;
  const std::vector<NodeReservation>* reservations = engine.on_nodes().node_reservations();
  if (reservations == nullptr) return {table_of(rows, kNodeColumns), table_of(starts, 2)};
  for (const NodeReservation& held : *reservations) {
    add_rows(rows, engine.nodes().pool, held.job, held.slurm_partition, held.shares);
    starts.insert(starts.end(), {held.job, held.start});
  }
  return {table_of(rows, kNodeColumns), table_of(starts, 2)};
}

// Of each job, as it was given.
nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>> requests_of(const Engine& engine) {
  const std::vector<std::int32_t>& requests = engine.on_nodes().request_of();
  nb::capsule owner;
  auto* owned = owned_array<std::int64_t>(requests.size(), owner);
  std::copy(requests.begin(), requests.end(), owned);
  return {owned, {requests.size()}, owner};
}

}  // namespace

void register_node_snapshots(nb::module_& m, nb::class_<Beginning>& beginning) {
  beginning
      .def("use_nodes", &use_nodes, nb::arg("groups"), nb::arg("most_nodes_in_use"),
           nb::arg("requests"))
      .def(
          "add_running_nodes",
          [](Beginning& self, Column slurm_partition, Rows held) {
            self.nodes->running = held_nodes(slurm_partition, held);
          },
          nb::arg("slurm_partition"), nb::arg("held"))
      .def(
          "add_pending_requests",
          [](Beginning& self, Column request_of) {
            for (std::size_t i = 0; i < request_of.shape(0); ++i) {
              self.nodes->request_of.push_back(static_cast<std::int32_t>(request_of(i)));
            }
          },
          nb::arg("request_of"))
      .def(
          "add_planned_nodes",
          [](Beginning& self, Column slurm_partition, Rows held) {
            self.nodes->planned = held_nodes(slurm_partition, held);
          },
          nb::arg("slurm_partition"), nb::arg("held"));
  m.def("nodes_held", &nodes_held, nb::arg("engine"), nb::arg("jobs"));
  m.def("requests_of", &requests_of, nb::arg("engine"));
  m.def("nodes_planned", &nodes_planned, nb::arg("engine"));
}

}  // namespace foretime
