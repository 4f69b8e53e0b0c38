// The test of one job: now, and later as often as plans of others end.
#include <algorithm>

#include "planning/slurm/backfill_cycle.hpp"

namespace foretime {
namespace {

constexpr Seconds kUnknownStart = 500;
// To work out what running jobs leave free costs as much as some tests that find nothing.
constexpr std::int64_t kFewFailures = 10;

}  // namespace

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
  ++failed_;
  if (later && !test.now_only) {
    record(test).estimate = kNever;
    return later;
  }
  record(test).estimate = test.estimate_before;
  return std::nullopt;
}

// Whether running jobs may leave enough of these nodes before the test after this one.
bool BackfillCycle::may_hold(const Wish& wish, const NodeSet& nodes, Later later) {
  if (failed_ < kFewFailures) return true;
  if (!outlook_is_known_) {
    std::vector<FreeByEnds::End> ends;
    ends.reserve(ends_.size());
    for (const End& end : ends_) ends.push_back({end.end, &controller_.record(end.job).rows});
    scratch_.outlook.work_out(controller_.free(), std::move(ends));
    outlook_is_known_ = true;
  }
  return scratch_.outlook.may_hold(wish, nodes, later.value_or(kNever));
}

// The next start that is worth a test: at those before it there are too few nodes without plans, or
// running jobs leave too little of them before the test after it. What the tests would have done is
// done.
BackfillCycle::Later BackfillCycle::pass_over(Test& test, Seconds start) {
  const Wish& wish = *test.wish;
  if (leaves_marks(wish) || !controller_.site().reservations.empty()) return start;
  FreeWindow& window = scratch_.window;
  if (!test.window_began) {  // nothing is planned while a job is tested
    scratch_.wanted = scratch_.within;
    scratch_.wanted &= *wish.nodes;
    window.begin(space_, scratch_.wanted, start, start + test.time_limit);
    test.window_began = true;
  }
  std::size_t first = space_.first_after(start);
  std::size_t known = first;  // records before it have been looked at
  Seconds enough_from = start;
  while (start <= window_end_) {
    const Seconds end = start + test.time_limit;
    for (; known < space_.size() && space_.record(known).begin <= end; ++known) {
      if (!wish.could_be_on(space_.counts(known))) enough_from = space_.record(known).end;
    }
    Later later = lacks_licenses(test, first, end);
    if (!later) {
      later = next_start(first, end);
      if (start >= enough_from) {
        window.move(start, end);
        window.leave_free(scratch_.free);
        if (may_hold(wish, scratch_.free, later)) return start;
      }
      if (!test.counted) scratch_.passed_over.push_back(start);
    }
    if (!later) {
      record(test).estimate = test.estimate_before;
      return std::nullopt;
    }
    start = *later;
    while (first < space_.size() && space_.record(first).end <= start) ++first;
    known = std::max(known, first);
  }
  return start;
}

// Whether one of these tests would have asked the select plugin.
bool BackfillCycle::is_passed_over_counted(const Test& test) {
  NodeSet& free = scratch_.free;
  return std::any_of(scratch_.passed_over.begin(), scratch_.passed_over.end(),
                     [&](const Seconds start) {
                       free = scratch_.within;
                       free &= *test.wish->nodes;
                       space_.leave_free(start, start + test.time_limit, free);
                       return free.count() >= test.wish->min_nodes;
                     });
}

// The next start that is worth a test, from the first record that ends after this one: the first
// end of a record after which there are nodes that were not there. From 24.11 on it is, failing
// that, the end of the second record after the job's.
BackfillCycle::Later BackfillCycle::next_start(std::size_t first, Seconds end) const {
  for (std::size_t place = first; place < space_.size(); ++place) {
    if (space_.next_gains(place, scratch_.within)) return space_.record(place).end;
    if (space_.record(place).begin <= end) continue;
    if (timed_tests_ && place + 2 < space_.size()) return space_.record(place + 1).end;
    break;
  }
  return std::nullopt;
}

BackfillCycle::Later BackfillCycle::lacks_licenses(const Test& test, std::size_t first,
                                                   Seconds end) {
  if (test.licenses->empty()) return std::nullopt;
  for (std::size_t place = first; place < space_.size(); ++place) {
    if (space_.record(place).begin > end) break;
    if (!space_.record_lacks(place, *test.licenses)) continue;
    // That is no limit.
    if (controller_.site().version >= std::pair{24, 5}) controller_.keep(test.entry->job, 0);
    return space_.record(place).end;
  }
  return std::nullopt;
}

