#include "planning/slurm/backfill_cycle.hpp"

#include <algorithm>

namespace foretime {
namespace {

std::int64_t most_plans(std::int64_t of_site, bool coarse) {
  constexpr std::int64_t kCoarsely = 30;
  if (!coarse) return of_site;
  return of_site > 0 ? std::min(of_site, kCoarsely) : kCoarsely;
}

}  // namespace

BackfillCycle::BackfillCycle(SlurmController& controller, BackfillScratch& scratch, Seconds now,
                             BackfillReach reach, Pass& pass)
    : controller_(controller),
      parameters_(controller.parameters()),
      scratch_(scratch),
      space_(scratch.space),
      now_(now),
      all_plans_(reach.all_plans || controller.goes_by_kept_jobs()),
      passes_kept_(!parameters_.assoc_limit_stop),
      most_plans_(most_plans(parameters_.bf_job_part_count_reserve, reach.coarse)),
      pass_(pass),
      timed_tests_(controller.site().version >= std::pair{24, 11}),
      own_ends_(controller.site().version >= std::pair{25, 5}),
      least_gone_(controller.site().version >= std::pair{25, 5} ? 0 : 1),
      window_end_(round_down(now + parameters_.bf_window)),
      most_records_(static_cast<std::size_t>(parameters_.bf_max_job_test)),
      plans_of_partition_(controller.site().partitions.size(), 0),
      planned_nodes_(controller.table().nodes()),
      marks_before_(controller.marks()),
      looked_at_in_(controller.site().partitions.size(), 0) {
  space_.begin(round_down(now), window_end_, controller.all_nodes(), controller.licenses_to_plan());
}

Seconds BackfillCycle::round_down(Seconds time) const {
  return time - floor_mod(time + controller_.site().epoch, parameters_.bf_resolution);
}

Seconds BackfillCycle::round_up(Seconds time) const {
  const Seconds down = round_down(time);
  return down == time ? time : down + parameters_.bf_resolution;
}

std::pair<Seconds, Seconds> BackfillCycle::slot_of(Seconds start, Seconds time_limit) const {
  Seconds end = start + time_limit;
  if (timed_tests_) end += parameters_.bf_resolution - 1;  // rounded up from 24.05.4 on
  return {round_down(start), round_down(end)};
}

bool BackfillCycle::planned() const {
  return timed_tests_ ? !planned_nodes_.empty() : planned_nodes_.meets(controller_.free().idle());
}

void BackfillCycle::run() {
  controller_.begin_loop(now_);
  const std::vector<QueueEntry>& queue = controller_.queue();
  for (const QueueEntry& entry : queue) {
    if (is_known_kept(entry)) continue;  // it has no plan
    SlurmRecord& record = controller_.record(entry.job);
    if (record.waits) record.estimate = kNever;
  }
  collect_ends();
  if (parameters_.bf_running_job_reserve) {
    std::vector<JobIndex> running;
    running.reserve(ends_.size());
    for (const End& end : ends_) running.push_back(end.job);
    std::sort(running.begin(), running.end());
    for (const JobIndex job : running) reserve_running(job);
  }
  std::size_t last = queue.size();
  for (std::size_t place = 0; place < queue.size(); ++place) {
    const QueueEntry entry = queue[place];
    if (is_known_kept(entry)) continue;
    // Nobody behind has room now, whatever is planned: plans only take nodes away.
    if (!all_plans_) last = last_candidate(last);
    if (place >= last && planned()) return;
    if (tested_ >= parameters_.bf_max_job_test) return;
    if (!controller_.may_be_looked_at(entry)) continue;
    if (look_at(entry) == Next::kStop) return;
  }
}

// The place behind the last job for which there may be room now, before a place.
std::size_t BackfillCycle::last_candidate(std::size_t before) {
  for (std::size_t place = before; place > 0; --place) {
    const QueueEntry& entry = controller_.queue()[place - 1];
    if (is_known_kept(entry)) continue;
    if (controller_.may_be_looked_at(entry) && may_start(entry)) return place;
  }
  return 0;
}

// Whether no limit keeps a job, and there is as much for it as it needs, free now and of plans for
// its time.
bool BackfillCycle::may_start(const QueueEntry& entry) {
  const Wish& wish = controller_.wishes(entry.job)[static_cast<std::size_t>(entry.number)];
  if (leaves_marks(wish)) return true;
  if (!controller_.free().may_fit(wish)) return false;
  if (passes_kept_ && is_kept(entry.job, wish)) return false;
  if (space_.size() == 1) return true;
  const SlurmRecord& record = controller_.record(entry.job);
  Seconds end = now_ + record.time_limit;
  if (record.time_min > 0) end = std::min(end, now_ + record.time_min);
  for (std::size_t place = space_.first_after(now_); place < space_.size(); ++place) {
    if (space_.record(place).begin > end) break;
    if (!wish.could_be_on(space_.counts(place))) return false;
  }
  NodeSet& free = scratch_.free;
  free = *wish.nodes;
  space_.leave_free(now_, end, free);
  controller_.chooser().begin(wish, free);
  return controller_.chooser().may_fit();
}

bool BackfillCycle::is_kept(JobIndex job, const Wish& wish) {
  if (!controller_.is_kept(job, wish.slurm_partition)) return false;
  controller_.remember_kept(job);
  return true;
}

// What is tested from now on sees another table once a record is over.
Seconds BackfillCycle::next_change() const {
  if (left_marks()) return now_;
  Seconds next = std::min(next_change_, controller_.usable_changes_at());
  for (std::size_t place = 0; place < space_.size(); ++place) {
    if (space_.record(place).end <= now_) continue;
    next = std::min(next, space_.record(place).end);
    break;
  }
  // Once the window has moved beyond an end there is a record more, for which there may be no room.
  if (ends_beyond_ > 0 && space_.made() + ends_beyond_ >= most_records_) {
    next = std::min(next, first_beyond_ + parameters_.bf_resolution - parameters_.bf_window);
  }
  return next;
}

void BackfillCycle::reserve(Seconds begin, Seconds end, const NodeSet& nodes,
                            const LicenseCounts& licenses) {
  space_.reserve(begin, end, nodes, licenses, parameters_.bf_resolution);
  if (end < window_end_) return;
  ++ends_beyond_;
  first_beyond_ = std::min(first_beyond_, end);
}

void BackfillCycle::collect_ends() {
  ends_.clear();
  ends_move_ = false;
  outlook_is_known_ = false;
  for (const auto& [first, job] : controller_.ends()) {
    const Seconds end = controller_.end(job, now_);
    ends_move_ = ends_move_ || end != first;
    ends_.push_back({first, job, end});
  }
  // Once one has run past what it was thought to, what is planned moves with the clock.
  if (!ends_.empty()) changes_at(ends_.front().first);
}

// Who is looked at

BackfillCycle::Next BackfillCycle::look_at(const QueueEntry& entry) {
  const JobIndex job = entry.job;
  const SlurmJob& facts = controller_.facts(job);
  const Wish& wish = controller_.wishes(job)[static_cast<std::size_t>(entry.number)];
  if (facts.array >= 0) {
    const auto known = plans_of_array_.find(facts.array);
    const std::int64_t plans = known == plans_of_array_.end() ? 0 : known->second;
    if (plans > 0 && plans >= parameters_.bf_max_job_array_resv) return Next::kJob;
    const bool throttled = facts.array_most > 0 && controller_.site().version >= std::pair{23, 2};
    if (throttled && plans > 0 &&
        plans + controller_.array_running(facts.array) >= facts.array_most) {
      return Next::kJob;
    }
  }
  if (passes_kept_ && is_kept(job, wish)) return Next::kJob;
  const bool now_only = is_tested_now_only(entry, wish);
  if (rejected_array_.passes_over(facts, wish.slurm_partition)) {
    // Once the window reaches beyond the end of a plan the rejected task may be planned there.
    if (ends_beyond_ > 0) {
      changes_at(first_beyond_ + parameters_.bf_resolution - parameters_.bf_window);
    }
    return Next::kJob;
  }
  if (!controller_.array_may_start(job)) return Next::kJob;
  if (looked_at_enough(entry, wish.slurm_partition)) return Next::kJob;
  if (!parameters_.bf_licenses && !controller_.has_licenses(job)) return Next::kJob;
  if (wish.max_nodes < wish.min_nodes) return Next::kJob;
  Test test;
  test.entry = &entry;
  test.wish = &wish;
  test.licenses = &controller_.planned_licenses(job);
  test.now_only = now_only;
  return run_test(test);
}

bool BackfillCycle::is_tested_now_only(const QueueEntry& entry, const Wish& wish) {
  if (parameters_.bf_min_prio_reserve > 0 && entry.priority < parameters_.bf_min_prio_reserve) {
    return true;
  }
  if (parameters_.bf_min_age_reserve > 0) {
    const Seconds more = parameters_.bf_min_age_reserve - controller_.waited(entry.job, now_);
    if (more > 0) {
      changes_at(now_ + more);
      return true;
    }
  }
  if (parameters_.bf_one_resv_per_job && controller_.record(entry.job).estimate != kNever)
    return true;
  return has_plans_enough(wish.slurm_partition);
}

bool BackfillCycle::has_plans_enough(std::int32_t partition) const {
  return most_plans_ > 0 && plans_of_partition_[static_cast<std::size_t>(partition)] >= most_plans_;
}

// Where one limit is reached none is counted on.
bool BackfillCycle::looked_at_enough(const QueueEntry& entry, std::int32_t partition) {
  const SlurmJob& facts = controller_.facts(entry.job);
  const auto reached = [](std::int64_t most, std::int64_t count) {
    return most > 0 && count >= most;
  };
  const bool any = parameters_.bf_max_job_user_part > 0 || parameters_.bf_max_job_part > 0 ||
                   parameters_.bf_max_job_assoc > 0 || parameters_.bf_max_job_user > 0;
  if (!any) return false;
  std::int64_t& user_part = looked_at_user_part_[{facts.user, partition}];
  std::int64_t& part = looked_at_in_[static_cast<std::size_t>(partition)];
  std::int64_t& assoc = looked_at_assoc_[{facts.account, facts.user}];
  std::int64_t& user = looked_at_user_[facts.user];
  if (reached(parameters_.bf_max_job_user_part, user_part) ||
      reached(parameters_.bf_max_job_part, part) || reached(parameters_.bf_max_job_assoc, assoc) ||
      reached(parameters_.bf_max_job_user, user)) {
    return true;
  }
  ++user_part;
  ++part;
  ++assoc;
  ++user;
  return false;
}

// A running job that has whole nodes or licenses (`_bf_reserve_running`).
void BackfillCycle::reserve_running(JobIndex job) {
  const SlurmRecord& running = controller_.record(job);
  if (!running.whole && controller_.facts(job).licenses.empty()) return;
  if (space_.made() >= most_records_) return;
  Seconds end = running.limit_end;
  if (controller_.site().soft_limits() && running.time_min > 0) {
    end = running.start + running.time_min;
    changes_at(end);  // from then on it moves with the clock
    if (end < now_) end = now_ + (running.limit_end - now_) / 2;
  }
  NodeSet& nodes = scratch_.found;
  nodes.clear();
  if (running.whole) {
    for (const NodeRow& row : running.rows) nodes.add(row.node, row.node + row.nodes);
  }
  reserve(space_.record(0).begin, round_up(end), nodes, controller_.planned_licenses(job));
}

}  // namespace foretime
