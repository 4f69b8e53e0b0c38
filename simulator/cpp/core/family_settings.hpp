// What a family of backfilling is set to, by the names that its dataclass in Python has. Each
// family reads it once, into a struct of its own whose `each` gives its members with those names.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>

#include "core/names.hpp"

namespace foretime {

using SettingValue = std::variant<bool, std::int64_t, double, std::string>;
using FamilySettings = std::map<std::string, SettingValue, std::less<>>;

namespace detail {

template <class T>
bool read_setting(const SettingValue& value, T& own) {
  if constexpr (requires { typename T::value_type; }) {
    return read_setting(value, own.emplace());
  } else if constexpr (kHasNames<T>) {
    const auto* const name = std::get_if<std::string>(&value);
    return name != nullptr && find_choice(*name, own);
  } else {
    const auto* const same = std::get_if<T>(&value);
    if (same != nullptr) own = *same;
    if constexpr (std::is_same_v<T, double>) {
      if (const auto* const whole = std::get_if<std::int64_t>(&value)) {
        own = static_cast<double>(*whole);
        return true;
      }
    }
    return same != nullptr;
  }
}

}  // namespace detail

// What was not given keeps its default. Throws std::invalid_argument on a name that the family does
// not have, and on a value that it can't be.
template <class Own>
Own settings_of(FamilySettings given) {
  Own own;
  own.each([&given](const char* name, auto& value) {
    const auto set = given.find(name);
    if (set == given.end()) return;
    if (!detail::read_setting(set->second, value)) {
      throw std::invalid_argument("the setting " + set->first + " can't have this value");
    }
    given.erase(set);
  });
  if (!given.empty()) {
    throw std::invalid_argument("the family has no setting " + given.begin()->first);
  }
  return own;
}

}  // namespace foretime
