#include "bindings/json_bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "logs/json_members.hpp"

namespace nb = nanobind;

namespace foretime {
namespace {

using Picked = std::tuple<nb::bytes, std::vector<nb::bytes>>;

std::optional<Picked> picked_members(const nb::bytes& text, std::string_view list,
                                     const std::vector<std::vector<std::string>>& groups) {
  std::optional<PickedMembers> picked;
  {
    const std::string_view whole(text.c_str(), text.size());
    const nb::gil_scoped_release unlocked;
    picked = pick_members(whole, list, groups);
  }
  if (!picked) return std::nullopt;
  std::vector<nb::bytes> texts;
  texts.reserve(picked->ends.size());
  std::size_t first = 0;
  for (const std::size_t end : picked->ends) {
    texts.emplace_back(picked->texts.data() + first, end - first);
    first = end;
  }
  return Picked(nb::bytes(picked->rest.data(), picked->rest.size()), std::move(texts));
}

}  // namespace

void register_json(nb::module_& m) {
  m.def("pick_members", &picked_members, nb::arg("text"), nb::arg("list"), nb::arg("groups"));
}

}  // namespace foretime
