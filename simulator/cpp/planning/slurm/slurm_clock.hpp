// When the two loops run. reference/slurm/cluster.py is the specification.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "planning/slurm/slurm_site.hpp"

namespace foretime {

class SlurmClock {
 public:
  SlurmClock(const SlurmSite& site, Seconds began)
      : parameters_(site.parameters),
        wakes_with_seconds_(site.version >= std::pair{24, 11}),
        last_full_(began),
        last_queued_run_(began),
        last_main_(began),
        last_backfill_(began) {}

  // From 24.11 on the background thread wakes as a second begins, before anything happens in it.
  bool wakes_with_seconds() const { return wakes_with_seconds_; }

  // Somebody was submitted, has ended, or may be looked at now (`queue_job_scheduler`).
  void queue_main(Seconds now) {
    if (!queued_at_) queued_at_ = now;
  }
  void ended(Seconds now) {
    if (parameters_.epilog && !parameters_.defer) {
      ask_for_main(now);
    } else {
      queue_main(now);
    }
  }
  // What backfill goes by has changed.
  void changed(Seconds now) { last_update_ = now; }

  // When the main loop may run next.
  Seconds next_main() const {
    return std::min({next_full(), next_queued(), asked_for_.value_or(kNever)});
  }
  Seconds next_backfill() const {
    if (!parameters_.backfill || parameters_.bf_interval <= 0) return kNever;
    if (!last_update_ || *last_update_ < last_backfill_) return kNever;
    return std::max(last_backfill_ + backfill_interval(), *last_update_);
  }
  // From now on backfill runs the less often the more time has passed since.
  void coarsen(Seconds now) { coarse_since_ = now; }

  // The background thread looks whether the main loop is due.
  void wake(Seconds now) {
    const bool full = next_full() <= now;
    if (full) last_full_ = now;
    if (!full && next_queued() > now) return;
    queued_at_.reset();
    last_queued_run_ = now;
    asked_full_ = asked_full_ || full;
    ask_for_main(now);
  }
  bool main_is_due(Seconds now) const { return asked_for_ && *asked_for_ <= now; }
  // A run of the main loop; whether it goes through the whole queue.
  bool run_main(Seconds now) {
    asked_for_.reset();
    last_main_ = now;
    return std::exchange(asked_full_, false);
  }
  void ran_backfill(Seconds now, bool planned) {
    last_backfill_ = now;
    if (planned || nodes_planned_) last_update_ = now;
    nodes_planned_ = planned;
  }
  // While nobody waits: the runs up to a time that only full runs of the main loop are left in.
  void skip_full_runs(Seconds until) {
    if (queued_at_ || asked_for_ || next_backfill() != kNever) return;
    if (next_full() >= until) return;
    const Seconds runs = (until - 1 - last_full_) / parameters_.sched_interval;
    last_full_ += runs * parameters_.sched_interval;
    last_queued_run_ = last_main_ = last_full_;
  }

 private:
  Seconds backfill_interval() const {
    const Seconds interval = parameters_.bf_interval;
    if (!coarse_since_) return interval;
    return std::clamp((last_backfill_ - *coarse_since_) / 20, interval, 4 * interval);
  }
  Seconds next_full() const {
    return parameters_.sched_interval > 0 ? last_full_ + parameters_.sched_interval : kNever;
  }
  Seconds next_queued() const {
    if (!queued_at_) return kNever;
    return std::max(*queued_at_ + (wakes_with_seconds_ ? 1 : 0),
                    last_queued_run_ + parameters_.batch_sched_delay);
  }
  void ask_for_main(Seconds now) {
    const Seconds pause = parameters_.sched_min_interval_us < 1'000'000
                              ? 0
                              : (parameters_.sched_min_interval_us + 999'999) / 1'000'000;
    const Seconds at = std::max(now, last_main_ + pause);
    asked_for_ = asked_for_ ? std::min(*asked_for_, at) : at;
  }

  SlurmParameters parameters_;
  bool wakes_with_seconds_;
  Seconds last_full_;
  Seconds last_queued_run_;  // that the background thread has asked for
  Seconds last_main_;
  Seconds last_backfill_;
  bool nodes_planned_ = false;  // by the last backfill cycle
  std::optional<Seconds> last_update_;
  std::optional<Seconds> queued_at_;
  std::optional<Seconds> asked_for_;
  bool asked_full_ = false;
  std::optional<Seconds> coarse_since_;
};

}  // namespace foretime
