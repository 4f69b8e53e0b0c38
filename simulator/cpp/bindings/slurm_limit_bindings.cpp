#include "bindings/slurm_limit_bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings/choices.hpp"
#include "slurm/limits.hpp"

namespace nb = nanobind;

namespace foretime {

namespace {

template <class T>
T get(const nb::object& from, const char* name) {
  return nb::cast<T>(from.attr(name));
}

std::int32_t number_of(const nb::object& from, const char* name) {
  return get<std::optional<std::int32_t>>(from, name).value_or(slurm::kNone);
}

std::int64_t limit_of(const nb::object& from, const char* name) {
  return get<std::optional<std::int64_t>>(from, name).value_or(slurm::kNoLimit);
}

slurm::LimitSet limits_of(const nb::object& owner) {
  const auto table = get<nb::object>(owner, "limits");
  const auto numbers = get<std::vector<std::optional<std::int64_t>>>(table, "numbers");
  auto by_kind = get<std::vector<slurm::KindLimits>>(table, "by_kind");
  slurm::LimitSet limits;
  if (numbers.size() != limits.numbers.size() || by_kind.size() != limits.tres.size()) {
    throw std::invalid_argument("limits: another number of them than the core has");
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    limits.numbers[i] = numbers[i].value_or(slurm::kNoLimit);
  }
  std::move(by_kind.begin(), by_kind.end(), limits.tres.begin());
  return limits;
}

slurm::QosSetup qos_of(const nb::object& table) {
  slurm::QosSetup qos;
  qos.limits = limits_of(table);
  qos.deny_on_limit = get<bool>(table, "deny_on_limit");
  qos.over_partition_qos = get<bool>(table, "over_partition_qos");
  qos.weighs_minutes = get<bool>(table, "weighs_minutes");
  qos.decays = get<bool>(table, "decays");
  qos.any_most_nodes = get<bool>(table, "any_most_nodes");
  qos.any_least_nodes = get<bool>(table, "any_least_nodes");
  qos.any_time_limit = get<bool>(table, "any_time_limit");
  qos.usage_factor = get<double>(table, "usage_factor");
  qos.limit_factor = get<std::optional<double>>(table, "limit_factor").value_or(-1.0);
  qos.used_s = get<std::vector<double>>(table, "used_s");
  qos.used_wall_s = get<double>(table, "used_wall_s");
  return qos;
}

slurm::AssociationSetup association_of(const nb::object& table) {
  slurm::AssociationSetup association;
  association.limits = limits_of(table);
  association.parent = number_of(table, "parent");
  association.account = get<std::int32_t>(table, "account");
  association.used_s = get<std::vector<double>>(table, "used_s");
  association.used_wall_s = get<double>(table, "used_wall_s");
  return association;
}

slurm::PartitionSetup partition_of(const nb::object& table) {
  slurm::PartitionSetup part;
  part.submits = get<bool>(table, "submits");
  part.starts = get<bool>(table, "starts");
  part.qos = number_of(table, "qos");
  part.cpus = get<std::int64_t>(table, "cpus");
  part.nodes = get<std::int64_t>(table, "nodes");
  part.least_nodes = get<std::int64_t>(table, "least_nodes");
  part.most_nodes = limit_of(table, "most_nodes");
  part.most_cpus_per_node = limit_of(table, "most_cpus_per_node");
  part.most_minutes = limit_of(table, "most_minutes");
  part.billing_weights = get<std::vector<double>>(table, "billing_weights");
  part.denied_qos = get<std::vector<bool>>(table, "denied_qos");
  part.denied_associations = get<std::vector<bool>>(table, "denied_associations");
  return part;
}

// A LimitedJobRow.
class OwnedJob {
 public:
  explicit OwnedJob(const nb::object& row)
      : partitions_(get<std::vector<std::int32_t>>(row, "slurm_partitions")),
        tres_(get<std::vector<std::int64_t>>(row, "tres")),
        licenses_(get<std::vector<std::pair<std::int32_t, std::int64_t>>>(row, "licenses")),
        job_{get<std::int32_t>(row, "index"),
             number_of(row, "user"),
             number_of(row, "association"),
             number_of(row, "qos"),
             partitions_,
             get<std::int64_t>(row, "minutes"),
             tres_,
             licenses_,
             number_of(row, "array"),
             get<std::int64_t>(row, "array_most_running"),
             get<slurm::Flaw>(row, "flaw")} {}

  const slurm::LimitedJob& job() const { return job_; }

