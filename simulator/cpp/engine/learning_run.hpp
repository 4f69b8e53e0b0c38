// A run with an estimator in the loop: from submission to submission, learning what ended in
// between.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "estimators/online_estimator.hpp"

namespace foretime {

// A job of the workload, in the order of submission.
struct LearningJob {
  Seconds submit = 0;
  Processors processors = 0;
  Seconds actual_runtime = 0;
  Seconds requested = 0;
  UserCode user = kNoUser;
  NameCode project = kNoName;
  NameCode queue = kNoName;
  NameCode executable = kNoName;
  Evidence evidence = Evidence::kRuntime;  // as it ended in the log
};

// In which roles the scheduler goes by predictions; in the others by the requested time.
struct Roles {
  bool queue = true;
  bool backfill = true;
  bool drain = true;
};

// Does what foretime_sim.engine.estimated_run does in Python, for an engine of a flat pool without
// jobs.
class LearningRun {
 public:
  LearningRun(Engine& engine, OnlineEstimator& estimator, std::vector<LearningJob> jobs,
              Roles roles)
      : engine_(engine), estimator_(estimator), jobs_(std::move(jobs)), roles_(roles) {
    engine_.reserve(jobs_.size());
    predicted_.reserve(jobs_.size());
  }

  // Until so many jobs have been submitted. If the engine is interrupted it can go on from there.
  void submit_up_to(std::size_t jobs);

  Engine& engine() { return engine_; }
  // What was predicted for the jobs submitted so far.
  const std::vector<RolePrediction>& predicted() const { return predicted_; }

 private:
  void learn();
  JobRequest request(JobIndex index) const;
  const Job& ran(JobIndex index) const;

  Engine& engine_;
  OnlineEstimator& estimator_;
  std::vector<LearningJob> jobs_;
  Roles roles_;
  std::vector<RolePrediction> predicted_;
};

}  // namespace foretime
