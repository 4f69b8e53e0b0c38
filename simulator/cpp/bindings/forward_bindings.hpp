// Forward runs as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

namespace foretime {

void register_forward(nanobind::module_& m);

}  // namespace foretime
