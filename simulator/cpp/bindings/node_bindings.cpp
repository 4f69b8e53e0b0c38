#include "bindings/node_bindings.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <utility>

#include "bindings/choices.hpp"
#include "nodes/node_types.hpp"

namespace nb = nanobind;

namespace foretime {

void register_nodes(nb::module_& m) {
  nb::class_<NodeGroup>(m, "NodeGroup")
      .def(
          "__init__",
          [](NodeGroup* self, std::int64_t nodes, std::int64_t cpus, std::int64_t memory,
             std::int64_t gpus, std::int64_t memory_size, std::int64_t weight, bool whole) {
            new (self) NodeGroup{nodes, {gpus, memory, cpus}, memory_size, weight, whole};
          },
          nb::arg("nodes"), nb::arg("cpus"), nb::arg("memory"), nb::arg("gpus"),
          nb::arg("memory_size"), nb::arg("weight"), nb::arg("whole"));
  nb::class_<Closure>(m, "Closure")
      .def(
          "__init__",
          [](Closure* self, Seconds start, Seconds end, std::vector<std::int32_t> groups) {
            new (self) Closure{start, end, std::move(groups)};
          },
          nb::arg("start"), nb::arg("end"), nb::arg("groups"));
  nb::class_<PartitionChoice>(m, "PartitionChoice")
      .def(
          "__init__",
          [](PartitionChoice* self, std::int32_t slurm_partition, std::vector<std::int32_t> groups,
             std::int64_t most_nodes, std::int64_t memory_per_task, bool exclusive,
             std::vector<Closure> closures, std::vector<std::int32_t> groups_by_size) {
            new (self)
                PartitionChoice{slurm_partition,          std::move(groups), most_nodes,
                                memory_per_task,          exclusive,         std::move(closures),
                                std::move(groups_by_size)};
          },
          nb::arg("slurm_partition"), nb::arg("groups"), nb::arg("most_nodes"),
          nb::arg("memory_per_task"), nb::arg("exclusive"), nb::arg("closures"),
          nb::arg("groups_by_size"));
  nb::class_<ResourceRequest>(m, "ResourceRequest")
      .def(
          "__init__",
          [](ResourceRequest* self, std::int64_t tasks, std::int64_t cpus_per_task,
             std::int64_t nodes, std::int64_t memory_per_node, std::int64_t gpus_per_node,
             std::int64_t tier, std::vector<PartitionChoice> choices,
             const std::vector<std::array<std::int64_t, 4>>& chunks, PbsPlace place) {
            new (self) ResourceRequest{tasks,
                                       cpus_per_task,
                                       nodes,
                                       memory_per_node,
                                       gpus_per_node,
                                       tier,
                                       std::move(choices),
                                       {},
                                       place};
            for (const auto& [count, cpus, memory, gpus] : chunks) {
              self->chunks.push_back({count, {gpus, memory, cpus}});
            }
          },
          nb::arg("tasks"), nb::arg("cpus_per_task"), nb::arg("nodes"), nb::arg("memory_per_node"),
          nb::arg("gpus_per_node"), nb::arg("tier"), nb::arg("choices"), nb::arg("chunks"),
          nb::arg("place"));
}

}  // namespace foretime
