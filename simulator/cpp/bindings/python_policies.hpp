// Python code as a policy from outside, and what it may look at while it is asked.
#pragma once

#include <nanobind/nanobind.h>

#include <array>

#include "engine/engine.hpp"

namespace foretime {

// So that Python's garbage collector sees what an engine holds through the policy that it asks.
extern const std::array<PyType_Slot, 3> engine_slots;

void register_python_policies(nanobind::class_<Engine>& engine);

}  // namespace foretime
