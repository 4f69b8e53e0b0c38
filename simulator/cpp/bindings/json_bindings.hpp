// JSON picking as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

namespace foretime {

void register_json(nanobind::module_& m);

}  // namespace foretime
