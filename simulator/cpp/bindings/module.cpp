// Registers the native core; every subject has its own file.
#include <nanobind/nanobind.h>

#include "bindings/availability_profile_bindings.hpp"
#include "bindings/engine_bindings.hpp"
#include "bindings/forward_bindings.hpp"
#include "bindings/learning_bindings.hpp"
#include "bindings/node_bindings.hpp"
#include "bindings/slurm_limit_bindings.hpp"
#include "bindings/slurm_priority_bindings.hpp"
#include "bindings/swf_bindings.hpp"

NB_MODULE(_core, m) {
  m.doc() = "Native core of foretime_sim; private: use foretime_sim.engine.engine.";
#ifdef FORETIME_SANITIZED
  m.attr("sanitized") = true;
#else
  m.attr("sanitized") = false;
#endif
  foretime::register_nodes(m);
  foretime::register_engine(m);
  foretime::register_availability_profile(m);
  foretime::register_forward(m);
  foretime::register_learning(m);
  foretime::register_slurm_limits(m);
  foretime::register_slurm_priorities(m);
  foretime::register_swf(m);
}
