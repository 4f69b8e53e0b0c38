#include "bindings/swf_bindings.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

#include <tuple>
#include <utility>

#include "logs/swf.hpp"

namespace nb = nanobind;

namespace foretime {
namespace {

using Numbers = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<2>>;
using Reals = nb::ndarray<nb::numpy, double, nb::ndim<1>>;
using Columns = std::tuple<Numbers, Reals, std::array<bool, kSwfFields>>;

template <class T>
nb::capsule owner_of(std::unique_ptr<T[]> values) {
  return nb::capsule(values.release(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
}

std::optional<Columns> read_columns(std::string_view text,
                                    const std::array<std::int64_t, kSwfFields>& largest) {
  std::optional<SwfTable> table;
  {
    const nb::gil_scoped_release unlocked;
    table = read_swf(text, largest);
  }
  if (!table) return std::nullopt;
  std::int64_t* const numbers = table->numbers.get();
  double* const cpu_time = table->cpu_time.get();
  return Columns(Numbers(numbers, {kSwfFields, table->jobs}, owner_of(std::move(table->numbers)),
                         {static_cast<std::int64_t>(table->capacity), 1}),
                 Reals(cpu_time, {table->jobs}, owner_of(std::move(table->cpu_time))),
                 table->fractional);
}

}  // namespace

void register_swf(nb::module_& m) {
  m.def("read_swf", &read_columns, nb::arg("text"), nb::arg("largest"));
}

}  // namespace foretime
