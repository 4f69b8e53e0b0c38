// What every planner of jobs on nodes can be told and asked, whoever decides there.
#pragma once

#include <cstdint>
#include <vector>

#include "nodes/node_scheduling.hpp"

namespace foretime {

class OnNodes {
 public:
  OnNodes() = default;
  OnNodes(const OnNodes&) = delete;
  OnNodes& operator=(const OnNodes&) = delete;

  // Records what jobs have of which nodes.
  virtual void record() = 0;
  // Rows of job, node, CPUs, memory, GPUs.
  virtual const std::vector<std::int64_t>& records() const = 0;

  // Gives its number.
  virtual std::int32_t add_request(ResourceRequest request) = 0;
  // Before the job is submitted or added.
  virtual void set_request(JobIndex index, std::int32_t request) = 0;
  // By job.
  virtual const std::vector<std::int32_t>& request_of() const = 0;
  // Whether a job with the request could run now.
  virtual bool has_room(std::int32_t request) = 0;

  // Where a job runs or ran; -1: it never did.
  virtual std::int32_t slurm_partition_of(JobIndex index) const = 0;
  // What a running job has.
  virtual std::vector<NodeRow> rows_of(JobIndex index) const = 0;
  // Places that waiting jobs are promised; null where there are none.
  virtual const std::vector<NodeReservation>* node_reservations() const { return nullptr; }

 protected:
  ~OnNodes() = default;
};

}  // namespace foretime
