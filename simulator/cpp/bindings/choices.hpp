// Choices with names go between Python and the core as their names.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "core/names.hpp"

NAMESPACE_BEGIN(NB_NAMESPACE)
NAMESPACE_BEGIN(detail)

template <class Choice>
  requires foretime::kHasNames<Choice>
struct type_caster<Choice, enable_if_t<std::is_enum_v<Choice>>> {
  NB_TYPE_CASTER(Choice, const_name("str"))

  bool from_python(handle name, std::uint8_t, cleanup_list*) noexcept {
    Py_ssize_t length = 0;
    const char* text =
        PyUnicode_Check(name.ptr()) ? PyUnicode_AsUTF8AndSize(name.ptr(), &length) : nullptr;
    if (text == nullptr) {
      PyErr_Clear();
      return false;
    }
    return foretime::find_choice(std::string_view(text, static_cast<std::size_t>(length)), value);
  }

  static handle from_cpp(Choice choice, rv_policy, cleanup_list*) noexcept {
    const std::string_view name = names_of(choice)[static_cast<std::size_t>(choice)];
    return PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size()));
  }
};

NAMESPACE_END(detail)
NAMESPACE_END(NB_NAMESPACE)
