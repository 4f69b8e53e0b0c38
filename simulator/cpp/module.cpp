// Registers the native core; every subject has its own file.
#include <nanobind/nanobind.h>

#include "availability_profile_bindings.hpp"
#include "engine_bindings.hpp"
#include "forward_bindings.hpp"
#include "learning_bindings.hpp"
#include "node_bindings.hpp"
#include "swf_bindings.hpp"

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
  foretime::register_swf(m);
}
