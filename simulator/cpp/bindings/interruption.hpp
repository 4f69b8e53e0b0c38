// Work of an engine without the interpreter's lock, which Ctrl-C ends.
#pragma once

#include <nanobind/nanobind.h>

#include "engine/engine.hpp"

namespace foretime {

// A signal's handler raised.
inline bool signal_raised() {
  const nanobind::gil_scoped_acquire locked;
  return PyErr_CheckSignals() != 0;
}

template <class Work>
void interruptibly(Engine& engine, Work work) {
  engine.set_interrupted(signal_raised);
  try {
    const nanobind::gil_scoped_release unlocked;
    work();
  } catch (const Interrupted&) {
    throw nanobind::python_error();
  }
}

}  // namespace foretime
