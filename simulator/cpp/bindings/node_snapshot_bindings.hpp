// What snapshots hold of nodes, as Python gives and sees it.
#pragma once

#include <nanobind/nanobind.h>

#include "engine/forward.hpp"

namespace foretime {

void register_node_snapshots(nanobind::module_& m, nanobind::class_<Beginning>& beginning);

}  // namespace foretime
