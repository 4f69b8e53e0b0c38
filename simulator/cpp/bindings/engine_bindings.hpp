// The engine as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

namespace foretime {

void register_engine(nanobind::module_& m);

}  // namespace foretime
