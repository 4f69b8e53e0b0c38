#include "planning/pbs/pbs_cycle.hpp"

#include <algorithm>

namespace foretime {

PbsCycle::PbsCycle(PbsState& state, PbsTopJobs& top_jobs, Seconds now, const std::vector<Job>& jobs,
                   Pass& pass, JobIndex only)
    : state_(state),
      site_(*state.site),
      top_jobs_(top_jobs),
      jobs_(jobs),
      pass_(pass),
      now_(now),
      only_(only),
      backfills_(site_.backfills()),
      is_dedicated_(is_dedicated(site_, now)),
      turns_(site_.round_robin ? site_.queues.size() : 1),
      place_of_queue_(site_.queues.size(), 0),
      stopped_(site_.queues.size(), false) {
  std::size_t place = 0;
  for (const auto& level : site_.levels) {
    for (const std::int32_t number : level)
      place_of_queue_[static_cast<std::size_t>(number)] = place++;
  }
}

// The order

// job_sort_formula, where its values change from cycle to cycle.
void PbsCycle::value_groups() {
  if (!site_.formula || !site_.formula->goes_by_shares()) return;
  for (const std::int32_t number : state_.filled) {
    PbsGroup& of = state_.groups[static_cast<std::size_t>(number)];
    state_.fair_share.put_factors(of.entity, of.values);
    of.value = site_.formula->value(of.values);
  }
}

bool PbsCycle::is_looked_at(const PbsGroup& of) const {
  const bool no_shares = site_.fair_share.on && site_.fair_share.enforce_no_shares;
  if (no_shares && state_.fair_share.part(of.entity) == 0) return false;
  if (site_.formula && site_.threshold && of.value <= *site_.threshold) return false;
  return queue(of.queue).started && queue(of.queue).dedicated == is_dedicated_;
}

bool PbsCycle::might_start(const PbsGroup& of) const {
  return !is_refused(of) && fits_into(state_.selects[static_cast<std::size_t>(of.select)].total,
                                      state_.hosts.free(queue(of.queue).pool));
}

// Whether it makes a difference to anybody that it has its turn.
bool PbsCycle::matters(const PbsGroup& of) const {
  return might_start(of) || top_jobs_.may_add(of.queue) ||
         (site_.strict && (!backfills_ || queue(of.queue).depth == 0));
}

void PbsCycle::add_turn(std::int32_t number, std::size_t at) {
  const PbsGroup& of = state_.groups[static_cast<std::size_t>(number)];
  if (at >= of.jobs.size()) return;
  const JobIndex job = of.jobs[at];
  Turns& turns = turns_[site_.round_robin ? static_cast<std::size_t>(of.queue) : 0];
  turns.push_back({number, at, jobs_[static_cast<std::size_t>(job)].rank});
}

void PbsCycle::add_turns() {
  // Where queues have their turns, those who can't start have one, too.
  const auto has_turn = [this](const PbsGroup& of) {
    return is_looked_at(of) && (site_.round_robin || matters(of));
  };
  if (only_ >= 0) {
    const std::int32_t number = state_.record(only_).group;
    const PbsGroup& of = state_.groups[static_cast<std::size_t>(number)];
    const auto at = std::find(of.jobs.begin(), of.jobs.end(), only_) - of.jobs.begin();
    if (has_turn(of)) add_turn(number, static_cast<std::size_t>(at));
    return;
  }
  for (const std::int32_t number : state_.filled) {
    if (has_turn(state_.groups[static_cast<std::size_t>(number)])) add_turn(number, 0);
  }
}

// Those of fair share, by what they have used by share.
void PbsCycle::rank_entities() {
  std::vector<std::int32_t> present;
  for (const Turns& turns : turns_) {
    for (const Turn& turn : turns) present.push_back(group(turn).entity);
  }
  std::sort(present.begin(), present.end());
  present.erase(std::unique(present.begin(), present.end()), present.end());
  if (present.empty()) return;
  entity_rank_.resize(static_cast<std::size_t>(present.back()) + 1);
  std::sort(present.begin(), present.end(),
            [this](std::int32_t a, std::int32_t b) { return state_.fair_share.compare(a, b) < 0; });
  std::int64_t rank = 0;
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (i > 0 && state_.fair_share.compare(present[i - 1], present[i]) != 0) ++rank;
    entity_rank_[static_cast<std::size_t>(present[i])] = rank;
  }
}

double PbsCycle::amount(const PbsGroup& of, std::int32_t key) const {
  if (key == kPbsByShare) return state_.fair_share.part(of.entity);
  if (key == kPbsByPriority) return of.values[static_cast<std::size_t>(PbsName::kJobPriority)];
  return of.values[static_cast<std::size_t>(key)];
}

// `cmp_sort`: the formula, fair share, job_sort_key, and the time of submission.
bool PbsCycle::is_after(const Turn& a, const Turn& b) const {
  const PbsGroup& one = group(a);
  const PbsGroup& other = group(b);
  if (a.group != b.group) {
    if (site_.by_queue && one.queue != other.queue) {
      return place_of_queue_[static_cast<std::size_t>(one.queue)] >
             place_of_queue_[static_cast<std::size_t>(other.queue)];
    }
    if (one.value != other.value) return one.value < other.value;
    if (site_.fair_share.on) {
      const std::int64_t mine = entity_rank_[static_cast<std::size_t>(one.entity)];
      const std::int64_t its = entity_rank_[static_cast<std::size_t>(other.entity)];
      if (mine != its) return mine > its;
    }
    for (const auto& [key, high] : site_.sort_keys) {
      const double mine = amount(one, key);
      const double its = amount(other, key);
      if (mine != its) return (mine < its) == high;
    }
  }
  return a.rank > b.rank;
}

