// Slurm's priorities, for the tests that compare them with their specification; and a site's tables
// (foretime_sim.sites.slurm.priority_tables) as the core has it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "slurm/priorities.hpp"

namespace foretime {

// Of a PriorityTables.
std::shared_ptr<const slurm::PrioritySite> priority_site_of(const nanobind::object& tables);

void register_slurm_priorities(nanobind::module_& m);

}  // namespace foretime
