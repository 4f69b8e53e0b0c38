#include "planning/slurm/backfill_cycle.hpp"

#include <algorithm>

namespace foretime {
namespace {

constexpr Seconds kUnknownStart = 500;

Seconds floor_mod(Seconds value, Seconds by) {
  const Seconds rest = value % by;
  return rest < 0 ? rest + by : rest;
}

}  // namespace

BackfillCycle::BackfillCycle(SlurmController& controller, BackfillScratch& scratch, Seconds now,
                             bool all_plans, Pass& pass)
    : controller_(controller),
      parameters_(controller.parameters()),
      scratch_(scratch),
      space_(scratch.space),
      now_(now),
      all_plans_(all_plans || controller.goes_by_kept_jobs()),
      pass_(pass),
      timed_tests_(controller.site().version >= std::pair{24, 11}),
      window_end_(round_down(now + parameters_.bf_window)),
      most_records_(static_cast<std::size_t>(parameters_.bf_max_job_test)),
      plans_of_partition_(controller.site().partitions.size(), 0),
      planned_nodes_(controller.table().nodes()),
      looked_at_in_(controller.site().partitions.size(), 0) {
  space_.begin(round_down(now), window_end_, controller.all_nodes());
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
    // Nobody behind has room now, whatever is planned: plans only take nodes away.
    if (!all_plans_) last = last_candidate(last);
    if (place >= last && planned()) return;
    if (tested_ >= parameters_.bf_max_job_test) return;
    const QueueEntry entry = queue[place];
    if (!controller_.may_be_looked_at(entry)) continue;
    if (look_at(entry) == Next::kStop) return;
  }
}

// The place behind the last job for which there may be room now, before a place.
std::size_t BackfillCycle::last_candidate(std::size_t before) {
  for (std::size_t place = before; place > 0; --place) {
    const QueueEntry& entry = controller_.queue()[place - 1];
    if (controller_.may_be_looked_at(entry) && may_start(entry)) return place;
  }
  return 0;
}

// Whether there is as much for a job as it needs, free now and of plans for its time.
bool BackfillCycle::may_start(const QueueEntry& entry) {
  const Wish& wish = controller_.wishes(entry.job)[static_cast<std::size_t>(entry.number)];
  if (!controller_.free().may_fit(wish)) return false;
  if (space_.size() == 1) return true;
  const SlurmRecord& record = controller_.record(entry.job);
  Seconds end = now_ + record.time_limit;
  if (record.time_min > 0) end = std::min(end, now_ + record.time_min);
  NodeSet& common = scratch_.common;
  common = *wish.nodes;
  for (std::size_t place = space_.first_after(now_); place < space_.size(); ++place) {
    if (space_.record(place).begin > end) break;
    if (!wish.could_be_on(space_.counts(place))) return false;
    common &= space_.free(place);
  }
  controller_.chooser().begin(wish, common);
  return controller_.chooser().may_fit();
}

// What is tested from now on sees another table once a record is over.
Seconds BackfillCycle::next_change() const {
  Seconds next = std::min(next_change_, controller_.usable_changes_at());
  for (std::size_t place = 0; place < space_.size(); ++place) {
    if (space_.record(place).end <= now_) continue;
    next = std::min(next, space_.record(place).end);
    break;
  }
  return next;
}

void BackfillCycle::collect_ends() {
  ends_.clear();
  ends_move_ = false;
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
    if (facts.array_most > 0 && plans > 0 &&
        plans + controller_.array_running(facts.array) >= facts.array_most) {
      return Next::kJob;
    }
  }
  if (!parameters_.assoc_limit_stop && controller_.is_kept(job, wish.slurm_partition)) {
    return Next::kJob;
  }
  const bool now_only = is_tested_now_only(entry, wish);
  if (rejected_array_.passes_over(facts, wish.slurm_partition) ||
      !controller_.array_may_start(job)) {
    return Next::kJob;
  }
  if (looked_at_enough(entry, wish.slurm_partition)) return Next::kJob;
  if (!parameters_.bf_licenses && !controller_.has_licenses(job)) {
    controller_.keep(job, 0);
    return Next::kJob;
  }
  if (wish.max_nodes < wish.min_nodes) return Next::kJob;
  Test test;
  test.entry = &entry;
  test.wish = &wish;
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
  const std::int64_t most = parameters_.bf_job_part_count_reserve;
  return most > 0 && plans_of_partition_[static_cast<std::size_t>(partition)] >= most;
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
  space_.reserve(space_.record(0).begin, round_up(end), nodes, parameters_.bf_resolution);
}

