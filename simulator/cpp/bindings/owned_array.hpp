// An array that numpy frees.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

namespace foretime {

template <class T>
T* owned_array(std::size_t size, nanobind::capsule& owner) {
  T* values = new T[size]();
  owner = nanobind::capsule(values, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return values;
}

}  // namespace foretime
