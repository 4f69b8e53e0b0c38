// What jobs ask for, and what they have, in PBS's words and the engine's.
#include <algorithm>

#include "planning/pbs/pbs_planner.hpp"

namespace foretime {
namespace {

constexpr std::int64_t kMib = 1 << 20;

// What a request says in PBS's words: a chunk for each node, or for each task.
PbsSelect select_of(const ResourceRequest& request, bool counts_memory) {
  const PartitionChoice& choice = request.choices.front();
  PbsSelect select;
  select.exclusive = choice.exclusive;
  if (!request.chunks.empty()) {
    select.place = request.place;
    for (PbsChunk chunk : request.chunks) {
      if (!counts_memory) chunk.each.memory = 0;
      select.add(chunk);
    }
    return select;
  }
  const auto add = [&](std::int64_t count, std::int64_t tasks, bool of_node) {
    if (count <= 0) return;
    std::int64_t memory = choice.memory_per_task * tasks;
    if (of_node) memory += request.memory_per_node;
    select.add({count,
                {of_node ? request.gpus_per_node : 0, counts_memory ? memory * kMib : 0,
                 tasks * request.cpus_per_task}});
  };
  if (request.nodes > 0) {
    const std::int64_t more = request.tasks % request.nodes;
    select.place = PbsPlace::kScatter;
    add(more, request.tasks / request.nodes + 1, true);
    add(request.nodes - more, request.tasks / request.nodes, true);
  } else if (request.memory_per_node > 0 || request.gpus_per_node > 0) {
    add(1, request.tasks, true);
  } else {
    add(request.tasks, 1, false);
  }
  return select;
}

}  // namespace

std::int32_t PbsPlanner::add_request(ResourceRequest request) {
  const PbsSite& site = *state_.site;
  const auto partition = static_cast<std::size_t>(request.choices.front().slurm_partition);
  const std::int32_t queue = site.queue_of_partition[partition];
  const std::int32_t pool = site.queues[static_cast<std::size_t>(queue)].pool;
  const bool counts_memory = std::any_of(
      site.hosts.begin(), site.hosts.end(),
      [pool](const PbsHost& host) { return host.pool == pool && host.room.memory > 0; });
  const PbsSelect select = select_of(request, counts_memory);
  auto& selects = state_.selects;
  auto found = std::find(selects.begin(), selects.end(), select);
  if (found == selects.end()) found = selects.insert(found, select);
  state_.requests.push_back({static_cast<std::int32_t>(found - selects.begin()), queue});
  return static_cast<std::int32_t>(state_.requests.size()) - 1;
}

void PbsPlanner::set_request(JobIndex index, std::int32_t request) {
  PbsRecord& job = make_record(index);
  job.request = request;
  const PbsRequest& asked = state_.requests[static_cast<std::size_t>(request)];
  const PbsSelect& select = state_.selects[static_cast<std::size_t>(asked.select)];
  const Resources total = select.total;
  job.exclusive = select.exclusive;
  job.counted.queue = asked.queue;
  job.counted.list = {total.cpus, total.memory, total.gpus, 0, 0};
  const auto place = static_cast<std::size_t>(index);
  if (place >= request_of_.size()) request_of_.resize(place + 1, 0);
  request_of_[place] = request;
}

bool PbsPlanner::has_room(std::int32_t request) {
  PbsRecord asking;
  asking.request = request;
  const PbsRequest& asked = state_.requests[static_cast<std::size_t>(request)];
  asking.counted.queue = asked.queue;
  return PbsWorld(state_, {}, scratch_, now_).room(asking, state_.hosts, now_).has_value();
}

std::int32_t PbsPlanner::slurm_partition_of(JobIndex index) const {
  const PbsRecord& job = state_.record(index);
  if (job.placement.empty()) return -1;
  const auto& queues = state_.site->queue_of_partition;
  const auto found = std::find(queues.begin(), queues.end(), job.counted.queue);
  return static_cast<std::int32_t>(found - queues.begin());
}

std::vector<NodeRow> PbsPlanner::rows_of(JobIndex index) const {
  std::vector<NodeRow> rows;
  for (const PbsShare& share : state_.record(index).placement) {
    Resources amount = share.amount;
    amount.memory /= kMib;
    rows.push_back({share.host, 1, amount});
  }
  return rows;
}

void PbsPlanner::has_already(JobIndex index, std::int32_t slurm_partition,
                             const std::vector<NodeRow>& rows) {
  PbsRecord& record = make_record(index);
  record.placement.clear();
  Resources total;
  for (const NodeRow& row : rows) {
    Resources amount = row.of_each;
    amount.memory *= kMib;
    for (std::int64_t host = row.node; host < row.node + row.nodes; ++host) {
      record.placement.push_back({static_cast<std::int32_t>(host), amount});
      total += amount;
    }
  }
  record.counted.queue = state_.site->queue_of_partition[static_cast<std::size_t>(slurm_partition)];
  record.counted.list = {total.cpus, total.memory, total.gpus, 0, 0};
}

}  // namespace foretime