// The test of one job: now, and later as often as plans of others end

BackfillCycle::Next BackfillCycle::run_test(Test& test) {
  SlurmRecord& record = this->record(test);
  test.estimate_before = record.estimate;
  test.time_limit_before = record.time_limit;
  test.time_limit = record.time_limit;
  if (record.time_min > 0 && record.time_min < record.time_limit) {
    test.time_limit = record.time_min;
  }
  Later later = now_;
  scratch_.passed_over.clear();
  while (later) {
    record.time_limit = test.time_limit;
    later = test_from(test, *later);
    if (later) later = pass_over(test, *later);
  }
  if (!test.counted && is_passed_over_counted(test)) ++tested_;
  if (record.waits) record.time_limit = test.time_limit_before;
  return test.next;
}

// Tries later, if there is a later and the job may be planned.
BackfillCycle::Later BackfillCycle::give_up(Test& test, Later later) {
  if (later && !test.now_only) {
    record(test).estimate = kNever;
    return later;
  }
  record(test).estimate = test.estimate_before;
  return std::nullopt;
}

// The next start that is worth a test: at those before it the nodes without plans could not hold
// the job even if nothing ran. What the tests would have done is done.
BackfillCycle::Later BackfillCycle::pass_over(Test& test, Seconds start) {
  if (!controller_.site().reservations.empty()) return start;
  while (start <= window_end_) {
    const Seconds worth = first_worth_testing(*test.wish, start, start + test.time_limit);
    if (worth <= start) return start;
    while (start < worth && start <= window_end_) {
      if (!test.counted) scratch_.passed_over.push_back(start);
      const Later next = next_start(start, start + test.time_limit);
      if (!next) {
        record(test).estimate = test.estimate_before;
        return std::nullopt;
      }
      start = *next;
    }
  }
  return start;
}

// Whether one of these tests would have asked the select plugin.
bool BackfillCycle::is_passed_over_counted(const Test& test) {
  NodeSet& free = scratch_.free;
  return std::any_of(scratch_.passed_over.begin(), scratch_.passed_over.end(),
                     [&](const Seconds start) {
                       free_of_plans(start, start + test.time_limit);
                       free &= *test.wish->nodes;
                       return free.count() >= test.wish->min_nodes;
                     });
}

// No start before it leaves enough nodes until its end.
Seconds BackfillCycle::first_worth_testing(const Wish& wish, Seconds start, Seconds end) {
  const std::size_t first = space_.first_after(start);
  std::size_t until = first;
  while (until < space_.size() && space_.record(until).begin <= end) ++until;
  for (std::size_t place = until; place-- > first;) {
    if (!wish.could_be_on(space_.counts(place))) return space_.record(place).end;
  }
  NodeSet& common = scratch_.common;
  common = *wish.nodes;
  for (std::size_t place = first; place < until; ++place) common &= space_.free(place);
  if (could_be_on_common(wish)) return start;
  common = *wish.nodes;
  for (std::size_t place = until; place-- > first;) {
    common &= space_.free(place);
    if (!could_be_on_common(wish)) return space_.record(place).end;
  }
  return start;
}

bool BackfillCycle::could_be_on_common(const Wish& wish) {
  const NodeTable& table = controller_.table();
  for (const std::int32_t group : wish.groups) {
    scratch_.counts[static_cast<std::size_t>(group)] =
        scratch_.common.count(table.first_of(group), table.last_of(group));
  }
  return wish.could_be_on(scratch_.counts);
}

