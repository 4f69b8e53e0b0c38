#include "bindings/slurm_priority_bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "bindings/choices.hpp"

namespace nb = nanobind;

namespace foretime {
namespace {

template <class T>
T value_of(const nb::object& from, const char* name) {
  return nb::cast<T>(from.attr(name));
}

std::vector<slurm::Association> associations_of(const nb::object& tables) {
  const auto parents = value_of<std::vector<std::int32_t>>(tables, "parents");
  const auto fair_parents = value_of<std::vector<std::int32_t>>(tables, "fair_parents");
  const auto users = value_of<std::vector<bool>>(tables, "are_users");
  const auto shares = value_of<std::vector<std::optional<std::int64_t>>>(tables, "shares");
  const auto usage = value_of<std::vector<double>>(tables, "raw_usage");
  const auto factors = value_of<std::vector<double>>(tables, "association_factors");
  std::vector<slurm::Association> all(parents.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = {parents[i], fair_parents[i], users[i], shares[i], usage[i], factors[i]};
  }
  return all;
}

std::vector<slurm::PricedPartition> partitions_of(const nb::object& tables) {
  const auto factors = value_of<std::vector<double>>(tables, "partition_factors");
  auto weights = value_of<std::vector<std::vector<double>>>(tables, "billing_weights");
  auto tres = value_of<std::vector<slurm::TresCounts>>(tables, "partition_tres");
  std::vector<slurm::PricedPartition> all(factors.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = {factors[i], std::move(weights[i]), std::move(tres[i])};
  }
  return all;
}

// Priorities with the jobs of a PricedJobTables.
class OwnPriorities {
 public:
  OwnPriorities(const nb::object& tables, const nb::object& jobs, Seconds now)
      : priorities_(priority_site_of(tables), now) {
    const auto associations = value_of<std::vector<std::int32_t>>(jobs, "associations");
    auto partitions = value_of<std::vector<std::vector<std::int32_t>>>(jobs, "slurm_partitions");
    const auto submits = value_of<std::vector<Seconds>>(jobs, "submit_times");
    const auto limits = value_of<std::vector<Seconds>>(jobs, "time_limits_s");
    const auto nices = value_of<std::vector<std::int64_t>>(jobs, "nices");
    const auto site_factors = value_of<std::vector<std::int64_t>>(jobs, "site_factors");
    const auto qos = value_of<std::vector<double>>(jobs, "qos_factors");
    const auto factors = value_of<std::vector<std::optional<double>>>(jobs, "usage_factors");
    auto tres = value_of<std::vector<slurm::TresCounts>>(jobs, "tres");
    for (std::size_t i = 0; i < associations.size(); ++i) {
      asked_.push_back({std::move(partitions[i]), std::move(tres[i])});
      jobs_.push_back({&asked_.back(), associations[i], submits[i], limits[i], nices[i],
                       site_factors[i], qos[i], factors[i]});
    }
  }

  slurm::Priorities& get() { return priorities_; }
  const slurm::PricedJob& job(JobIndex job) const {
    return jobs_.at(static_cast<std::size_t>(job));
  }

