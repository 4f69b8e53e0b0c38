// The scores of waiting jobs under orders that change with time.
#pragma once

#include "core/types.hpp"

namespace foretime {

// Greater scores come first. The reference evaluates the same expressions in the same precision.
inline double queue_score(Order order, Seconds waited, Seconds queue_time, Processors processors) {
  const auto wait = static_cast<double>(waited);
  const auto time = static_cast<double>(queue_time);
  if (order == Order::kXf) return (wait + time) / time;
  const double ratio = wait / time;  // Tang 2010, equation 1
  return ratio * ratio * ratio * static_cast<double>(processors);
}

inline double queue_score(Order order, const Job& job, Seconds now) {
  if (order == Order::kOutside) return 0;  // asked for the whole queue together
  return queue_score(order, now - job.submit, job.queue_time, job.processors);
}

}  // namespace foretime