// As free_of_plans() has it: the first record after a start whose nodes are not all in the one
// before it.
BackfillCycle::Later BackfillCycle::next_start(Seconds start, Seconds end) const {
  for (std::size_t place = space_.first_after(start); place < space_.size(); ++place) {
    const NodeSet& free = space_.free(place);
    if (place + 1 < space_.size() &&
        !scratch_.within.common_is_within(space_.free(place + 1), free, free)) {
      return space_.record(place).end;
    }
    if (space_.record(place).begin <= end) continue;
    if (timed_tests_ && place + 2 < space_.size()) return space_.record(place + 1).end;
    break;
  }
  return std::nullopt;
}

BackfillCycle::Later BackfillCycle::test_from(Test& test, Seconds start) {
  const Wish& wish = *test.wish;
  SlurmRecord& record = this->record(test);
  const auto usable =
      controller_.usable(test.entry->job, start, wish.slurm_partition, scratch_.closed);
  if (!usable.possible) return std::nullopt;
  if (start > window_end_) {
    changes_at(start - parameters_.bf_window);
    return std::nullopt;
  }
  scratch_.within = controller_.nodes_of_partition(wish.slurm_partition);
  if (usable.any_closed) scratch_.within -= scratch_.closed;
  Later later = free_of_plans(start, std::max(start, now_) + test.time_limit);
  if (usable.overlap) later = end_of_reservation(start, later);
  NodeSet& free = scratch_.free;
  free &= *wish.nodes;
  if (free.count() < wish.min_nodes) return give_up(test, later);
  if (!test.counted) {
    ++tested_;
    test.counted = true;
  }
  auto found = will_run(test, start, later);
  if (!found) return give_up(test, later);
  record.estimate = std::max(found->start, start);
  scratch_.found.clear();
  for (const NodeRow& row : found->rows) scratch_.found.add(row.node, row.node + row.nodes);
  bool overlap_tested = false;
  auto slot = slot_of(record.estimate, test.time_limit);
  if (record.estimate > now_ && timed_tests_) {
    if (space_.overlaps(slot.first, slot.second, scratch_.found)) {
      return after_overlap(test, start);
    }
    overlap_tested = true;
  }
  if (record.estimate <= now_) {
    if (start_now(test, later)) return std::nullopt;
    later = std::nullopt;
    changes_at(now_);
    slot = slot_of(record.estimate, test.time_limit);
  }
  return plan(test, slot, start, later, overlap_tested);
}

// Nodes without plans from start to end, and the next start worth a test: the first end of a record
// after which there are nodes that were not there. From 24.11 on it is, failing that, the end of
// the second record after the job's.
BackfillCycle::Later BackfillCycle::free_of_plans(Seconds start, Seconds end) {
  NodeSet& free = scratch_.free;
  free = scratch_.within;
  Later later;
  for (std::size_t place = 0; place < space_.size(); ++place) {
    const NodeSpace::Record& record = space_.record(place);
    const bool has_next = place + 1 < space_.size();
    if (record.end > start && has_next && !later &&
        !scratch_.within.common_is_within(space_.free(place + 1), free, space_.free(place))) {
      later = record.end;
    }
    if (record.end <= start) continue;
    if (record.begin > end) {
      if (start <= now_) changes_at(record.begin - (end - start));
      if (timed_tests_ && !later && place + 2 < space_.size()) {
        later = space_.record(place + 1).end;
      }
      break;
    }
    free &= space_.free(place);
  }
  return later;
}

BackfillCycle::Later BackfillCycle::end_of_reservation(Seconds start, Later later) {
  const Seconds next = controller_.next_reservation_end(start);
  if (next == kNever) return later;
  const Seconds end = round_up(next) + 1;
  if (end >= window_end_) {
    changes_at(end + 1 - parameters_.bf_window);
    return later;
  }
  return later ? std::min(*later, end) : end;
}

