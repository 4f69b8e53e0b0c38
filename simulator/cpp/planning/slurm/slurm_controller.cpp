#include "planning/slurm/slurm_controller.hpp"

#include <algorithm>
#include <numeric>

namespace foretime {

// Of each group of nodes, worked out once.
std::shared_ptr<const NodeSet> SlurmRequests::nodes_of(const std::vector<std::int32_t>& groups) {
  auto& known = known_[groups];
  if (!known) {
    NodeSet nodes(table_->nodes());
    for (const std::int32_t group : groups)
      nodes.add(table_->first_of(group), table_->last_of(group));
    known = std::make_shared<const NodeSet>(std::move(nodes));
  }
  return known;
}

void SlurmRequests::add(ResourceRequest request) {
  requests_.push_back(std::move(request));
  const ResourceRequest& asked = requests_.back();
  std::vector<Wish>& wishes = wishes_.emplace_back();
  for (const PartitionChoice& choice : asked.choices) {
    const SlurmPartition& partition =
        site_->partitions[static_cast<std::size_t>(choice.slurm_partition)];
    Wish wish;
    wish.slurm_partition = choice.slurm_partition;
    wish.tasks = asked.tasks;
    wish.cpus_per_task = asked.cpus_per_task;
    wish.cpus = asked.tasks * asked.cpus_per_task;
    wish.exact_nodes = asked.nodes > 0;
    wish.min_nodes = std::max<std::int64_t>(asked.nodes, 1);
    wish.max_nodes =
        wish.exact_nodes ? std::min(asked.nodes, choice.most_nodes) : choice.most_nodes;
    if (choice.memory_per_task > 0) {
      wish.cpu_memory = choice.memory_per_task / asked.cpus_per_task;
    } else if (asked.memory_per_node > 0) {
      wish.node_memory = asked.memory_per_node;
    } else {
      wish.node_memory = partition.default_memory_per_node;
    }
    wish.gpus = asked.gpus_per_node;
    wish.whole = choice.exclusive;
    wish.first_fit = (asked.nodes == 1 || asked.tasks == 1) && site_->version >= std::pair{26, 5};
    wish.one_by_one = site_->version >= std::pair{24, 11};
    wish.max_cpus_per_node = partition.max_cpus_per_node;
    wish.groups = choice.groups;
    for (const std::int32_t group : wish.groups) {
      wish.idle_cpus.push_back(table_->cpus_for(wish, group, table_->group(group).node));
    }
    wish.nodes = nodes_of(choice.groups_by_size);
    wishes.push_back(std::move(wish));
  }
  std::vector<std::int32_t> partitions;
  partitions.reserve(wishes.size());
  for (const Wish& wish : wishes) partitions.push_back(wish.slurm_partition);
  const Wish& first = wishes.front();
  Resources counts{asked.gpus_per_node * first.min_nodes, first.node_memory * first.min_nodes,
                   first.cpus};
  if (counts.memory == 0) counts.memory = first.cpu_memory * first.cpus;
  counted_.push_back(SlurmRules::counted(*site_, std::move(partitions), counts, first.min_nodes));
}

SlurmController::SlurmController(std::shared_ptr<const SlurmSite> site, Seconds now)
    : site_(std::move(site)),
      table_(std::make_shared<const NodeTable>(site_->machine)),
      requests_(std::make_shared<SlurmRequests>(site_, table_)),
      all_nodes_(table_->nodes()),
      soft_in_select_(site_->soft_limits() && site_->version >= std::pair{25, 5}),
      free_(std::make_unique<FreeNodes>(table_, *site_)),
      marks_(std::make_unique<GpuMarks>(*site_)),
      chooser_(std::make_unique<NodeChooser>(*free_, *site_, *marks_)),
      rules_(site_, now),
      any_partition_down_(
          std::any_of(site_->partitions.begin(), site_->partitions.end(),
                      [](const SlurmPartition& partition) { return !partition.starts; })),
      may_keep_(rules_.limits().count()),
      nodes_in_use_(site_->partitions.size(), 0),
      closed_(table_->nodes()),
      configured_(table_->nodes()),
      candidates_(table_->nodes()) {
  all_nodes_.add(0, table_->nodes());
  for (const SlurmPartition& partition : site_->partitions) {
    nodes_of_partition_.push_back(requests_->nodes_of(partition.groups));
  }
  for (const SlurmReservation& reservation : site_->reservations) {
    nodes_of_reservation_.push_back(requests_->nodes_of(reservation.groups));
  }
  bool overlap = false;
  NodeSet seen(table_->nodes());
  for (const auto& nodes : nodes_of_partition_) {
    overlap = overlap || seen.meets(*nodes);
    seen |= *nodes;
  }
  kept_jobs_matter_ = overlap || !site_->reservations.empty() || parameters().assoc_limit_stop;
}

SlurmController::SlurmController(const SlurmController& other)
    : site_(other.site_),
      table_(other.table_),
      requests_(other.requests_),
      all_nodes_(other.all_nodes_),
      nodes_of_partition_(other.nodes_of_partition_),
      nodes_of_reservation_(other.nodes_of_reservation_),
      soft_in_select_(other.soft_in_select_),
      free_(std::make_unique<FreeNodes>(*other.free_)),
      marks_(std::make_unique<GpuMarks>(*other.marks_)),
      chooser_(std::make_unique<NodeChooser>(*free_, *site_, *marks_)),
      rules_(other.rules_),
      request_of_(other.request_of_),
      facts_(other.facts_),
      records_(other.records_),
      held_back_(other.held_back_),
      kept_jobs_(other.kept_jobs_),
      kept_groups_(other.kept_groups_),
      queue_(other.queue_),
      gone_(other.gone_),
      waiting_(other.waiting_),
      conditional_(other.conditional_),
      ends_(other.ends_),
      kept_otherwise_(other.kept_otherwise_),
      any_partition_down_(other.any_partition_down_),
      may_keep_(other.may_keep_),
      kept_jobs_matter_(other.kept_jobs_matter_),
      nodes_in_use_(other.nodes_in_use_),
      closed_(other.closed_),
      configured_(other.configured_),
      candidates_(other.candidates_) {}

void SlurmController::make_room(std::size_t jobs) {
  if (records_.size() >= jobs) return;
  records_.resize(jobs);
  held_back_.resize(jobs, false);
  kept_jobs_.resize(jobs);
  facts_.resize(std::max(facts_.size(), jobs));
  request_of_.resize(std::max(request_of_.size(), jobs), -1);
}

void SlurmController::describe(JobIndex job, SlurmJob facts) {
  if (at(job) >= facts_.size()) facts_.resize(at(job) + 1);
  facts_[at(job)] = std::move(facts);
  forget_kept(job);
}

void SlurmController::set_request(JobIndex job, std::int32_t request) {
  if (at(job) >= request_of_.size()) request_of_.resize(at(job) + 1, -1);
  request_of_[at(job)] = request;
  forget_kept(job);
}

// The queue

void SlurmController::submitted(JobIndex job, Seconds submit, Seconds now) {
  SlurmRecord& record = records_[at(job)];
  const SlurmJob& facts = facts_[at(job)];
  record.start = submit;
  const bool in_array =
      facts.array >= 0 && (facts.array_most > 0 || parameters().bf_min_age_reserve > 0);
  if (facts.begin > now || facts.reservation >= 0 || facts.after >= 0 || in_array) {
    conditional_.push_back(job);
    held_back_[at(job)] = !is_independent(job, now);
  } else {
    is_independent(job, now);
  }
  // Since before.
  if (submit < now && record.eligible == now) record.eligible = submit;
  if (facts.told && submit < now) record.eligible = facts.told->ages_since;
  record.waits = true;
  ++waiting_;
  rules_.submitted(ruled(job), submit, record.eligible, now);
  if (facts.told && facts.told->priority) rules_.adopt(job, *facts.told->priority, now);
  look_for_keepers(job);
  enqueue(job);
}

void SlurmController::look_for_keepers(JobIndex job) {
  for (const Wish& wish : wishes(job)) {
    may_keep_ = may_keep_ || rules_.partition_keeps(ruled(job), wish.slurm_partition);
  }
}

void SlurmController::enqueue(JobIndex job) {
  const SlurmRecord& record = records_[at(job)];
  const std::vector<Wish>& wishes = this->wishes(job);
  for (std::size_t number = 0; number < wishes.size(); ++number) {
    const SlurmPartition& in = partition(wishes[number].slurm_partition);
    const std::int64_t priority = rules_.priority_of(job, wishes[number].slurm_partition);
    if (priority <= 0) continue;
    const QueueEntry entry{
        facts_[at(job)].reservation < 0,  in.priority_tier, priority, record.start, job,
        static_cast<std::int32_t>(number)};
    queue_.insert(std::upper_bound(queue_.begin(), queue_.end(), entry), entry);
  }
}

// Entries of jobs that wait no longer stay until they are many.
void SlurmController::forget_started() {
  if (gone_ * 4 <= queue_.size()) return;
  std::erase_if(queue_, [this](const QueueEntry& entry) { return !records_[at(entry.job)].waits; });
  gone_ = 0;
}

void SlurmController::withdraw(JobIndex job, Seconds now) {
  rules_.withdrawn(ruled(job), now);
  records_[at(job)].waits = false;
  forget_kept(job);
  --waiting_;
  gone_ += wishes(job).size();
  std::erase(conditional_, job);
}

bool SlurmController::tick(Seconds now) {
  const bool freed = rules_.tick(now);
  const bool reordered = reorder();
  return freed || reordered;
}

// All priorities may have changed. Whether the order has, or who is above bf_min_prio_reserve.
bool SlurmController::reorder() {
  std::erase_if(queue_, [this](const QueueEntry& entry) { return !records_[at(entry.job)].waits; });
  gone_ = 0;
  bool changed = false;
  for (QueueEntry& entry : queue_) {
    const Wish& wish = wishes(entry.job)[static_cast<std::size_t>(entry.number)];
    const std::int64_t priority = rules_.priority_of(entry.job, wish.slurm_partition);
    const auto is_high = [this](std::int64_t one) {
      return one >= parameters().bf_min_prio_reserve;
    };
    changed = changed || is_high(priority) != is_high(entry.priority);
    entry.priority = priority;
  }
  if (std::is_sorted(queue_.begin(), queue_.end())) return changed;
  std::sort(queue_.begin(), queue_.end());
  return true;
}

void SlurmController::change(JobIndex job, SlurmJob to, Seconds now) {
  forget_kept(job);
  if (records_[at(job)].waits) {
    rules_.changes(ruled(job), to, now);
    facts_[at(job)] = std::move(to);
    std::erase_if(queue_, [job](const QueueEntry& entry) { return entry.job == job; });
    enqueue(job);
  } else {
    facts_[at(job)] = std::move(to);
  }
}

void SlurmController::begin_loop(Seconds now) {
  forget_started();
  usable_changes_at_ = kNever;
  for (const JobIndex job : conditional_) held_back_[at(job)] = !is_independent(job, now);
  kept_otherwise_.clear();
  if (!any_partition_down_) return;
  for (const QueueEntry& entry : queue_) {
    if (may_be_looked_at(entry.job) && !may_be_looked_at(entry)) keep(entry.job, 0);
  }
}

// `job_independent`, job_mgr.c.
bool SlurmController::is_independent(JobIndex job, Seconds now) {
  const SlurmJob& facts = facts_[at(job)];
  SlurmRecord& record = records_[at(job)];
  if (facts.after >= 0) {
    const SlurmRecord& first = records_[at(facts.after)];
    const bool started = first.slurm_partition >= 0;
    const bool happened = started && (!facts.after_end || first.rows.empty());
    if (!happened && !first.refused) return false;
  }
  if (!array_may_start(job) || facts.begin > now) return false;
  if (facts.reservation >= 0) {
    const SlurmReservation& mine = site_->reservations[static_cast<std::size_t>(facts.reservation)];
    if (now < mine.start || now > mine.end) return false;
  }
  if (record.eligible == kNever) {
    record.eligible = now;
    if (record.waits) rules_.eligible(job, now);
  }
  return true;
}

void SlurmController::keep(JobIndex job, slurm::Reason reason) {
  slurm::Reason& known = records_[at(job)].reason;
  if (goes_by_kept_jobs() && (known == 0) != (reason == 0) && kept_otherwise_.erase(job) == 0) {
    kept_otherwise_.insert(job);
  }
  known = reason;
  if (reason == 0) forget_kept(job);
}

bool SlurmController::is_kept(JobIndex job, std::int32_t slurm_partition) {
  if (!may_keep_) return false;
  const slurm::Reason reason = rules_.why_not_considered(ruled(job), slurm_partition);
  if (reason != 0) keep(job, reason);
  return reason != 0;
}

void SlurmController::remember_kept(JobIndex job) {
  const SlurmJob& facts = facts_[at(job)];
  const bool is_plain = facts.array < 0 && facts.reservation < 0 && facts.after < 0;
  const bool has_plan = records_[at(job)].estimate != kNever;
  if (!is_plain || has_plan || wishes(job).size() != 1) return;
  KeptJob& kept = kept_jobs_[at(job)];
  if (kept.group < 0) {
    const std::int32_t in = wishes(job)[0].slurm_partition;
    kept.group = group_of(facts.limited_association, facts.limited_qos, in);
  }
  KeptGroup& group = kept_groups_[static_cast<std::size_t>(kept.group)];
  bring_up_to_date(group);
  kept.changes = group.changes;
}

std::int32_t SlurmController::group_of(std::int32_t association, std::int32_t qos,
                                       std::int32_t slurm_partition) {
  const auto found =
      std::find_if(kept_groups_.begin(), kept_groups_.end(), [&](const KeptGroup& group) {
        return group.association == association && group.qos == qos &&
               group.slurm_partition == slurm_partition;
      });
  const auto place = static_cast<std::int32_t>(found - kept_groups_.begin());
  if (found == kept_groups_.end()) kept_groups_.push_back({association, qos, slurm_partition});
  return place;
}

void SlurmController::bring_up_to_date(KeptGroup& group) const {
  const slurm::Limits& limits = rules_.limits();
  group.as_of = limits.changes();
  group.changes = limits.changes(group.association, group.qos, group.slurm_partition);
}

bool SlurmController::is_kept_from(JobIndex job, std::int32_t slurm_partition,
                                   const NodeSet& nodes) {
  if (!may_keep_) return false;
  std::vector<std::int32_t> numbers;
  if (rules_.limits().go_by_nodes()) {
    nodes.each(0, table_->nodes(), [&numbers](std::int64_t node) {
      numbers.push_back(static_cast<std::int32_t>(node));
    });
  }
  const slurm::Reason reason =
      rules_.why_not_started(ruled(job), slurm_partition, nodes.count(), numbers);
  if (reason != 0) keep(job, reason);
  return reason != 0;
}

slurm::Reason SlurmController::why_kept(JobIndex job) const {
  slurm::Reason reason = record(job).reason;
  if (reason != 0 || request_of_[at(job)] < 0) return reason;
  if (!array_may_start(job)) return slurm::reason::array_throttle;
  if (!may_keep_) return 0;
  if (!has_licenses(job)) return slurm::reason::licenses;
  for (const Wish& wish : wishes(job)) {
    reason = rules_.why_not_considered(ruled(job), wish.slurm_partition);
    if (reason == 0) {
      reason = rules_.why_not_started(ruled(job), wish.slurm_partition, wish.min_nodes, {});
    }
    if (reason != 0) break;
  }
  return reason;
}

std::vector<std::int64_t> SlurmController::licenses_to_plan() const {
  if (!parameters().bf_licenses) return {};
  // Running jobs take theirs out of the table themselves.
  if (parameters().bf_running_job_reserve) return site_->limits->licenses;
  return rules_.limits().licenses_left();
}

Seconds SlurmController::next_begin(Seconds now) const {
  Seconds next = kNever;
  for (const JobIndex job : conditional_) {
    const SlurmJob& facts = facts_[at(job)];
    if (facts.begin > now) next = std::min(next, facts.begin);
    if (facts.reservation < 0) continue;
    const Seconds start = site_->reservations[static_cast<std::size_t>(facts.reservation)].start;
    if (start > now) next = std::min(next, start);
  }
  return next;
}

// Nodes

SlurmController::Usable SlurmController::usable(JobIndex job, Seconds when, std::int32_t partition,
                                                NodeSet& closed) const {
  Usable found;
  if (site_->reservations.empty()) return found;
  const std::int32_t own = facts_[at(job)].reservation;
  if (own >= 0) {
    const SlurmReservation& mine = site_->reservations[static_cast<std::size_t>(own)];
    if (when < mine.start || when > mine.end) {
      found.possible = false;
      return found;
    }
  }
  closed.clear();
  const NodeSet& nodes = nodes_of_partition(partition);
  const Seconds until = when + records_[at(job)].time_limit;
  for (std::size_t number = 0; number < site_->reservations.size(); ++number) {
    const SlurmReservation& reservation = site_->reservations[number];
    const NodeSet& reserved = *nodes_of_reservation_[number];
    if (std::cmp_equal(number, own)) {
      NodeSet others = nodes;
      others -= reserved;
      closed |= others;
      found.any_closed = true;
    } else if (reservation.start < until && reservation.end > when) {
      closed |= reserved;
      found.any_closed = true;
      found.overlap = found.overlap || nodes.meets(reserved);
    } else if (reservation.start >= until) {
      usable_changes_at_ = std::min(usable_changes_at_, reservation.start - (until - when) + 1);
    }
  }
  return found;
}

Seconds SlurmController::next_reservation_end(Seconds when) const {
  Seconds next = kNever;
  for (const SlurmReservation& reservation : site_->reservations) {
    if (reservation.end >= when) next = std::min(next, reservation.end);
  }
  return next;
}

bool SlurmController::any_busy(const NodeSet& nodes, bool whole) const {
  if (whole) return !nodes.is_within(free_->idle());
  bool any = false;
  for (const auto& [end, job] : ends_) {
    const SlurmRecord& running = records_[at(job)];
    if (!running.whole || any) continue;
    for (const NodeRow& row : running.rows)
      any = any || nodes.meets(row.node, row.node + row.nodes);
  }
  return any;
}

Verdict SlurmController::select_nodes(JobIndex job, std::int32_t number, const NodeSet& available,
                                      Seconds now, Seconds time_limit, StartedBy how, Pass& pass) {
  SlurmRecord& record = records_[at(job)];
  const Wish& wish = wishes(job)[static_cast<std::size_t>(number)];
  if (is_kept(job, wish.slurm_partition)) return Verdict::kPolicy;
  const auto by_other = [&](Verdict verdict) {
    keep(job, 0);
    return verdict;
  };
  if (!has_licenses(job)) return by_other(Verdict::kLicenses);
  const Usable usable = this->usable(job, now, wish.slurm_partition, closed_);
  if (!usable.possible) return by_other(Verdict::kReserved);
  configured_ = *wish.nodes;
  if (usable.any_closed) configured_ -= closed_;
  marks_->forget(configured_);
  candidates_ = configured_;
  candidates_ &= available;
  chooser_->begin(wish, candidates_);
  auto rows = chooser_->test();
  const bool fits = rows.has_value();
  std::int64_t nodes = wish.min_nodes;
  if (!fits) {
    chooser_->begin_idle(wish, candidates_);
    rows = chooser_->test();
  }
  if (!rows && wish.gpus > 0 && marks_->count()) {
    chooser_->begin_idle(wish, configured_);
    chooser_->test();
  }
  if (rows) {
    nodes = std::accumulate(rows->begin(), rows->end(), std::int64_t{0},
                            [](std::int64_t sum, const NodeRow& row) { return sum + row.nodes; });
  }
  const auto in = static_cast<std::size_t>(wish.slurm_partition);
  const std::int64_t most = site_->partitions[in].most_nodes_in_use;
  slurm::Reason reason = fits ? rules_.why_not_started(ruled(job), wish.slurm_partition, *rows)
                              : rules_.why_not_started(ruled(job), wish.slurm_partition, nodes, {});
  if (reason == 0 && most != kNever && nodes_in_use_[in] + nodes > most) {
    reason = slurm::tres_reason(true, slurm::TresLimit::group, site_->limits->node_kind);
  }
  if (reason != 0) {
    keep(job, reason);
    return Verdict::kPolicy;
  }
  if (fits) {
    record.time_limit = time_limit;
    keep(job, 0);
    attempt_ = {job, number, std::move(*rows)};
    pass.start(job, how);
    return Verdict::kStarted;
  }
  if (!rows && !any_busy(candidates_, wish.whole)) {
    return by_other(Verdict::kNotAvailable);
  }
  return by_other(Verdict::kBusy);
}

// `_select_nodes_parts` without an allocation, by `job_allocate` (job_mgr.c): it leaves marks.
void SlurmController::test_submission(JobIndex job, Seconds now) {
  if (!marks_->count()) return;
  for (const Wish& wish : wishes(job)) {
    const Usable usable = this->usable(job, now, wish.slurm_partition, closed_);
    if (!usable.possible) continue;
    configured_ = *wish.nodes;
    if (usable.any_closed) configured_ -= closed_;
    marks_->forget(configured_);
    chooser_->begin_idle(wish, configured_);
    chooser_->test();
  }
}

// Start and end

void SlurmController::started(JobIndex job, Seconds now) {
  SlurmRecord& record = records_[at(job)];
  const Wish& wish = wishes(job)[static_cast<std::size_t>(attempt_.number)];
  record.number = attempt_.number;
  record.whole = wish.whole;
  runs(job, wish.slurm_partition, std::move(attempt_.rows), now);
  attempt_.job = -1;
}

void SlurmController::runs(JobIndex job, std::int32_t slurm_partition, std::vector<NodeRow> rows,
                           Seconds start) {
  SlurmRecord& record = records_[at(job)];
  record.slurm_partition = slurm_partition;
  if (!record.waits) rules_.submitted(ruled(job), start, start, start);
  rules_.started(ruled(job), slurm_partition, rows, start);
  if (record.waits) {
    record.waits = false;
    --waiting_;
    gone_ += wishes(job).size();
    if (held_back_[at(job)] || !conditional_.empty()) std::erase(conditional_, job);
  }
  record.start = start;
  record.rows = std::move(rows);
  record.limit_end = start + record.time_limit;
  for (const NodeRow& row : record.rows) {
    free_->take(row, slurm_partition);
    nodes_in_use_[static_cast<std::size_t>(slurm_partition)] += row.nodes;
  }
  ends_.insert({first_end(job), job});
}

void SlurmController::finished(JobIndex job, Seconds now) {
  SlurmRecord& record = records_[at(job)];
  rules_.ended(ruled(job), now);
  ends_.erase({first_end(job), job});
  for (const NodeRow& row : record.rows) {
    free_->give(row, record.slurm_partition);
    nodes_in_use_[static_cast<std::size_t>(record.slurm_partition)] -= row.nodes;
  }
  record.rows = {};
}

void SlurmController::change_limits(JobIndex job, Seconds time_limit, Seconds time_min) {
  SlurmRecord& record = records_[at(job)];
  forget_kept(job);
  const bool runs = !record.rows.empty();
  if (runs) ends_.erase({first_end(job), job});
  record.time_limit = time_limit;
  record.time_min = time_min;
  if (!runs) return;
  record.limit_end = record.start + time_limit;
  ends_.insert({first_end(job), job});
}

// `_soft_job_end` at the beginning of time.
Seconds SlurmController::first_end(JobIndex job) const {
  const SlurmRecord& record = records_[at(job)];
  return soft_in_select_ && record.time_min > 0 ? record.start + record.time_min : record.limit_end;
}

Seconds SlurmController::end(JobIndex job, Seconds now) const {
  const SlurmRecord& record = records_[at(job)];
  const Seconds soft = first_end(job);
  if (soft == record.limit_end || soft >= now) return soft;
  return now + (record.limit_end - now) / 2;
}

Seconds SlurmController::guessed_end(JobIndex job, Seconds now) const {
  const SlurmRecord& record = records_[at(job)];
  const Seconds over = partition(record.slurm_partition).over_time_limit;
  return std::max(record.limit_end + site_->parameters.kill_wait_s + over, now + 1);
}

}  // namespace foretime
