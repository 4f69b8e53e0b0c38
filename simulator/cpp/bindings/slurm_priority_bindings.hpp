// Slurm's priorities, for the tests that compare them with their specification; and a site's tables
// (foretime_sim.sites.slurm_priority_tables) as the core has them.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "slurm/priorities.hpp"

namespace foretime {

// A PriorityTables, and one of its PricedJobTables.
std::shared_ptr<const slurm::PrioritySite> priority_site_of(const nanobind::object& tables);
std::vector<slurm::PricedJob> priced_jobs_of(const nanobind::object& tables);

void register_slurm_priorities(nanobind::module_& m);

}  // namespace foretime
