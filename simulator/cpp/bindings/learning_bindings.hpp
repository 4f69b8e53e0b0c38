// Native estimators and learning runs as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

namespace foretime {

void register_learning(nanobind::module_& m);

}  // namespace foretime
