// SWF reading as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

namespace foretime {

void register_swf(nanobind::module_& m);

}  // namespace foretime
