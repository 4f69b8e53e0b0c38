// Limits of a Slurm site, alone, for tests and for who tries a site's limits by hand.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "slurm/limit_setup.hpp"

namespace foretime {

// A site's limits from a `LimitTables` of Python (foretime_sim.sites.slurm.limit_tables).
std::shared_ptr<const slurm::LimitsSetup> limits_setup_of(const nanobind::object& tables);
void register_slurm_limits(nanobind::module_& m);

}  // namespace foretime
