#include "slurm/run_minutes.hpp"

#include <algorithm>
#include <cmath>

namespace foretime::slurm {

void RunMinutes::decay(LimitGroups& groups, std::int64_t now) const {
  const double kept = std::pow(decay_, static_cast<double>(now - last_look_));
  if (kept == 1.0) return;
  groups.for_each_qos([kept](QosGroup& qos) {
    if (qos.setup().decays) qos.decay(kept);
  });
  groups.for_each_association([kept](AssociationGroup& group) { group.decay(kept); });
}

void RunMinutes::charge(LimitGroups& groups, const ChargedJob& job, std::int64_t now,
                        bool ended) const {
  const auto since = std::max(job.start, last_look_);
  const auto ran = static_cast<double>(std::max<std::int64_t>(now - since, 0));
  std::int64_t left = 0;
  if (since < job.limit_end) left = (ended ? job.limit_end : std::min(now, job.limit_end)) - since;
  auto plain = ran;
  auto decayed = ran * std::pow(decay_, ran);
  if (const auto* own = groups.qos(job.counted.own_qos)) {
    const auto factor = own->setup().usage_factor;
    plain *= factor;
    decayed *= factor;
    left = static_cast<std::int64_t>(static_cast<double>(left) * factor);
  }
  groups.for_each_qos_of(
      job.counted, [&](QosGroup& qos) { qos.use(qos.setup().decays ? decayed : plain, job.tres); });
  groups.for_each_association_of(job.counted.association,
                                 [&](AssociationGroup& group) { group.use(decayed, job.tres); });
  groups.for_each_count_of(job.counted, true,
                           [&](Counts& counts) { counts.take_left(job.tres, left); });
}

void RunMinutes::ended(LimitGroups& groups, const ChargedJob& job, std::int64_t now) const {
  if (multifactor_) {
    charge(groups, job, now, true);
    return;
  }
  // priority/basic forgets UsageFactor and the partition's QOS here.
  const auto left = job.limit_end - job.start;
  groups.for_each_count_of(job.counted, false,
                           [&](Counts& counts) { counts.take_left(job.tres, left); });
}

}  // namespace foretime::slurm
