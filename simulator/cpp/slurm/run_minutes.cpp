#include "slurm/run_minutes.hpp"

#include <algorithm>

namespace foretime::slurm {

namespace {

void use(Group& group, double seconds, const std::vector<std::int64_t>& tres) {
  group.used_wall_s += seconds;
  for (std::size_t kind = 0; kind < tres.size(); ++kind) {
    if (tres[kind] != 0) group.used_s[kind] += seconds * static_cast<double>(tres[kind]);
  }
}

}  // namespace

void RunMinutes::charge(const ChargedJob& job, std::int64_t now, bool ended) const {
  const auto since = std::max(job.start, last_look_);
  const auto ran = static_cast<double>(std::max<std::int64_t>(now - since, 0));
  std::int64_t left = 0;
  if (since < job.limit_end) left = (ended ? job.limit_end : std::min(now, job.limit_end)) - since;
  auto plain = ran;
  auto decayed = ran * std::pow(decay_, ran);
  if (job.own_qos != nullptr) {
    const auto factor = job.own_qos->setup.usage_factor;
    plain *= factor;
    decayed *= factor;
    left = static_cast<std::int64_t>(static_cast<double>(left) * factor);
  }
  job.for_each_qos([&](QosGroup& qos) { use(qos, qos.decays ? decayed : plain, job.tres); });
  for (auto* group : *job.line) use(*group, decayed, job.tres);
  job.for_each_count(true, [&](Counts& counts) { counts.take_left(job.tres, left); });
}

void RunMinutes::ended(const ChargedJob& job, std::int64_t now) const {
  if (multifactor_) {
    charge(job, now, true);
    return;
  }
  // priority/basic forgets UsageFactor and the partition's QOS here.
  const auto left = job.limit_end - job.start;
  job.for_each_count(false, [&](Counts& counts) { counts.take_left(job.tres, left); });
}

}  // namespace foretime::slurm
