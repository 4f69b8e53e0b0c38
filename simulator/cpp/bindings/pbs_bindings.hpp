// What Python tells the core of a site under PBS, and of its jobs.
#pragma once

#include <nanobind/nanobind.h>

#include "engine/engine.hpp"
#include "engine/forward.hpp"

namespace foretime {

void register_pbs(nanobind::module_& m, nanobind::class_<Engine>& engine);
void register_pbs_beginning(nanobind::module_& m, nanobind::class_<Beginning>& beginning);

}  // namespace foretime