// `sort_jobs`: at the start, and under fair share when usage changes.
void PbsCycle::sort() {
  if (site_.fair_share.on) rank_entities();
  for (Turns& turns : turns_) {
    std::make_heap(turns.begin(), turns.end(),
                   [this](const Turn& a, const Turn& b) { return is_after(a, b); });
  }
}

std::optional<PbsCycle::Turn> PbsCycle::pop(Turns& turns) {
  if (turns.empty()) return std::nullopt;
  std::pop_heap(turns.begin(), turns.end(),
                [this](const Turn& a, const Turn& b) { return is_after(a, b); });
  const Turn turn = turns.back();
  turns.pop_back();
  return turn;
}

std::optional<PbsCycle::Turn> PbsCycle::next() {
  if (!site_.round_robin) return pop(turns_.front());
  // One job of each queue in turn among those of one priority, then the next priority.
  while (last_level_ < site_.levels.size()) {
    const auto& level = site_.levels[last_level_];
    for (std::size_t i = 0; i < 2 * level.size(); ++i) {
      const std::int32_t number = level[last_queue_];
      last_queue_ = (last_queue_ + 1) % level.size();
      if (const auto turn = pop(turns_[static_cast<std::size_t>(number)])) return turn;
    }
    last_queue_ = 0;
    ++last_level_;
  }
  return std::nullopt;
}

// Going through it

PbsCycle::Turn PbsCycle::first_turn(JobIndex index) const {
  return {state_.record(index).group, 0, jobs_[static_cast<std::size_t>(index)].rank};
}

void PbsCycle::run() {
  // Before a top job it would be one in its place.
  const JobIndex last = top_jobs_.last();
  if (only_ >= 0 && last >= 0 && is_after(first_turn(last), first_turn(only_))) only_ = -1;
  if (only_ < 0) {
    top_jobs_.begin(now_);
  } else {
    top_jobs_.go_on(now_);
    any_refused_ = state_.waiting > 1;
  }
  value_groups();
  add_turns();
  sort();
  while (const auto turn = next()) look_at(*turn);
}

void PbsCycle::look_at(Turn turn) {
  const PbsGroup& of = group(turn);
  if (stopped_[static_cast<std::size_t>(of.queue)]) return;
  const JobIndex index = of.jobs[turn.at];
  const std::int32_t number = of.queue;
  PbsRecord& job = state_.record(index);
  const bool judged = !is_refused(of);
  auto placement = judged ? top_jobs_.place(index) : std::nullopt;
  bool is_top = false;
  if (placement) {
    job.placement = std::move(*placement);
    pass_.start(index, any_refused_ ? StartedBy::kBackfilled : StartedBy::kHead);
    started_.push_back(index);
    top_jobs_.started(index);
  } else {
    any_refused_ = true;
    is_top = top_jobs_.may_add(number) && top_jobs_.add(index, judged);
    state_.refused_at[static_cast<std::size_t>(of.alike)] = state_.freed;
    if (is_top && !top_jobs_.may_add(number)) drop_idle();
    ++turn.at;
    stop_behind(number);
  }
  const bool sorts = site_.fair_share.on && (job.runs || is_top);
  if (sorts) assume_used(job);
  Turns& turns = turns_[site_.round_robin ? static_cast<std::size_t>(number) : 0];
  const std::size_t before = turns.size();
  if (only_ < 0 && !stopped_[static_cast<std::size_t>(number)] &&
      (site_.round_robin || matters(of))) {
    add_turn(turn.group, turn.at);
  }
  if (sorts) {
    sort();
  } else if (turns.size() > before) {
    std::push_heap(turns.begin(), turns.end(),
                   [this](const Turn& a, const Turn& b) { return is_after(a, b); });
  }
}

// Leaves out those whose turn would change nothing. Where queues have their turns in a round, it
// does.
void PbsCycle::drop_idle() {
  if (site_.round_robin) return;
  Turns& turns = turns_.front();
  std::erase_if(turns, [this](const Turn& turn) { return !matters(group(turn)); });
  std::make_heap(turns.begin(), turns.end(),
                 [this](const Turn& a, const Turn& b) { return is_after(a, b); });
}

// Under fair share who starts, or is planned, counts at once.
void PbsCycle::assume_used(const PbsRecord& job) {
  PbsValues values{};
  for (std::size_t i = 0; i < kPbsListed; ++i) values[i] = static_cast<double>(job.counted.list[i]);
  state_.fair_share.assume(job.entity, site_.fair_share.usage.value(values));
}

// With strict_ordering and no backfilling nobody passes a job that can't start.
void PbsCycle::stop_behind(std::int32_t number) {
  if (!site_.strict) return;
  if (!backfills_) {
    drop_all();
    std::fill(stopped_.begin(), stopped_.end(), true);
  } else if (queue(number).depth == 0) {
    stopped_[static_cast<std::size_t>(number)] = true;
  }
}

}  // namespace foretime