 private:
  std::deque<slurm::PricedRequest> asked_;
  std::vector<slurm::PricedJob> jobs_;
  slurm::Priorities priorities_;
};

}  // namespace

std::shared_ptr<const slurm::PrioritySite> priority_site_of(const nb::object& tables) {
  auto site = std::make_shared<slurm::PrioritySite>();
  site->multifactor = value_of<bool>(tables, "multifactor");
  site->tree = std::make_shared<slurm::FairShareTree>(
      associations_of(tables), value_of<slurm::FairShareKind>(tables, "fair_share"),
      value_of<std::int64_t>(tables, "dampening_factor"));
  site->reset_period = value_of<slurm::ResetPeriod>(tables, "reset_period");
  site->half_life = value_of<Seconds>(tables, "half_life_s");
  site->calc_period = value_of<Seconds>(tables, "calc_period_s");
  site->usage_at = value_of<std::optional<Seconds>>(tables, "usage_at");
  site->charges_ends = value_of<bool>(tables, "charges_ends");
  site->shows_running = value_of<bool>(tables, "shows_running");
  site->only_up = value_of<bool>(tables, "only_up");
  site->accrues_always = value_of<bool>(tables, "accrues_always");
  site->weight_age = value_of<double>(tables, "weight_age");
  site->max_age = value_of<Seconds>(tables, "max_age_s");
  site->weight_fair_share = value_of<double>(tables, "weight_fair_share");
  site->weight_job_size = value_of<double>(tables, "weight_job_size");
  site->weight_partition = value_of<double>(tables, "weight_partition");
  site->favors_small = value_of<bool>(tables, "favors_small");
  site->small_relative_to_time = value_of<bool>(tables, "small_relative_to_time");
  site->cpus = value_of<std::int64_t>(tables, "cpus");
  site->nodes = value_of<std::int64_t>(tables, "nodes");
  site->weight_tres = {value_of<std::vector<double>>(tables, "weight_tres"),
                       value_of<double>(tables, "weight_billing"),
                       value_of<bool>(tables, "tres_normalised")};
  const auto kinds = value_of<std::vector<std::string>>(tables, "kinds");
  site->gpu_kind = static_cast<std::size_t>(std::ranges::find(kinds, "gres/gpu") - kinds.begin());
  const auto usage_factors = value_of<nb::dict>(tables, "usage_factors");
  for (const auto& [name, factor] : value_of<nb::dict>(tables, "qos_factors")) {
    site->qos.push_back(
        {nb::cast<double>(factor), nb::cast<std::optional<double>>(usage_factors[name])});
  }
  auto are_gres = value_of<std::vector<bool>>(tables, "are_gres");
  std::vector<bool> are_node(are_gres.size(), false);
  for (const std::size_t kind : {slurm::kCpu, slurm::kMemory, slurm::kNode}) are_node[kind] = true;
  site->bills = {value_of<slurm::BillingBy>(tables, "billing_by"), slurm::kCpu, std::move(are_gres),
                 std::move(are_node)};
  site->partitions = partitions_of(tables);
  return site;
}

void register_slurm_priorities(nb::module_& m) {
  nb::class_<OwnPriorities>(m, "SlurmPriorities")
      .def(nb::init<const nb::object&, const nb::object&, Seconds>(), nb::arg("tables"),
           nb::arg("jobs"), nb::arg("now"))
      .def(
          "submitted",
          [](OwnPriorities& own, JobIndex job, std::optional<Seconds> eligible, Seconds now,
             bool held) {
            own.get().submitted(job, own.job(job), eligible.value_or(kNever), now, held);
          },
          nb::arg("job"), nb::arg("eligible").none(), nb::arg("now"), nb::arg("held") = false)
      .def(
          "set_eligible",
          [](OwnPriorities& own, JobIndex job, std::optional<Seconds> eligible) {
            own.get().set_eligible(job, eligible.value_or(kNever));
          },
          nb::arg("job"), nb::arg("eligible").none())
      .def(
          "recompute",
          [](OwnPriorities& own, JobIndex job, Seconds now) {
            own.get().recompute(job, own.job(job), now);
          },
          nb::arg("job"), nb::arg("now"))
      .def(
          "started",
          [](OwnPriorities& own, JobIndex job, std::int32_t partition,
             const slurm::TresCounts& tres,
             Seconds now) { own.get().started(job, partition, tres, now); },
          nb::arg("job"), nb::arg("slurm_partition"), nb::arg("tres"), nb::arg("now"))
      .def(
          "ended", [](OwnPriorities& own, JobIndex job, Seconds now) { own.get().ended(job, now); },
          nb::arg("job"), nb::arg("now"))
      .def(
          "tick", [](OwnPriorities& own, Seconds now) { own.get().tick(now); }, nb::arg("now"))
      .def_prop_ro("next_tick",
                   [](OwnPriorities& own) -> std::optional<Seconds> {
                     const Seconds next = own.get().next_tick();
                     return next == kNever ? std::nullopt : std::optional<Seconds>(next);
                   })
      .def(
          "priority_of",
          [](OwnPriorities& own, JobIndex job, std::int32_t partition) {
            return own.get().priority_of(job, partition);
          },
          nb::arg("job"), nb::arg("slurm_partition"))
      .def(
          "factor_of",
          [](OwnPriorities& own, slurm::AssociationIndex association) {
            return own.get().fair_share().factor_of(association);
          },
          nb::arg("association"))
      .def(
          "raw_usage",
          [](OwnPriorities& own, slurm::AssociationIndex association) {
            return static_cast<double>(own.get().fair_share().raw_usage(association));
          },
          nb::arg("association"));
}

}  // namespace foretime
