// The availability profile as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

namespace foretime {

void register_availability_profile(nanobind::module_& m);

}  // namespace foretime
