#include "logs/swf.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace foretime {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool ends_word(const char* at, const char* end) {
  return at == end || is_blank(*at) || *at == '\n';
}

// So many digits can't overflow; a number of more is read as a real one.
constexpr int kMostDigits = 17;

// A number from `at` on, which is left behind it: [-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?
struct Number {
  bool good = false;
  bool whole = true;
  std::int64_t integer = 0;
  double real = 0;
};

Number read_number(const char*& at, const char* end) {
  Number number;
  const bool negative = *at == '-';
  if (negative || *at == '+') ++at;
  const char* const first = at;
  while (at != end && is_digit(*at) && at - first < kMostDigits) {
    number.integer = number.integer * 10 + (*at++ - '0');
  }
  if (at != first && ends_word(at, end)) {
    if (negative) number.integer = -number.integer;
    number.real = static_cast<double>(number.integer);
    number.good = true;
    return number;
  }
  // from_chars would take "inf" and "nan", too.
  if (first == end || (!is_digit(*first) && *first != '.')) return number;
  const auto [behind, error] = std::from_chars(first, end, number.real);
  at = behind;
  if (error != std::errc() || !ends_word(at, end)) return number;
  if (negative) number.real = -number.real;
  number.whole = false;
  number.good = true;
  return number;
}

}  // namespace

std::optional<SwfTable> read_swf(std::string_view text,
                                 const std::array<std::int64_t, kSwfFields>& largest) {
  SwfTable table;
  table.capacity = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  table.numbers = std::make_unique_for_overwrite<std::int64_t[]>(kSwfFields * table.capacity);
  table.cpu_time = std::make_unique_for_overwrite<double[]>(table.capacity);
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    while (at != end && (is_blank(*at) || *at == '\n')) ++at;
    if (at == end) return table;
    for (std::size_t field = 0; field < kSwfFields; ++field) {
      while (at != end && is_blank(*at)) ++at;
      if (at == end || *at == '\n') return std::nullopt;
      const Number number = read_number(at, end);
      if (!number.good || number.real > static_cast<double>(largest[field])) return std::nullopt;
      if (number.real < 0 && (number.real != -1 || field == kSwfJobNumber)) return std::nullopt;
      std::int64_t& integer = table.numbers[field * table.capacity + table.jobs];
      integer = number.integer;
      if (!number.whole) {
        integer = std::llrint(number.real);
        if (static_cast<double>(integer) != number.real) table.fractional[field] = true;
      }
      if (field == kSwfCpuTime) table.cpu_time[table.jobs] = number.real;
    }
    while (at != end && is_blank(*at)) ++at;
    if (at != end && *at != '\n') return std::nullopt;
    ++table.jobs;
  }
}

}  // namespace foretime
