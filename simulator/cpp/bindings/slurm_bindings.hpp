#pragma once

#include <nanobind/nanobind.h>

#include "engine/engine.hpp"
#include "engine/forward.hpp"

namespace foretime {

void register_slurm_beginning(nanobind::module_& m, nanobind::class_<Beginning>& beginning);
void register_slurm(nanobind::module_& m, nanobind::class_<Engine>& engine);

}  // namespace foretime