// When and where a job could run as running jobs end (`_will_run_test`, cons_tres/job_test.c).
std::optional<BackfillCycle::WillRun> BackfillCycle::will_run(const Test& test, Seconds start,
                                                              Later later) {
  NodeChooser& chooser = controller_.chooser();
  chooser.begin(*test.wish, scratch_.free);
  if (!timed_tests_ || start <= now_) {
    if (auto rows = chooser.choose()) return WillRun{now_, std::move(*rows)};
    if (test.now_only) return std::nullopt;
  } else if (test.now_only) {
    return std::nullopt;
  }
  if (timed_tests_) {
    for (const End& end : ends_) {
      if (!ends_move_ && end.first > start) break;
      if (end.end > start) continue;
      for (const NodeRow& row : controller_.record(end.job).rows) chooser.give(row);
    }
    if (auto rows = chooser.choose()) return WillRun{now_, std::move(*rows)};
  }
  return as_jobs_end(start, later);
}

// Several at once: all that end within the window of the first one, which begins with 30 s and
// doubles.
std::optional<BackfillCycle::WillRun> BackfillCycle::as_jobs_end(Seconds start, Later later) {
  constexpr Seconds kFirstWindow = 30;
  constexpr Seconds kLongestWindow = Seconds{365} * 86'400;
  NodeChooser& chooser = controller_.chooser();
  const auto gone = [&](const End& end) { return timed_tests_ && end.end <= start; };
  Seconds window = kFirstWindow;
  Later window_start;
  std::vector<const End*> removed;
  std::size_t place = 0;
  const auto skip_gone = [&] {
    while (place < ends_.size() && gone(ends_[place])) ++place;
  };
  bool more = true;
  while (more) {
    const End* last = nullptr;
    const End* following = nullptr;
    while (true) {
      skip_gone();
      if (place >= ends_.size() || (timed_tests_ && later && ends_[place].end > *later)) {
        more = false;
        break;
      }
      const End& next = ends_[place++];
      const auto& rows = controller_.record(next.job).rows;
      const bool meets = std::any_of(rows.begin(), rows.end(), [this](const NodeRow& row) {
        return scratch_.free.meets(row.node, row.node + row.nodes);
      });
      if (!meets) continue;
      if (!window_start) {
        window_start =
            next.end + kFirstWindow - floor_mod(next.end + controller_.site().epoch, kFirstWindow);
      }
      last = &next;
      for (const NodeRow& row : rows) chooser.give(row);
      removed.push_back(&next);
      skip_gone();
      if (place >= ends_.size()) {
        more = false;
        break;
      }
      following = &ends_[place];
      if (following->end > *window_start + window) break;
    }
    if (last == nullptr) return std::nullopt;
    if (auto rows = chooser.choose()) {
      if (timed_tests_) {
        NodeSet& found = scratch_.found;
        found.clear();
        for (const NodeRow& row : *rows) found.add(row.node, row.node + row.nodes);
        // NOLINTNEXTLINE(modernize-loop-convert): there is no reversed view before C++20's ranges
        for (auto job = removed.rbegin(); job != removed.rend(); ++job) {
          const auto& held = controller_.record((*job)->job).rows;
          if (std::any_of(held.begin(), held.end(), [&found](const NodeRow& row) {
                return found.meets(row.node, row.node + row.nodes);
              })) {
            last = *job;
            break;
          }
        }
      }
      const Seconds end = last->end;
      return WillRun{end <= now_ ? controller_.guessed_end(last->job, now_) : end,
                     std::move(*rows)};
    }
    while (window <= kLongestWindow) {
      window *= 2;
      if (following == nullptr || following->end <= *window_start + window) break;
    }
  }
  return std::nullopt;
}

BackfillCycle::Later BackfillCycle::after_overlap(const Test& test, Seconds start) {
  SlurmRecord& record = this->record(test);
  Seconds later = record.estimate;
  if (later == start) later += parameters_.bf_resolution;
  record.estimate = kNever;
  return later;
}

