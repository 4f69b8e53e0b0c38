#include "bindings/slurm_priority_bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "bindings/choices.hpp"

namespace nb = nanobind;

namespace foretime {
namespace {

template <class T>
T get(const nb::object& from, const char* name) {
  return nb::cast<T>(from.attr(name));
}

std::vector<slurm::Association> associations_of(const nb::object& tables) {
  const auto parents = get<std::vector<std::int32_t>>(tables, "parents");
  const auto fair_parents = get<std::vector<std::int32_t>>(tables, "fair_parents");
  const auto users = get<std::vector<bool>>(tables, "are_users");
  const auto shares = get<std::vector<std::optional<std::int64_t>>>(tables, "shares");
  const auto usage = get<std::vector<double>>(tables, "raw_usage");
  const auto factors = get<std::vector<double>>(tables, "association_factors");
  std::vector<slurm::Association> all(parents.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = {parents[i], fair_parents[i], users[i], shares[i], usage[i], factors[i]};
  }
  return all;
}

std::vector<slurm::PricedPartition> partitions_of(const nb::object& tables) {
  const auto factors = get<std::vector<double>>(tables, "partition_factors");
  auto weights = get<std::vector<std::vector<double>>>(tables, "billing_weights");
  auto tres = get<std::vector<slurm::TresCounts>>(tables, "partition_tres");
  std::vector<slurm::PricedPartition> all(factors.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = {factors[i], std::move(weights[i]), std::move(tres[i])};
  }
  return all;
}

// Priorities that keep their jobs.
class OwnPriorities {
 public:
  OwnPriorities(const nb::object& tables, const nb::object& jobs, Seconds now)
      : jobs_(priced_jobs_of(jobs)), priorities_(priority_site_of(tables), jobs_, now) {}

  slurm::Priorities& get() { return priorities_; }

 private:
  std::vector<slurm::PricedJob> jobs_;
  slurm::Priorities priorities_;
};

}  // namespace

std::shared_ptr<const slurm::PrioritySite> priority_site_of(const nb::object& tables) {
  auto site = std::make_shared<slurm::PrioritySite>();
  site->multifactor = get<bool>(tables, "multifactor");
  site->tree = std::make_shared<slurm::FairShareTree>(
      associations_of(tables), get<slurm::FairShareKind>(tables, "fair_share"),
      get<std::int64_t>(tables, "dampening_factor"));
  site->reset_period = get<slurm::ResetPeriod>(tables, "reset_period");
  site->half_life = get<Seconds>(tables, "half_life_s");
  site->calc_period = get<Seconds>(tables, "calc_period_s");
  site->usage_at = get<std::optional<Seconds>>(tables, "usage_at");
  site->charges_ends = get<bool>(tables, "charges_ends");
  site->shows_running = get<bool>(tables, "shows_running");
  site->only_up = get<bool>(tables, "only_up");
  site->accrues_always = get<bool>(tables, "accrues_always");
  site->weight_age = get<double>(tables, "weight_age");
  site->max_age = get<Seconds>(tables, "max_age_s");
  site->weight_fair_share = get<double>(tables, "weight_fair_share");
  site->weight_job_size = get<double>(tables, "weight_job_size");
  site->weight_partition = get<double>(tables, "weight_partition");
  site->favors_small = get<bool>(tables, "favors_small");
  site->small_relative_to_time = get<bool>(tables, "small_relative_to_time");
  site->cpus = get<std::int64_t>(tables, "cpus");
  site->nodes = get<std::int64_t>(tables, "nodes");
  site->weight_tres = {get<std::vector<double>>(tables, "weight_tres"),
                       get<double>(tables, "weight_billing"), get<bool>(tables, "tres_normalised")};
  site->billing_by = get<slurm::BillingBy>(tables, "billing_by");
  site->is_gres = get<std::vector<bool>>(tables, "are_gres");
  site->partitions = partitions_of(tables);
  return site;
}

std::vector<slurm::PricedJob> priced_jobs_of(const nb::object& tables) {
  const auto associations = get<std::vector<std::int32_t>>(tables, "associations");
  auto partitions = get<std::vector<std::vector<std::size_t>>>(tables, "slurm_partitions");
  const auto submits = get<std::vector<Seconds>>(tables, "submit_times");
  const auto limits = get<std::vector<Seconds>>(tables, "time_limits_s");
  const auto nices = get<std::vector<std::int64_t>>(tables, "nices");
  const auto site_factors = get<std::vector<std::int64_t>>(tables, "site_factors");
  const auto qos = get<std::vector<double>>(tables, "qos_factors");
  const auto usage_factors = get<std::vector<std::optional<double>>>(tables, "usage_factors");
  auto tres = get<std::vector<slurm::TresCounts>>(tables, "tres");
  std::vector<slurm::PricedJob> all(associations.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = {associations[i],   std::move(partitions[i]), submits[i], limits[i],
              nices[i],          site_factors[i],          qos[i],     usage_factors[i],
              std::move(tres[i])};
  }
  return all;
}

void register_slurm_priorities(nb::module_& m) {
  nb::class_<OwnPriorities>(m, "SlurmPriorities")
      .def(nb::init<const nb::object&, const nb::object&, Seconds>(), nb::arg("tables"),
           nb::arg("jobs"), nb::arg("now"))
      .def(
          "submitted",
          [](OwnPriorities& own, JobIndex job, std::optional<Seconds> eligible, Seconds now,
             bool held) { own.get().submitted(job, eligible.value_or(kNever), now, held); },
          nb::arg("job"), nb::arg("eligible").none(), nb::arg("now"), nb::arg("held") = false)
      .def(
          "set_eligible",
          [](OwnPriorities& own, JobIndex job, std::optional<Seconds> eligible) {
            own.get().set_eligible(job, eligible.value_or(kNever));
          },
          nb::arg("job"), nb::arg("eligible").none())
      .def(
          "recompute",
          [](OwnPriorities& own, JobIndex job, Seconds now) { own.get().recompute(job, now); },
          nb::arg("job"), nb::arg("now"))
      .def(
          "started",
          [](OwnPriorities& own, JobIndex job, std::size_t partition, const slurm::TresCounts& tres,
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
          [](OwnPriorities& own, JobIndex job, std::size_t partition) {
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
