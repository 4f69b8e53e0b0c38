// Planning that switches between queue orders: dynP (Streit 2002). What is decided when is said in
// policy_switching.py.
#include "planning/switching.hpp"

#include <algorithm>
#include <utility>

namespace foretime {

Switching::Switching(std::unique_ptr<PlanProfile> profile, const Policy& policy,
                     const std::vector<Job>& jobs, const Availability& availability,
                     std::vector<AdvanceReservation> reservations)
    : ProfilePlanner(std::move(profile), policy, jobs, availability, std::move(reservations)),
      settings_(*policy.switching),
      current_(place_of(policy.order)) {
  for (const Order order : settings_.orders) lines_.push_back({order, {}});
  counters_.switches.resize(lines_.size());
}

int Switching::started_under(JobIndex index) const {
  const auto place = static_cast<std::size_t>(index);
  return place < started_under_.size() ? started_under_[place] : -1;
}

std::size_t Switching::place_of(Order order) const {
  const auto found = std::find(settings_.orders.begin(), settings_.orders.end(), order);
  return static_cast<std::size_t>(found - settings_.orders.begin());
}

Switching::Waiting Switching::waiting(Order order, JobIndex index) const {
  const Job& waits = job(index);
  return {{queue_key(order, waits), waits.rank, index, waits.processors, waits.backfill_time},
          {waits.submit, kNever, time(index), waits.processors},
          0};
}

// Lines in a time-dependent order are sorted when they are planned.
void Switching::no_longer_planned(JobIndex index) {
  if (settings_.one_list) {
    std::erase(list_, index);
    return;
  }
  if (stale_) return;
  for (Line& line : lines_) {
    const auto found =
        is_time_dependent(line.order)
            ? std::find_if(line.queue.begin(), line.queue.end(),
                           [&](const Waiting& w) { return w.place.job == index; })
            : std::lower_bound(line.queue.begin(), line.queue.end(), waiting(line.order, index));
    line.queue.erase(found);
  }
}

void Switching::resumed(JobIndex index) {
  if (planned_start(index) > reached()) next_start_ = std::min(next_start_, planned_start(index));
  stale_ = true;
}

void Switching::update_lines(const QueueInOrder& queue) {
  if (settings_.one_list) {
    list_.insert(list_.end(), arrivals().begin(), arrivals().end());
    return;
  }
  for (Line& line : lines_) {
    if (stale_) {
      line.queue.clear();
      for (const auto& block : queue.queue.blocks()) {
        for (const Pending& entry : block) line.queue.push_back(waiting(line.order, entry.job));
      }
      std::sort(line.queue.begin(), line.queue.end());
      continue;
    }
    for (const JobIndex index : arrivals()) {
      const Waiting arrived = waiting(line.order, index);
      if (is_time_dependent(line.order)) {
        line.queue.push_back(arrived);
        continue;
      }
      line.queue.insert(std::upper_bound(line.queue.begin(), line.queue.end(), arrived), arrived);
    }
  }
  stale_ = false;
}

void Switching::plan(Seconds now, const QueueInOrder& queue, Starts& starts) {
  update_lines(queue);
  profile().copy_to(running_);
  const std::size_t jobs = settings_.one_list ? list_.size() : lines_.front().queue.size();
  bool planned = false;
  if (jobs >= settings_.least_waiting &&
      (settings_.decider != Decider::kBasic || !arrivals().empty())) {
    ++counters_.tries;
    counters_.waiting_at_tries += static_cast<std::int64_t>(jobs);
    const std::size_t chosen = decide(now);
    if (chosen != current_) ++counters_.switches[chosen];
    current_ = chosen;
    planned = tunes_itself(settings_.decider);
  }
  Line& line = lines_[current_];
  if (settings_.one_list) {
    plan_list(current_, now);
  } else if (!planned) {
    plan_line(line, now);
  }
  begin(line, now, starts);
}

std::size_t Switching::decide(Seconds now) {
  switch (settings_.decider) {
    case Decider::kBasic:
      return by_mean_time();
    case Decider::kVoting:
      return by_votes(now);
    default:
      return by_schedules(now);
  }
}

// Streit 2002, section 3.1.
std::size_t Switching::by_mean_time() const {
  const std::vector<Waiting>& queue = lines_.front().queue;
  Wide sum = 0;
  for (const Waiting& waits : queue) sum += job(waits.place.job).queue_time;
  const Wide jobs = static_cast<std::int64_t>(queue.size());
  if (sum <= jobs * settings_.lower_bound) return place_of(Order::kSjf);
  return place_of(sum <= jobs * settings_.upper_bound ? Order::kFcfs : Order::kLjf);
}

// Ramme and Gehring's implicit voting system.
std::size_t Switching::by_votes(Seconds now) const {
  Processors asked = profile().machine() - really_free(now);
  std::int64_t interactive = 0;
  std::int64_t batch = 0;
  for (const Waiting& waits : lines_.front().queue) {
    asked += waits.place.processors;
    ++(job(waits.place.job).queue_time <= settings_.interactive ? interactive : batch);
  }
  if (static_cast<double>(asked) <=
      settings_.saturation * static_cast<double>(profile().machine())) {
    return place_of(Order::kFcfs);
  }
  if (interactive == batch) return current_;
  return place_of(interactive > batch ? Order::kSjf : Order::kLjf);
}

// Of one list, which each order leaves as it sorted it: see policy_switching.py.
std::array<std::size_t, 3> Switching::order_of_planning(std::size_t current) {
  constexpr std::size_t kFcfs = 0;
  constexpr std::size_t kSjf = 1;
  constexpr std::size_t kLjf = 2;
  if (current == kLjf) return {kSjf, kFcfs, kLjf};
  return {kFcfs, kSjf, kLjf};
}

// Section 3.2: self-tuning.
std::size_t Switching::by_schedules(Seconds now) {
  if (settings_.one_list) {
    for (const std::size_t place : order_of_planning(current_)) plan_list(place, now);
  } else {
    for (Line& line : lines_) plan_line(line, now);
  }
  const auto qualities_by = [&](Quality quality) {
    const Seconds last_end = quality == Quality::kMakespan ? last_running_end(now) : now;
    std::vector<Fraction> qualities;
    for (const Line& line : lines_) {
      QualitySum sum(quality, settings_.slowdown_bound, now, last_end);
      for_each_counted(line, now, [&](const PlannedJob& planned) { sum.add(planned); });
      qualities.push_back(sum.result());
    }
    return qualities;
  };
  if (settings_.qualities.size() == 1) {
    return choose(qualities_by(settings_.qualities.front().first),
                  [](const Fraction& quality) { return quality.value(); });
  }
  std::vector<double> totals(lines_.size());
  for (const auto& [quality, weight] : settings_.qualities) {
    const std::vector<Fraction> qualities = qualities_by(quality);
    for (std::size_t i = 0; i < totals.size(); ++i) {
      totals[i] += weight * ratio(qualities[i].value(), qualities[current_].value());
    }
  }
  return choose(totals, [](double total) { return total; });
}

template <class Value, class Number>
std::size_t Switching::choose(const std::vector<Value>& qualities, Number number) {
  const std::vector<std::size_t> ranks = ranks_of(qualities);
  if (ranks.size() == 3) ++counters_.cases[case_of_table_1(ranks, current_)];
  const std::size_t chosen = chosen_order(settings_.decider, ranks, current_);
  if (settings_.slackness > 0 && chosen != current_ &&
      !(number(qualities[chosen]) <= (1 - settings_.slackness) * number(qualities[current_]))) {
    return current_;
  }
  return chosen;
}

void Switching::plan_line(Line& line, Seconds now) {
  if (is_time_dependent(line.order)) {
    for (Waiting& waits : line.queue) {
      waits.score = queue_score(line.order, job(waits.place.job), now);
    }
    std::sort(line.queue.begin(), line.queue.end(), [](const Waiting& a, const Waiting& b) {
      return a.score != b.score ? a.score > b.score : a < b;
    });
  }
  planned_in_ = running_;
  for (Waiting& waits : line.queue) {
    waits.planned.start = planned_in_.add(waits.planned.time, waits.planned.processors);
  }
}

// One list: FCFS leaves it as it is, the others sort it, and jobs that are alike keep their places.
void Switching::plan_list(std::size_t place, Seconds now) {
  Line& line = lines_[place];
  if (line.order != Order::kFcfs) {
    std::stable_sort(list_.begin(), list_.end(), [&](JobIndex a, JobIndex b) {
      return queue_key(line.order, job(a)) < queue_key(line.order, job(b));
    });
  }
  line.queue.clear();
  for (const JobIndex index : list_) line.queue.push_back(waiting(line.order, index));
  plan_line(line, now);
}

// In no particular order.
template <class Visit>
void Switching::for_each_counted(const Line& line, Seconds now, Visit visit) const {
  if (settings_.first_starts && *settings_.first_starts < line.queue.size()) {
    const std::size_t counted = *settings_.first_starts;
    std::vector<std::pair<Seconds, std::size_t>> starts;  // and the place in the line
    starts.reserve(line.queue.size());
    for (const Waiting& waits : line.queue) starts.emplace_back(waits.planned.start, starts.size());
    std::nth_element(starts.begin(), starts.begin() + static_cast<std::ptrdiff_t>(counted),
                     starts.end());
    for (std::size_t i = 0; i < counted; ++i) visit(line.queue[starts[i].second].planned);
    return;
  }
  for (const Waiting& waits : line.queue) {
    if (!settings_.horizon || waits.planned.start - now <= *settings_.horizon) visit(waits.planned);
  }
}

// As Planning does.
void Switching::begin(const Line& line, Seconds now, Starts& starts) {
  Processors free = really_free(now);
  bool blocked = false;
  next_start_ = kNever;
  for (const Waiting& waits : line.queue) {
    const Seconds start = waits.planned.start;
    set_plan(waits.place.job, start);
    if (start == now && waits.place.processors <= free) {
      free -= waits.place.processors;
      starts.emplace_back(waits.place.job, blocked ? StartedBy::kBackfilled : StartedBy::kHead);
      note_start(waits.place.job);
    } else {
      blocked = true;
      if (start > now) next_start_ = std::min(next_start_, start);
    }
  }
}

void Switching::note_start(JobIndex index) {
  const auto place = static_cast<std::size_t>(index);
  if (place >= started_under_.size()) started_under_.resize(std::max(place + 1, 2 * place), -1);
  started_under_[place] = static_cast<std::int8_t>(current_);
}

}  // namespace foretime
