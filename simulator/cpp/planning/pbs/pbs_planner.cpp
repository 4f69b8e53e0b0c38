#include "planning/pbs/pbs_planner.hpp"

#include <algorithm>

namespace foretime {
namespace {

constexpr std::int64_t kMib = 1 << 20;
constexpr std::size_t kWalltime = 3;
constexpr std::size_t kSoftWalltime = 4;

// What a request says in PBS's words: a chunk for each node, or for each task.
PbsSelect select_of(const ResourceRequest& request, bool counts_memory) {
  const PartitionChoice& choice = request.choices.front();
  PbsSelect select;
  select.exclusive = choice.exclusive;
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

PbsPlanner::PbsPlanner(const Scheduling& engine, PbsState state)
    : QueuePlanner(engine), state_(std::move(state)) {
  const PbsSite& site = *state_.site;
  state_.running_on.resize(site.hosts.size());
  scratch_.met.resize(site.hosts.size(), 0);
  scratch_.mine.resize(site.hosts.size());
  for (const PbsReservation& reservation : site.reservations) {
    timed_.push_back(reservation.start);
    timed_.push_back(reservation.end);
  }
  for (const auto& [begins, ends] : site.dedicated_time) timed_.push_back(ends + site.iteration);
  std::sort(timed_.begin(), timed_.end());
  const auto first = std::lower_bound(timed_.begin(), timed_.end(), state_.last_cycle);
  next_timed_ = static_cast<std::size_t>(first - timed_.begin());
}

PbsRecord& PbsPlanner::make_record(JobIndex index) {
  const auto place = static_cast<std::size_t>(index);
  if (place >= state_.records.size()) {
    state_.records.resize(std::max(place + 1, jobs_.size()));
  }
  return state_.records[place];
}

// Requests

void PbsPlanner::add_request(ResourceRequest request) {
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

// Times, classes and groups

// A scheduled time below the request is its soft_walltime.
void PbsPlanner::take_times(JobIndex index) {
  const Job& of = job(index);
  PbsRecord& record = state_.record(index);
  const Seconds scheduled = of.state == State::kRunning ? of.drain_time : of.backfill_time;
  record.hard = of.requested;
  record.soft = scheduled < of.requested ? scheduled : state_.queue_of(record).default_soft;
  if (record.soft >= record.hard) record.soft = 0;
  record.priority = of.priority;
  record.counted.list[kWalltime] = record.hard;
  record.counted.list[kSoftWalltime] = record.soft;
  record.counted.user = record.facts.user;
  record.counted.project = record.facts.project;
}

std::int32_t PbsPlanner::alike_of(const PbsRecord& job) {
  const PbsQueue& queue = state_.queue_of(job);
  const PbsRequest& request = state_.requests[static_cast<std::size_t>(job.request)];
  const std::vector<std::int64_t> same{queue.apart ? job.counted.queue : -1,
                                       queue.apart_by_user ? job.facts.user : -2,
                                       queue.apart_by_project ? job.facts.project : -2,
                                       request.select,
                                       job.hard,
                                       queue.apart_by_soft ? job.soft : -1};
  const auto [found, is_new] =
      state_.alike_number.try_emplace(same, static_cast<std::int32_t>(state_.refused_at.size()));
  if (is_new) state_.refused_at.push_back(0);
  return found->second;
}

void PbsPlanner::enter_group(JobIndex index) {
  const PbsSite& site = *state_.site;
  PbsRecord& record = state_.record(index);
  record.alike = alike_of(record);
  const auto is_key = [&site](std::int32_t key) {
    return std::any_of(site.sort_keys.begin(), site.sort_keys.end(),
                       [key](const auto& each) { return each.first == key; });
  };
  const auto uses = [&site](PbsName name) { return site.formula && site.formula->uses(name); };
  const bool by_priority = is_key(kPbsByPriority) || uses(PbsName::kJobPriority);
  const bool by_soft = is_key(kSoftWalltime) || uses(PbsName::kSoftWalltime);
  const bool by_share =
      site.fair_share.on || is_key(kPbsByShare) || (site.formula && site.formula->goes_by_shares());
  const std::vector<std::int64_t> same{
      record.alike, record.counted.queue, by_share ? record.entity : -1,
      by_priority ? record.priority : 0, by_soft ? record.soft : -1};
  const auto [found, is_new] =
      state_.group_number.try_emplace(same, static_cast<std::int32_t>(state_.groups.size()));
  if (is_new) {
    PbsGroup made;
    made.alike = record.alike;
    made.queue = record.counted.queue;
    made.select = state_.requests[static_cast<std::size_t>(record.request)].select;
    made.entity = record.entity;
    for (std::size_t i = 0; i < kPbsListed; ++i) {
      made.values[i] = static_cast<double>(record.counted.list[i]);
    }
    made.values[static_cast<std::size_t>(PbsName::kQueuePriority)] =
        static_cast<double>(state_.queue_of(record).priority);
    made.values[static_cast<std::size_t>(PbsName::kJobPriority)] =
        static_cast<double>(record.priority);
    if (site.formula) made.value = site.formula->value(made.values);
    state_.groups.push_back(std::move(made));
  }
  record.group = found->second;
  PbsGroup& group = state_.groups[static_cast<std::size_t>(record.group)];
  if (group.jobs.empty()) {
    group.place = state_.filled.size();
    state_.filled.push_back(record.group);
  }
  const auto place =
      std::upper_bound(group.jobs.begin(), group.jobs.end(), index,
                       [this](JobIndex a, JobIndex b) { return job(a).rank < job(b).rank; });
  group.jobs.insert(place, index);
}

void PbsPlanner::leave_group(JobIndex index) {
  PbsRecord& record = state_.record(index);
  PbsGroup& group = state_.groups[static_cast<std::size_t>(record.group)];
  group.jobs.erase(std::find(group.jobs.begin(), group.jobs.end(), index));
  if (group.jobs.empty()) {
    const std::int32_t last = state_.filled.back();
    state_.filled[group.place] = last;
    state_.groups[static_cast<std::size_t>(last)].place = group.place;
    state_.filled.pop_back();
  }
  record.group = -1;
}

// Submissions

// Limits on what is queued, and the range of what a job may ask for.
bool PbsPlanner::is_refused(const PbsRecord& job) const {
  const auto none = [](const PbsLimit&) { return std::int64_t{0}; };
  const PbsQueue& queue = state_.queue_of(job);
  if (!queue.enabled || !state_.in_queue.allow(job.counted, none) ||
      !state_.of_waiting.allow(job.counted, none)) {
    return true;
  }
  for (std::size_t i = 0; i < kPbsListed; ++i) {
    const std::int64_t amount = job.counted.list[i];
    if (amount > queue.most[i] || (amount > 0 && amount < queue.least[i])) return true;
  }
  return false;
}

void PbsPlanner::find_entity(PbsRecord& job) {
  const PbsFairShareSettings& shares = state_.site->fair_share;
  std::int32_t code = job.counted.queue;
  if (shares.entity == PbsEntity::kUser) code = job.facts.user;
  if (shares.entity == PbsEntity::kProject) code = job.facts.project;
  job.entity = state_.fair_share.entity(code);
}

void PbsPlanner::take_up(JobIndex index, bool is_new) {
  take_times(index);
  PbsRecord& record = state_.record(index);
  if (is_new && is_refused(record)) {
    record.refused = true;
    return;
  }
  find_entity(record);
  enter_group(index);
  ++state_.waiting;
  state_.in_queue.add(record.counted, 1);
  state_.of_waiting.add(record.counted, 1);
}

void PbsPlanner::cancelled(JobIndex index) {
  if (std::erase(coming_, index) > 0) return;
  const PbsRecord& record = state_.record(index);
  if (record.refused) return;
  leave_group(index);
  --state_.waiting;
  state_.in_queue.add(record.counted, -1);
  state_.of_waiting.add(record.counted, -1);
  ++state_.freed;
}

void PbsPlanner::changed_waiting(JobIndex index) {
  const PbsRecord& record = state_.record(index);
  if (record.group < 0) return;  // it is taken up in the pass that follows, or was refused
  leave_group(index);
  state_.in_queue.add(record.counted, -1);
  state_.of_waiting.add(record.counted, -1);
  take_times(index);
  state_.in_queue.add(record.counted, 1);
  state_.of_waiting.add(record.counted, 1);
  enter_group(index);
  ++state_.freed;
}

// Running jobs

// Past its soft_walltime it is extended by whole soft_walltimes, up to its walltime
// (`set_job_times`). Past its walltime it is expected to be killed within a second.
Seconds PbsPlanner::end_of(const PbsRecord& job, Seconds now) {
  if (job.exiting) return now + 1;
  const Seconds end = job.start + job.planned();
  if (end >= now) return end;
  if (job.soft == 0) return now + 1;
  return job.start + std::min(job.soft * (1 + (now - job.start) / job.soft), job.hard);
}

void PbsPlanner::set_end(JobIndex index, Seconds end) {
  PbsRecord& record = state_.record(index);
  auto& ends = state_.ends;
  const std::pair before{record.planned_end, index};
  const auto place = std::lower_bound(ends.begin(), ends.end(), before);
  if (place != ends.end() && *place == before) ends.erase(place);
  record.planned_end = end;
  if (end == kNever) return;
  const std::pair entry{end, index};
  ends.insert(std::lower_bound(ends.begin(), ends.end(), entry), entry);
}

void PbsPlanner::refresh_ends(Seconds now) {
  std::vector<JobIndex> over;
  for (const auto& [end, index] : state_.ends) {
    if (end > now) break;
    over.push_back(index);
  }
  for (const JobIndex index : over) set_end(index, end_of(state_.record(index), now));
}

void PbsPlanner::add_running(JobIndex index) {
  PbsRecord& record = state_.record(index);
  record.runs = true;
  record.start = job(index).start;
  take_times(index);
  record.planned_end = kNever;
  set_end(index, end_of(record, now_));
  state_.running.push_back(index);
  state_.hosts.take(record.placement, record.exclusive);
  for (const PbsShare& share : record.placement) {
    state_.running_on[static_cast<std::size_t>(share.host)].push_back(index);
  }
  state_.counts.add(record.counted, 1);
}

void PbsPlanner::started(JobIndex index, Seconds /*now*/) {
  const PbsRecord& record = state_.record(index);
  leave_group(index);
  --state_.waiting;
  state_.of_waiting.add(record.counted, -1);
  state_.in_queue.add(record.counted, -1);
  add_running(index);
  state_.in_queue.add(record.counted, 1);
  if (!records_) return;
  for (const NodeRow& row : rows_of(index)) {
    rows_.insert(rows_.end(),
                 {index, row.node, row.of_each.cpus, row.of_each.memory, row.of_each.gpus});
  }
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

// Where nothing is told of its place, it has the first that is free.
void PbsPlanner::runs_already(JobIndex index, Seconds now) {
  PbsRecord& record = make_record(index);
  if (record.runs) return;
  refresh_reservations(now);
  if (record.request >= 0 && record.placement.empty()) {
    auto found = PbsWorld(state_, {}, scratch_, now).room(record, state_.hosts, now);
    if (found) record.placement = std::move(*found);
  }
  take_times(index);
  find_entity(record);
  add_running(index);
  state_.in_queue.add(record.counted, 1);
}

void PbsPlanner::changed_running(JobIndex index, Seconds now) {
  const PbsRecord& record = state_.record(index);
  const std::pair before{record.hard, record.soft};
  const PbsCounted counted = record.counted;
  take_times(index);
  if (before == std::pair{record.hard, record.soft}) return;
  state_.counts.add(counted, -1);
  state_.counts.add(record.counted, 1);
  set_end(index, end_of(record, now));
  ++state_.freed;
}

void PbsPlanner::finished(JobIndex index, Seconds now) {
  ended_.push_back(index);
  ended_at_ = now;
}

// The server ends the jobs of a second one by one: those that follow still have their hosts, but
// are no longer counted.
void PbsPlanner::end_first(Seconds now) {
  const auto first = std::min_element(ended_.begin(), ended_.end());
  const JobIndex index = *first;
  ended_.erase(first);
  const auto no_longer_count = [this](JobIndex each) {
    PbsRecord& record = state_.record(each);
    if (!record.exiting) state_.counts.add(record.counted, -1);
    record.exiting = true;
  };
  no_longer_count(index);
  for (const JobIndex each : ended_) {
    no_longer_count(each);
    set_end(each, now + 1);
  }
  PbsRecord& record = state_.record(index);
  set_end(index, kNever);
  record.runs = false;
  state_.running.erase(std::find(state_.running.begin(), state_.running.end(), index));
  state_.hosts.give_back(record.placement, record.exclusive);
  for (const PbsShare& share : record.placement) {
    std::erase(state_.running_on[static_cast<std::size_t>(share.host)], index);
  }
  state_.in_queue.add(record.counted, -1);
  ++state_.freed;
}

void PbsPlanner::refresh_reservations(Seconds now) {
  const auto& reservations = state_.site->reservations;
  for (std::size_t i = 0; i < reservations.size(); ++i) {
    const auto number = static_cast<std::int32_t>(i);
    const bool holds = reservations[i].start <= now && now < reservations[i].end;
    const auto held = std::find(state_.reserved.begin(), state_.reserved.end(), number);
    if (holds == (held != state_.reserved.end())) continue;
    if (holds) {
      state_.hosts.take(reservations[i].hosts, false);
      state_.reserved.push_back(number);
    } else {
      state_.hosts.give_back(reservations[i].hosts, false);
      state_.reserved.erase(held);
    }
  }
}

// Cycles

double PbsPlanner::used_by(const PbsRecord& job, Seconds known) const {
  PbsValues values{};
  for (std::size_t i = 0; i < kPbsListed; ++i) values[i] = static_cast<double>(job.counted.list[i]);
  values[kWalltime] = static_cast<double>(known);
  // CPU time is not known of a log: as if all CPUs were busy.
  values[static_cast<std::size_t>(PbsName::kCput)] =
      static_cast<double>(known * job.counted.list[0]);
  return state_.site->fair_share.usage.value(values);
}

// Running jobs, with what they have used since the last cycle.
void PbsPlanner::charge(Seconds now) {
  for (const JobIndex index : state_.running) {
    PbsRecord& record = state_.record(index);
    if (record.exiting) continue;
    const Seconds known = std::max<Seconds>(0, now - record.start - state_.site->usage_lag);
    const double used = used_by(record, known);
    if (record.seen) {
      state_.fair_share.charge(record.entity, std::max(used - record.used, 0.0));
    }
    record.seen = true;
    record.used = used;
  }
}

// Whether a job has started that ends at once: its end comes before all else that is to come.
bool PbsPlanner::cycle(Seconds now, Pass* pass, JobIndex submitted) {
  const PbsSite& site = *state_.site;
  state_.last_cycle = now;
  refresh_ends(now);
  refresh_reservations(now);
  const bool shares = site.fair_share.on || site.formula;
  if (site.fair_share.on) charge(now);
  if (shares) state_.fair_share.begin_cycle(now);
  for (const JobIndex index : planned_) state_.record(index).planned_start = kNever;
  planned_.clear();
  if (pass == nullptr || state_.waiting == 0) return false;
  if (site.goes_by_time() || values_change()) ++state_.freed;
  std::optional<std::int32_t> only;
  if (submitted >= 0 && gone_through_ == state_.freed) only = state_.record(submitted).group;
  PbsCycle cycle(state_, scratch_, now, jobs_, *pass, only);
  cycle.run();
  gone_through_ = state_.freed;
  planned_ = cycle.planned();
  bool ends_at_once = false;
  for (const JobIndex index : cycle.started()) {
    PbsRecord& record = state_.record(index);
    record.planned_start = kNever;
    if (site.fair_share.on) {
      record.seen = true;
      record.used = used_by(record, 0);
    }
    ends_at_once |= job(index).end <= now;
  }
  return ends_at_once;
}

void PbsPlanner::schedule(Seconds now, const Queue& /*queue*/, Pass& pass) {
  if (reached_ < now) reached(now);
  bool any = false;
  while (!ended_.empty()) {
    any = true;
    end_first(now);
    if (cycle(now, &pass, -1)) return;
  }
  while (!coming_.empty()) {
    const JobIndex index = coming_.front();
    coming_.erase(coming_.begin());
    const bool is_new = job(index).submit == now;
    take_up(index, is_new);
    if (!is_new) {
      asked_ = true;
      continue;
    }
    any = true;
    if (cycle(now, &pass, state_.record(index).refused ? -1 : index)) return;
  }
  for (; next_timed_ < timed_.size() && timed_[next_timed_] <= now; ++next_timed_) {
    any = true;
    if (cycle(now, &pass, -1)) return;
  }
  if (asked_ || (!any && state_.waiting > 0 && now >= state_.last_cycle + state_.site->iteration)) {
    asked_ = false;
    cycle(now, &pass, -1);
  }
}

// Cycles that start nobody.
void PbsPlanner::catch_up(Seconds until) {
  while (true) {
    Seconds next = state_.waiting > 0 ? state_.last_cycle + state_.site->iteration : kNever;
    const bool is_timed = next_timed_ < timed_.size() && timed_[next_timed_] <= next;
    if (is_timed) next = timed_[next_timed_];
    if (next >= until) return;
    if (is_timed) ++next_timed_;
    cycle(next, nullptr, -1);
  }
}

void PbsPlanner::reached(Seconds now) {
  if (now <= reached_) return;
  // Nobody waited when these ended.
  while (!ended_.empty() && ended_at_ < now) {
    end_first(ended_at_);
    cycle(ended_at_, nullptr, -1);
  }
  catch_up(now);
  reached_ = now;
}

Seconds PbsPlanner::next_moment() const {
  if (state_.waiting == 0) return kNever;
  Seconds next = next_timed_ < timed_.size() ? timed_[next_timed_] : kNever;
  const bool idle = state_.running.empty() && next == kNever;
  if (!idle && (state_.site->goes_by_time() || values_change())) {
    next = std::min(next, state_.last_cycle + state_.site->iteration);
  }
  return next == kNever ? kNever : std::max(next, reached_ + 1);
}

// Snapshots

void PbsPlanner::resume(const PlanNotes& /*notes*/, Seconds reached) {
  for (const JobIndex index : coming_) {
    if (job(index).submit <= reached) take_up(index, false);
  }
  std::erase_if(coming_, [&](JobIndex index) { return job(index).submit <= reached; });
  asked_ = reached < now_;
  reached_ = reached;
}

PbsNotes PbsPlanner::notes_of(const std::vector<JobIndex>& running,
                              const std::vector<JobIndex>& pending) const {
  PbsNotes notes{{}, {}, {}, state_.fair_share, state_.last_cycle};
  for (const JobIndex index : running) {
    const PbsRecord& job = state_.record(index);
    notes.facts.push_back(job.facts);
    notes.exclusive.push_back(job.exclusive);
    notes.seen.emplace_back(job.seen, job.used);
  }
  for (const JobIndex index : pending) notes.facts.push_back(state_.record(index).facts);
  return notes;
}

void PbsPlanner::begin_with(const PbsNotes& notes) {
  state_.fair_share = notes.fair_share;
  state_.last_cycle = notes.last_cycle;
  for (std::size_t i = 0; i < notes.seen.size(); ++i) {
    PbsRecord& job = make_record(static_cast<JobIndex>(i));
    job.facts = notes.facts[i];
    job.exclusive = notes.exclusive[i];
    job.seen = notes.seen[i].first;
    job.used = notes.seen[i].second;
  }
}

std::optional<std::vector<JobIndex>> PbsPlanner::own_queue() const {
  std::vector<JobIndex> jobs;
  for (const std::int32_t number : state_.filled) {
    const PbsGroup& group = state_.groups[static_cast<std::size_t>(number)];
    jobs.insert(jobs.end(), group.jobs.begin(), group.jobs.end());
  }
  jobs.insert(jobs.end(), coming_.begin(), coming_.end());
  return jobs;
}

}  // namespace foretime
