// The Standard Workload Format: 18 numbers a line, read at the speed of memory. Only what is as it
// should be is read here; foretime_sim.logs.swf reads anything else again, and says what is wrong.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace foretime {

inline constexpr std::size_t kSwfFields = 18;
inline constexpr std::size_t kSwfJobNumber = 0;  // the one field that may not be unknown
inline constexpr std::size_t kSwfCpuTime = 5;    // the one field whose fractions count

struct SwfTable {
  std::size_t jobs = 0;
  std::size_t capacity = 0;
  // Field f of job j is at f * capacity + j: rounded to the nearest integer, -1 where unknown.
  std::unique_ptr<std::int64_t[]> numbers;
  std::unique_ptr<double[]> cpu_time;
  std::array<bool, kSwfFields> fractional{};  // whether a number of that field had to be rounded
};

// Reads lines of numbers, without comments; nothing if any line is malformed or a number exceeds
// its field's largest.
std::optional<SwfTable> read_swf(std::string_view text,
                                 const std::array<std::int64_t, kSwfFields>& largest);

}  // namespace foretime
