// Names of choices, which Python knows them by: `names_of` a choice gives those of all its values,
// in their order. Python explains them where it has them.
#pragma once

#include <array>
#include <string_view>

namespace foretime {

template <class... Text>
constexpr auto named(Text... names) {
  return std::array<std::string_view, sizeof...(names)>{names...};
}

template <class Choice>
inline constexpr bool kHasNames = requires(Choice choice) { names_of(choice); };

}  // namespace foretime