// Whether others have planned to have some of the nodes, or the licenses, by then.
bool BackfillCycle::overlaps(const Test& test, std::pair<Seconds, Seconds> slot,
                             const NodeSet& nodes) const {
  return space_.overlaps(slot.first, slot.second, nodes) ||
         space_.lacks(slot.first, slot.second, *test.licenses);
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
  const Seconds end = std::max(start, now_) + test.time_limit;
  const std::size_t first = space_.first_after(start);
  const Later lacks = lacks_licenses(test, first, end);
  Later later = lacks ? lacks : next_start(first, end);
  if (start <= now_) note_next_plan(first, start, end);
  if (usable.overlap) later = end_of_reservation(start, later);
  if (lacks) return give_up(test, later);
  NodeSet& free = scratch_.free;
  free = scratch_.within;
  free &= *wish.nodes;
  space_.leave_free(start, end, free);
  if (free.count() < wish.min_nodes) return give_up(test, later);
  if (!test.counted) {
    ++tested_;
    test.counted = true;
  }
  if (!leaves_marks(wish) && !may_hold(wish, free, later)) return give_up(test, later);
  auto found = will_run(test, start, later);
  if (!found) return give_up(test, later);
  record.estimate = std::max(found->start, start);
  scratch_.found.clear();
  for (const NodeRow& row : found->rows) scratch_.found.add(row.node, row.node + row.nodes);
  bool overlap_tested = false;
  auto slot = slot_of(record.estimate, test.time_limit);
  if (record.estimate > now_ && timed_tests_) {
    if (overlaps(test, slot, scratch_.found)) return after_overlap(test, start);
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

// The first plan that begins after a test's time matters to it once that time has moved on.
void BackfillCycle::note_next_plan(std::size_t first, Seconds start, Seconds end) {
  for (std::size_t place = first; place < space_.size(); ++place) {
    if (space_.record(place).begin <= end) continue;
    changes_at(space_.record(place).begin - (end - start));
    break;
  }
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
    if (auto rows = chooser.test()) return WillRun{now_, std::move(*rows)};
    if (test.now_only) return std::nullopt;
  } else if (test.now_only) {
    return std::nullopt;
  }
  if (timed_tests_) {
    for (const End& end : ends_) {
      if (!ends_move_ && end.first > start) break;
      if (end.end + least_gone_ > start) continue;
      const SlurmRecord& gone = controller_.record(end.job);
      for (const NodeRow& row : gone.rows) chooser.give(row, gone.slurm_partition);
    }
    if (auto rows = chooser.test()) return WillRun{now_, std::move(*rows)};
  }
  return as_jobs_end(start, later);
}

// Several at once: all that end within the window of the first one, which begins with 30 s and
// doubles.
std::optional<BackfillCycle::WillRun> BackfillCycle::as_jobs_end(Seconds start, Later later) {
  constexpr Seconds kFirstWindow = 30;
  constexpr Seconds kLongestWindow = Seconds{365} * 86'400;
  NodeChooser& chooser = controller_.chooser();
  const auto gone = [&](const End& end) { return timed_tests_ && end.end + least_gone_ <= start; };
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
      const SlurmRecord& held = controller_.record(next.job);
      const auto& rows = held.rows;
      const bool meets = std::any_of(rows.begin(), rows.end(), [this](const NodeRow& row) {
        return scratch_.free.meets(row.node, row.node + row.nodes);
      });
      if (!meets) continue;
      if (!window_start) {
        window_start =
            next.end + kFirstWindow - floor_mod(next.end + controller_.site().epoch, kFirstWindow);
      }
      last = &next;
      for (const NodeRow& row : rows) chooser.give(row, held.slurm_partition);
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
    if (auto rows = chooser.test()) {
      if (own_ends_) {
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
  const Seconds begin = space_.first_plan_of(nodes);
  if (begin != now_ && begin < record.start + limit) {
    limit = std::min(limit, std::max<Seconds>(begin - now_, 0) / 60 * 60);
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
  if (!overlap_tested && overlaps(test, slot, scratch_.found)) {
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
    reserve(slot.first, slot.second, scratch_.found, *test.licenses);
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
