// What would have happened without predictions: an EASY on requested times that runs beside the
// schedule, with the same jobs in the same queue order, for the guard to compare with. Both know
// the same: there a job ends after its actual runtime from the moment on at which it has ended
// here. Until then it is taken to end after its t_sched(backfill), unless it runs here, too, and
// began no later than there: then its end will be known in time.
#pragma once

#include <memory>

#include "core/types.hpp"

namespace foretime {

class Engine;

class PlainEasy {
 public:
  PlainEasy(Processors machine, const Policy& policy, Seconds now);
  ~PlainEasy();

  void submitted(const Job& job);
  void started(JobIndex index, Seconds now);
  void ended(JobIndex index, Seconds runtime, Seconds now);
  void updated(JobIndex index, const Job& to, Seconds now);
  void cancelled(JobIndex index, Seconds now);

  struct Lateness {
    Seconds late = 0;
    Seconds bound = 0;
  };
  // For how long a job that waits here has run there; under a gradual guard, for how long that EASY
  // has kept processors for it, which is from when on it was blocked at the head there. And how
  // long that may be: the less the longer the job waited there until then.
  Lateness lateness(JobIndex head, const Guard& guard, Seconds now);

 private:
  const Job& job(JobIndex index) const;

  std::unique_ptr<Engine> engine_;
};

}  // namespace foretime
