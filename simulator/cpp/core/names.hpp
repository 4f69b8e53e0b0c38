// Names of choices, which Python knows them by: `names_of` a choice gives those of all its values,
// in their order. Python explains them where it has them.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace foretime {

template <class... Text>
constexpr auto named(Text... names) {
  return std::array<std::string_view, sizeof...(names)>{names...};
}

template <class Choice>
inline constexpr bool kHasNames = requires(Choice choice) { names_of(choice); };

// Whether there is one of that name.
template <class Choice>
constexpr bool find_choice(std::string_view name, Choice& found) {
  constexpr auto names = names_of(Choice{});
  for (std::size_t place = 0; place < names.size(); ++place) {
    if (names[place] != name) continue;
    found = static_cast<Choice>(place);
    return true;
  }
  return false;
}

}  // namespace foretime
