// Columns that go between NumPy and the core.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace foretime {

using In = nanobind::ndarray<const std::int64_t, nanobind::ndim<1>, nanobind::c_contig,
                             nanobind::device::cpu>;
template <class T>
using Out = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>;

template <class T, class Value>
Out<T> numpy_of(std::vector<Value>&& values) {
  auto* owned = new std::vector<Value>(std::move(values));
  const nanobind::capsule owner(
      owned, [](void* p) noexcept { delete static_cast<std::vector<Value>*>(p); });
  return Out<T>(owned->data(), {owned->size()}, owner);
}

template <class T>
Out<T> to_numpy(std::vector<T>&& values) {
  return numpy_of<T>(std::move(values));
}

// An array that Python can't write to.
template <class T>
Out<const T> to_read_only_numpy(std::vector<T>&& values) {
  return numpy_of<const T>(std::move(values));
}

}  // namespace foretime