 private:
  std::vector<std::int32_t> partitions_;
  std::vector<std::int64_t> tres_;
  std::vector<std::pair<std::int32_t, std::int64_t>> licenses_;
  slurm::LimitedJob job_;
};

}  // namespace

std::shared_ptr<const slurm::LimitsSetup> limits_setup_of(const nb::object& tables) {
  auto made = std::make_shared<slurm::LimitsSetup>();
  slurm::LimitsSetup& setup = *made;
  const auto kinds = get<std::vector<std::string>>(tables, "kinds");
  const auto place = [&](const std::string& kind) {
    return static_cast<std::int32_t>(std::find(kinds.begin(), kinds.end(), kind) - kinds.begin());
  };
  setup.kinds = static_cast<std::int32_t>(kinds.size());
  setup.cpu_kind = place("cpu");
  setup.memory_kind = place("mem");
  setup.node_kind = place("node");
  setup.gpu_kind = place("gres/gpu");
  setup.billing_kind = place("billing");
  setup.bills = {
      get<slurm::BillingBy>(tables, "billing_by"), static_cast<std::size_t>(setup.cpu_kind),
      get<std::vector<bool>>(tables, "are_gres"), get<std::vector<bool>>(tables, "are_node")};
  for (const auto& table : get<std::vector<nb::object>>(tables, "qos")) {
    setup.qos.push_back(qos_of(table));
  }
  for (const auto& table : get<std::vector<nb::object>>(tables, "associations")) {
    setup.associations.push_back(association_of(table));
  }
  for (const auto& table : get<std::vector<nb::object>>(tables, "slurm_partitions")) {
    setup.slurm_partitions.push_back(partition_of(table));
  }
  setup.licenses = get<std::vector<std::int64_t>>(tables, "licenses");
  for (const auto& name : get<std::vector<std::string>>(tables, "license_names")) {
    setup.license_kinds.push_back(place("license/" + name));
  }
  setup.associations_count = get<bool>(tables, "associations_count");
  setup.limits_count = get<bool>(tables, "limits_count");
  setup.safe = get<bool>(tables, "safe");
  setup.assoc_limit_stop = get<bool>(tables, "assoc_limit_stop");
  setup.run_minutes_of_users = get<bool>(tables, "run_minutes_of_users");
  setup.names_accounts = get<bool>(tables, "names_accounts");
  setup.user_and_group_apart = get<bool>(tables, "user_and_group_apart");
  const auto part_limits = get<std::string>(tables, "part_limits");
  if (part_limits == "all") setup.part_limits = slurm::PartLimits::all;
  if (part_limits == "any") setup.part_limits = slurm::PartLimits::any;
  setup.multifactor = get<bool>(tables, "multifactor");
  setup.decay_half_life_s = get<double>(tables, "decay_half_life_s");
  for (std::size_t at = 0; at < setup.associations.size(); ++at) {
    for (auto above = static_cast<std::int32_t>(at); above != slurm::kNone;
         above = setup.associations[static_cast<std::size_t>(above)].parent) {
      setup.associations[at].line.push_back(above);
    }
  }
  return made;
}

void register_slurm_limits(nb::module_& m) {
  using slurm::Limits;
  nb::class_<Limits>(m, "SlurmLimits")
      .def(
          "__init__",
          [](Limits* self, const nb::object& tables, std::int64_t now) {
            new (self) Limits(limits_setup_of(tables), now);
          },
          nb::arg("tables"), nb::arg("now"))
      .def(
          "why_refused",
          [](const Limits& self, const nb::object& row, std::int64_t jobs) {
            return self.why_refused(OwnedJob(row).job(), jobs);
          },
          nb::arg("row"), nb::arg("jobs"))
      .def(
          "why_not_considered",
          [](const Limits& self, const nb::object& row, std::int32_t slurm_partition,
             std::int64_t minutes) {
            return self.why_not_considered(OwnedJob(row).job(), slurm_partition, minutes);
          },
          nb::arg("row"), nb::arg("slurm_partition"), nb::arg("minutes"))
      .def(
          "why_not_started",
          [](const Limits& self, const nb::object& row, const std::vector<std::int64_t>& tres,
             std::int32_t slurm_partition, const std::vector<std::int32_t>& nodes,
             std::int64_t minutes) {
            return self.why_not_started(OwnedJob(row).job(), tres, slurm_partition, nodes, minutes);
          },
          nb::arg("row"), nb::arg("tres"), nb::arg("slurm_partition"), nb::arg("nodes"),
          nb::arg("minutes"))
      .def(
          "why_no_licenses",
          [](const Limits& self, const nb::object& row) {
            return self.why_no_licenses(OwnedJob(row).job());
          },
          nb::arg("row"))
      .def(
          "is_killed",
          [](const Limits& self, const nb::object& row, std::int64_t now) {
            return self.is_killed(OwnedJob(row).job(), now);
          },
          nb::arg("row"), nb::arg("now"))
      .def("blocks_lower_jobs", &Limits::blocks_lower_jobs, nb::arg("reason"))
      .def(
          "submitted",
          [](Limits& self, const nb::object& row) { self.submitted(OwnedJob(row).job()); },
          nb::arg("row"))
      .def(
          "started",
          [](Limits& self, const nb::object& row, const std::vector<std::int64_t>& tres,
             std::int64_t now, std::int32_t slurm_partition, const std::vector<std::int32_t>& nodes,
             std::int64_t minutes) {
            self.started(OwnedJob(row).job(), tres, now, slurm_partition, nodes, minutes);
          },
          nb::arg("row"), nb::arg("tres"), nb::arg("now"), nb::arg("slurm_partition"),
          nb::arg("nodes"), nb::arg("minutes"))
      .def(
          "ended",
          [](Limits& self, const nb::object& row, std::int64_t now) {
            self.ended(OwnedJob(row).job(), now);
          },
          nb::arg("row"), nb::arg("now"))
      .def(
          "withdrawn",
          [](Limits& self, const nb::object& row) { self.withdrawn(OwnedJob(row).job()); },
          nb::arg("row"))
      .def("tick", &Limits::tick, nb::arg("now"));
}

}  // namespace foretime
