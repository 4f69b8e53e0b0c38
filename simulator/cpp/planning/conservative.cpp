// Conservative backfilling: every job is promised a start at its submission, and keeps it or gets
// an earlier one.
//
// In the order of their planned starts, to remove all jobs and reinsert them is to move them one by
// one with all the others in place: a job planned at s can move to s' < s if enough is free on
// [s', min(s, s' + duration)), for from s on it fits already, and what is claimed before s belongs
// to jobs that run or are planned before it. When nobody can move, a new job or the time that
// passes does not change that; so only jobs that could use what has been given back since are
// tried, and what those give up that move.
#include "planning/conservative.hpp"

#include <algorithm>

namespace foretime {

void Conservative::now_planned(JobIndex index) { promises_.insert(promise_of(index)); }

void Conservative::no_longer_planned(JobIndex index) { promises_.erase(promise_of(index)); }

// Whether there was anything to be looked over again is not known: to do it changes nothing then.
void Conservative::resumed(JobIndex index) {
  wait({index});
  out_of_order_ = true;
  left_over_from_ = kLongAgo;
  left_over_until_ = kNever;
}

// A job that a limit kept from the queue comes with the place of its submission, before others that
// have promises.
void Conservative::wait(const std::vector<JobIndex>& jobs) {
  const auto earlier = [this](JobIndex a, JobIndex b) { return job(a).rank < job(b).rank; };
  const auto so_far = static_cast<std::ptrdiff_t>(waiting_.size());
  waiting_.insert(waiting_.end(), jobs.begin(), jobs.end());
  const auto added = waiting_.begin() + so_far;
  std::sort(added, waiting_.end(), earlier);
  if (so_far > 0 && added != waiting_.end() && earlier(*added, *(added - 1))) {
    out_of_order_ = true;
    std::inplace_merge(waiting_.begin(), added, waiting_.end(), earlier);
  }
}

Conservative::Promise Conservative::promise_of(JobIndex index) const {
  return {planned_start(index), job(index).rank, index, job(index).processors};
}

Seconds Conservative::next_planned_start() const {
  for (const auto& block : promises_.blocks()) {
    if (block.last().start <= reached()) continue;
    for (const Promise& promise : block) {
      if (promise.start > reached()) return promise.start;
    }
  }
  return kNever;
}

void Conservative::plan(Seconds now, const QueueInOrder& queue, Starts& starts) {
  // Who could not start when planned is planned anew, and so are all.
  const bool stuck = is_stuck(now);
  if (broken_ || stuck) {
    renew(now, stuck);
  } else if (changed_) {
    compress(now);
  }
  insert_arrivals(now, queue);
  start_due(now, starts);
}

std::vector<JobIndex> Conservative::promised(bool by_submission) {
  std::vector<JobIndex> jobs;
  jobs.reserve(promises_.size());
  if (by_submission) {
    std::erase_if(waiting_, [this](JobIndex index) { return job(index).state != State::kPending; });
    jobs = waiting_;
  } else {
    for (const auto& block : promises_.blocks()) {
      for (const Promise& promise : block) jobs.push_back(promise.job);
    }
  }
  return jobs;
}

// After promises have been broken.
void Conservative::renew(Seconds now, bool stuck) {
  const bool by_submission = compression_ == Compression::kSubmissionOrder;
  if (compression_ == Compression::kOneByOne && !stuck && all_hold()) {
    gain(now, kNever);
    compress_one_by_one(now);
    return;
  }
  reinsert(now, promised(by_submission));
}

bool Conservative::all_hold() const {
  for (const auto& block : promises_.blocks()) {
    for (const Promise& promise : block) {
      if (!profile().holds(promise.start, claim_end(promise.job))) return false;
    }
  }
  return true;
}

void Conservative::reinsert(Seconds now, const std::vector<JobIndex>& jobs) {
  for (const JobIndex index : jobs) break_promise(index);
  start_adding();
  for (const JobIndex index : jobs) promise(index, earliest_added(index, now));
  left_over_from_ = kNever;
  left_over_until_ = kLongAgo;
  out_of_order_ = false;
}

void Conservative::compress(Seconds now) {
  switch (compression_) {
    case Compression::kReservationOrder:
      if (gained_from_ < gained_until_) compress_in_order(now);
      break;
    case Compression::kSubmissionOrder:
      if (gained_from_ < gained_until_ || out_of_order_) reinsert(now, promised(true));
      break;
    case Compression::kOneByOne:
      compress_one_by_one(now);
      break;
  }
}

// Moves a job to its earliest start from `from` on, and adds what it gives up to what has been
// gained; false if there is none before it.
bool Conservative::try_to_move(JobIndex index, Seconds from) {
  const Seconds planned = planned_start(index);
  const Seconds duration = time(index);
  const Seconds before = std::min(planned, gained_until_);
  from = std::max(from, gained_from_ - duration + 1);
  if (from >= before) return false;
  const Seconds start = profile().earlier_fit(index, from, before, planned, duration);
  if (start == kNever) return false;
  move_promise(index, start);
  gain(std::max(planned, start + duration), planned + duration);
  return true;
}

// In this order a start at which one job does not fit is none for any later job that needs as much
// for as long: what bars it lies before the planned start of the first, where nothing is given up
// any more.
void Conservative::compress_in_order(Seconds now) {
  Processors most = profile().most_free(gained_from_, gained_until_);
  barred_.clear();
  moved_.clear();
  for (const auto& block : promises_.blocks()) {
    if (block.last().start <= gained_from_ || block.summary.processors > most) continue;
    for (const Promise& promise : block) {
      if (promise.start <= gained_from_ || promise.processors > most) continue;
      const Seconds duration = time(promise.job);
      const Seconds from = barred_.first_start(promise.processors, duration, now);
      if (from >= std::min(promise.start, gained_until_)) continue;
      if (try_to_move(promise.job, from)) {
        moved_.push_back(promise);
        const Seconds given_up_from = std::max(promise.start, claim_end(promise.job));
        most = std::max(most, profile().most_free(given_up_from, promise.start + duration));
      } else {
        barred_.bar(promise.processors, duration, std::min(promise.start, gained_until_));
      }
    }
  }
  apply_moves();
}

// By submission; a job may only find its way free at the next try.
void Conservative::compress_one_by_one(Seconds now) {
  gain(std::max(left_over_from_, now), left_over_until_);
  left_over_from_ = kNever;
  left_over_until_ = kLongAgo;
  if (gained_from_ >= gained_until_) return;
  moved_.clear();
  for (const JobIndex index : promised(true)) {
    const Promise before = promise_of(index);
    const Seconds end = claim_end(index);
    if (before.start <= gained_from_ || !try_to_move(index, now)) continue;
    moved_.push_back(before);
    left_over_from_ = std::min(left_over_from_, std::max(before.start, claim_end(index)));
    left_over_until_ = std::max(left_over_until_, end);
  }
  apply_moves();
}

void Conservative::apply_moves() {
  for (const Promise& before : moved_) {
    promises_.erase(before);
    promises_.insert(promise_of(before.job));
  }
}

// Those that come together come in queue order.
void Conservative::insert_arrivals(Seconds now, const QueueInOrder& queue) {
  wait(arrivals());
  std::int64_t last_rank = -1;
  for (const JobIndex index : arrivals_in_order(queue)) {
    if (job(index).rank < last_rank) out_of_order_ = true;
    last_rank = job(index).rank;
    promise(index, earliest(index, now));
  }
}

// All that are due are planned for now, so they come by submission.
void Conservative::start_due(Seconds now, Starts& starts) {
  if (promises_.empty() || promises_.front().start > now) return;
  Processors free = really_free(now);
  auto longest_waiting = waiting_.begin();
  for (const auto& block : promises_.blocks()) {
    if (block.begin()->start > now) break;
    for (const Promise& promise : block) {
      if (promise.start > now) break;
      free = make_room(promise.processors, free);
      if (promise.processors > free) continue;
      free -= promise.processors;
      while (job(*longest_waiting).state != State::kPending) ++longest_waiting;
      const bool is_head = *longest_waiting == promise.job;
      if (is_head) ++longest_waiting;
      starts.emplace_back(promise.job, is_head ? StartedBy::kHead : StartedBy::kBackfilled);
    }
  }
  waiting_.erase(waiting_.begin(), longest_waiting);
}

}  // namespace foretime
