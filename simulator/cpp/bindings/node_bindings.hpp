// A machine of nodes and requests for it, as Python gives them.
#pragma once

#include <nanobind/nanobind.h>

namespace foretime {

void register_nodes(nanobind::module_& m);

}  // namespace foretime
