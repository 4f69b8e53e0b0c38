// A queue order or a backfilling policy that is not in this core, as a pass asks it.
#pragma once

#include <vector>

#include "core/types.hpp"

namespace foretime {

class Engine;

// What has happened since it was asked last, in the order in which it did.
struct OutsideNews {
  std::vector<JobIndex> started;
  std::vector<JobIndex> finished;
};

// May throw; the engine then stands before the pass, which it does again when it goes on.
class OutsidePolicy {
 public:
  virtual ~OutsidePolicy() = default;
  // A finite score for each of the waiting jobs, which come in the order of submission; greater
  // first.
  virtual std::vector<double> scores(const Engine& engine, const std::vector<JobIndex>& queue,
                                     OutsideNews&& news) = 0;
  // Which jobs start now, of those waiting in queue order: not the head job, none twice, and
  // together in the free processors.
  virtual std::vector<JobIndex> backfill(const Engine& engine, const std::vector<JobIndex>& queue,
                                         bool on_requested, OutsideNews&& news) = 0;
};

}  // namespace foretime
