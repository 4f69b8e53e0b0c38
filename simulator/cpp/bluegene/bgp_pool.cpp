#include "bluegene/bgp_pool.hpp"

#include <limits>
#include <utility>

namespace foretime {

BgpPool::BgpPool(BgpMachine machine)
    : conflicts_(std::move(machine.conflicts)),
      free_(machine.nodes.size()),
      in_the_way_(machine.nodes.size(), 0) {
  for (std::size_t partition = 0; partition < machine.nodes.size(); ++partition) {
    if (sizes_.empty() || sizes_.back() != machine.nodes[partition]) {
      sizes_.push_back(machine.nodes[partition]);
      of_size_.emplace_back(machine.nodes.size());
      free_of_size_.push_back(0);
    }
    of_size_.back().insert(partition);
    size_of_partition_.push_back(sizes_.size() - 1);
    free_.insert(partition);
    ++free_of_size_.back();
  }
  waiting_.assign(sizes_.size(), 0);
}

void BgpPool::add(JobIndex job, Processors nodes) {
  const auto index = static_cast<std::size_t>(job);
  if (index >= size_of_.size()) {
    size_of_.resize(index + 1, 0);
    partition_of_.resize(index + 1, -1);
  }
  size_of_[index] = smallest_size(nodes);
}

void BgpPool::start(JobIndex job, std::size_t partition) {
  conflicts_[partition].for_each([this](std::size_t other) {
    if (in_the_way_[other]++ > 0) return;
    free_.erase(other);
    --free_of_size_[size_of_partition_[other]];
  });
  partition_of_[static_cast<std::size_t>(job)] = static_cast<std::int32_t>(partition);
  running_.push_back({0, job, partition});
}

void BgpPool::finish(JobIndex job) {
  const auto partition = static_cast<std::size_t>(partition_of(job));
  conflicts_[partition].for_each([this](std::size_t other) {
    if (--in_the_way_[other] > 0) return;
    free_.insert(other);
    ++free_of_size_[size_of_partition_[other]];
  });
  std::erase_if(running_, [job](const Running& running) { return running.job == job; });
}

bool BgpPool::any_waiting_fits() const {
  for (std::size_t size = 0; size < sizes_.size(); ++size) {
    if (waiting_[size] > 0 && free_of_size_[size] > 0) return true;
  }
  return false;
}

std::size_t BgpPool::blocks_fewest(const PartitionSet& among) const {
  std::size_t best = 0;
  auto fewest = std::numeric_limits<std::int64_t>::max();
  among.for_each([&](std::size_t partition) {
    const std::int64_t blocked = conflicts_[partition].count_common(free_);
    if (blocked >= fewest) return;
    fewest = blocked;
    best = partition;
  });
  return best;
}

std::optional<std::size_t> BgpPool::choose(JobIndex job, std::optional<std::size_t> beside) const {
  if (!fits(job)) return std::nullopt;
  PartitionSet among = of_size_[size_of(job)];
  std::uint64_t any = 0;
  for (std::size_t at = 0; at < among.words(); ++at) {
    among.word(at) &= free_.word(at);
    if (beside) among.word(at) &= ~conflicts_[*beside].word(at);
    any |= among.word(at);
  }
  return any == 0 ? std::nullopt : std::optional(blocks_fewest(among));
}

// Each is in the way of those that no later one is in the way of; what is left for the last of them
// is free first.
Drain BgpPool::first_free_of_sorted(std::size_t size) const {
  PartitionSet left = of_size_[size];
  PartitionSet last(free_.words() * 64);
  Drain drain;
  bool any = false;
  for (const Running& running : running_) {
    const PartitionSet& conflicts = conflicts_[running.partition];
    for (std::size_t at = 0; at < left.words(); ++at) {
      const std::uint64_t held = left.word(at) & conflicts.word(at);
      if (held == 0) continue;
      if (!any || running.end != drain.free_at) {
        any = true;
        last = PartitionSet(free_.words() * 64);
        drain.free_at = running.end;
      }
      last.word(at) |= held;
      left.word(at) &= ~held;
    }
  }
  drain.partition = blocks_fewest(last);
  return drain;
}

}  // namespace foretime