// The choice is made anew, of all free nodes (`_start_job`).
bool BackfillCycle::start_now(Test& test, Later later) {
  const JobIndex job = test.entry->job;
  SlurmRecord& record = this->record(test);
  const Verdict verdict =
      controller_.select_nodes(job, test.entry->number, scratch_.free, now_, test.time_limit_before,
                               StartedBy::kBackfilled, pass_);
  record.time_limit = test.time_limit_before;
  if (verdict == Verdict::kStarted) {
    if (record.time_min > 0 && !controller_.site().soft_limits()) shorten(test);
    controller_.change_limits(job, record.time_limit, record.time_min);
    if (record.time_limit != test.time_limit_before) {
      const Seconds over = controller_.partition(record.slurm_partition).over_time_limit;
      pass_.set_time_limit(job, record.time_limit + over);
    }
    collect_ends();
    reserve_running(job);
    rejected_array_.clear();
    ++started_;
    if (parameters_.bf_max_job_start > 0 && started_ >= parameters_.bf_max_job_start) {
      test.next = Next::kStop;
    }
    return true;
  }
  if (verdict == Verdict::kReserved ||
      (verdict == Verdict::kPolicy && !parameters_.assoc_limit_stop)) {
    record.estimate = test.estimate_before;
    return true;
  }
  if (verdict == Verdict::kPolicy) record.estimate = later ? *later : now_ + kUnknownStart;
  return false;
}

// To the next plan on its nodes, though not below its least time (`_reset_job_time_limit`).
void BackfillCycle::shorten(const Test& test) {
  SlurmRecord& record = this->record(test);
  NodeSet& nodes = scratch_.found;
  nodes.clear();
  for (const NodeRow& row : record.rows) nodes.add(row.node, row.node + row.nodes);
  Seconds limit = record.time_limit;
  if (controller_.site().version < std::pair{25, 5}) {
    record.time_limit = std::min(record.time_min, limit);
    return;
  }
  for (std::size_t place = 0; place < space_.size(); ++place) {
    const Seconds begin = space_.record(place).begin;
    const bool begins_within = begin != now_ && begin < record.start + limit;
    if (begins_within && !nodes.is_within(space_.free(place))) {
      limit = std::min(limit, std::max<Seconds>(begin - now_, 0) / 60 * 60);
    }
  }
  record.time_limit = std::max(record.time_min, limit);
}

BackfillCycle::Later BackfillCycle::plan(Test& test, std::pair<Seconds, Seconds> slot,
                                         Seconds start, Later later, bool overlap_tested) {
  SlurmRecord& record = this->record(test);
  if (record.estimate > now_ && test.now_only) {
    keep_earlier(test);
    return std::nullopt;
  }
  if (later && record.estimate > *later) {
    record.estimate = kNever;
    return later;
  }
  if (record.estimate > now_ + parameters_.bf_window) {
    changes_at(record.estimate - parameters_.bf_window);
    keep_earlier(test);
    return std::nullopt;
  }
  if (!overlap_tested && space_.overlaps(slot.first, slot.second, scratch_.found)) {
    return after_overlap(test, start);
  }
  const std::int32_t partition = test.wish->slurm_partition;
  if (!parameters_.assoc_limit_stop &&
      controller_.is_kept_from(test.entry->job, partition, scratch_.found)) {
    return std::nullopt;
  }
  if (has_plans_enough(partition)) return std::nullopt;
  ++plans_of_partition_[static_cast<std::size_t>(partition)];
  rejected_array_.clear();
  const SlurmJob& facts = controller_.facts(test.entry->job);
  if (facts.array >= 0) ++plans_of_array_[facts.array];
  if (!parameters_.bf_one_resv_per_job || test.estimate_before == kNever) {
    if (space_.made() >= most_records_) {
      test.next = Next::kStop;
      return std::nullopt;
    }
    space_.reserve(slot.first, slot.second, scratch_.found, parameters_.bf_resolution);
    planned_nodes_ |= scratch_.found;
  }
  keep_earlier(test);
  return std::nullopt;
}

void BackfillCycle::keep_earlier(const Test& test) {
  SlurmRecord& record = this->record(test);
  record.estimate = std::min(record.estimate, test.estimate_before);
}

}  // namespace foretime
