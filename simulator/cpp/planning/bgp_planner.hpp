// Draining on a Blue Gene: Tang 2010, section II.C; foretime_sim.reference.bgp is the
// specification.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "bluegene/bgp_pool.hpp"
#include "planning/queue_planner.hpp"

namespace foretime {

class BgpPlanner final : public QueuePlanner {
 public:
  BgpPlanner(const Scheduling& engine, BgpMachine machine)
      : QueuePlanner(engine), pool_(std::move(machine)) {}

  const BgpPool& pool() const { return pool_; }
  // A job that runs already, and is told of next, has this bgp_partition, which must be free. One
  // that is given none gets one as if it started then; there must be room.
  void place(JobIndex index, Processors nodes, std::size_t bgp_partition);

  void submitted(JobIndex index) override { pool_.add(index, job(index).processors); }
  void arrived(JobIndex index) override { pool_.arrived(index); }
  void cancelled(JobIndex index) override { pool_.left_queue(index); }
  void runs_already(JobIndex index, Seconds now) override;
  void finished(JobIndex index, Seconds /*now*/) override { pool_.finish(index); }
  void schedule(Seconds now, const Queue& queue, Pass& pass) override;
  bool plans_head_alone() const override { return true; }
  Seconds planned_start(JobIndex head) const override;

 private:
  bool guard(JobIndex head);
  void backfill(const Drain& drain, bool on_requested, Pass& pass);
  std::optional<std::pair<std::size_t, StartedBy>> place_beside(const Drain& drain,
                                                                const Pending& entry,
                                                                bool on_requested) const;
  Drain drain_for(JobIndex head, bool on_requested) const;
  void start(JobIndex index, StartedBy how, std::size_t bgp_partition, Pass& pass);

  mutable BgpPool pool_;  // sorts its running jobs when it is asked
  std::vector<Candidate> scored_;
  std::vector<Candidate> candidates_;
};

}  // namespace foretime
