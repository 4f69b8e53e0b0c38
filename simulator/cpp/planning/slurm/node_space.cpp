#include "planning/slurm/node_space.hpp"

#include <algorithm>
#include <utility>

namespace foretime {

void NodeSpace::begin(Seconds begin, Seconds end, const NodeSet& nodes,
                      std::vector<std::int64_t> licenses) {
  for (const Record& record : records_) unused_.push_back(record.facts);
  records_.clear();
  by_begin_.clear();
  by_end_.clear();
  all_ = nodes;
  const std::size_t facts = new_facts();
  count(nodes, facts_[facts].counts);
  keeps_licenses_ = !licenses.empty();
  facts_[facts].licenses = std::move(licenses);
  records_.push_back({begin, end, facts});
  made_ = 1;
}

void NodeSpace::count(const NodeSet& nodes, std::vector<std::int64_t>& counts) const {
  counts.resize(static_cast<std::size_t>(table_->groups()));
  for (std::int32_t group = 0; group < table_->groups(); ++group) {
    counts[static_cast<std::size_t>(group)] =
        nodes.count(table_->first_of(group), table_->last_of(group));
  }
}

std::size_t NodeSpace::first_after(Seconds time) const {
  const auto found =
      std::partition_point(records_.begin(), records_.end(),
                           [time](const Record& record) { return record.end <= time; });
  return static_cast<std::size_t>(found - records_.begin());
}

// Of a record that is as the one before it.
std::size_t NodeSpace::new_facts() {
  if (unused_.empty()) {
    unused_.push_back(facts_.size());
    Facts& facts = facts_.emplace_back();
    facts.gained = facts.lost = NodeSet(table_->nodes());
  }
  const std::size_t number = unused_.back();
  unused_.pop_back();
  Facts& facts = facts_[number];
  if (facts.gains) facts.gained.clear();
  if (facts.loses) facts.lost.clear();
  facts.gains = facts.loses = false;
  return number;
}

void NodeSpace::split(std::size_t place, Seconds at) {
  const std::size_t number = new_facts();
  facts_[number].counts = facts_[records_[place].facts].counts;
  if (keeps_licenses_) facts_[number].licenses = facts_[records_[place].facts].licenses;
  const Record later{at, records_[place].end, number};
  records_[place].end = at;
  records_.insert(records_.begin() + static_cast<std::ptrdiff_t>(place) + 1, later);
  ++made_;
}

// A plan whose nodes were all free begins, or ends, where a record begins.
void NodeSpace::begins_at(std::size_t place, const Plan& plan) {
  Facts& facts = facts_[records_[place].facts];
  facts.lost.add(plan.nodes, plan.extent);
  if (facts.gains) {
    facts.lost.remove(facts.gained, plan.extent);
    facts.gained.remove(plan.nodes, plan.extent);
    facts.gains = !facts.gained.empty();
  }
  facts.loses = !facts.lost.empty();
}

void NodeSpace::ends_at(std::size_t place, const Plan& plan) {
  Facts& facts = facts_[records_[place].facts];
  facts.gained.add(plan.nodes, plan.extent);
  if (facts.loses) {
    facts.gained.remove(facts.lost, plan.extent);
    facts.lost.remove(plan.nodes, plan.extent);
    facts.loses = !facts.lost.empty();
  }
  facts.gains = !facts.gained.empty();
}

// Where plans overlap.
void NodeSpace::work_out_anew() {
  NodeSet before = all_;
  for (const Record& record : records_) {
    NodeSet free = all_;
    for (const std::size_t number : by_begin_) {
      const Plan& plan = plans_[number];
      if (covers(plan, record)) free.remove(plan.nodes, plan.extent);
    }
    Facts& facts = facts_[record.facts];
    count(free, facts.counts);
    facts.gained = free;
    facts.gained -= before;
    facts.lost = before;
    facts.lost -= free;
    facts.gains = !facts.gained.empty();
    facts.loses = !facts.lost.empty();
    before = std::move(free);
  }
}

const NodeSpace::Plan& NodeSpace::add_plan(Seconds begin, Seconds end, const NodeSet& nodes) {
  const std::size_t number = by_begin_.size();
  if (number == plans_.size()) plans_.emplace_back();
  Plan& plan = plans_[number];
  plan.begin = begin;
  plan.end = end;
  plan.nodes = nodes;
  plan.extent = nodes.extent();
  by_begin_.insert(by_begin_.begin() + static_cast<std::ptrdiff_t>(first_beginning_after(begin)),
                   number);
  by_end_.insert(
      std::partition_point(by_end_.begin(), by_end_.end(),
                           [this, end](std::size_t known) { return plans_[known].end <= end; }),
      number);
  count(nodes, counts_);
  return plan;
}

void NodeSpace::reserve(Seconds start, Seconds end, const NodeSet& nodes,
                        const LicenseCounts& licenses, Seconds resolution) {
  start = std::max(start, records_.front().begin);
  end = std::max(end, start + resolution);
  // The record that the reservation begins after, and the first one in which it counts.
  std::size_t before = 0;
  std::size_t place = 0;
  while (records_[place].end < start) {
    before = place;
    if (++place == records_.size()) return;
  }
  if (records_[place].end > start) split(place, start);
  std::size_t after = records_.size();
  if (place + 1 < records_.size()) {
    const bool all_free = !overlaps(start, end, nodes);
    const Plan& plan = add_plan(start, std::min(end, records_.back().end), nodes);
    for (std::size_t at = place + 1; at < records_.size(); ++at) {
      if (end < records_[at].end) split(at, end);
      Facts& facts = facts_[records_[at].facts];
      std::vector<std::int64_t>& counts = facts.counts;
      for (std::size_t group = 0; group < counts.size(); ++group) counts[group] -= counts_[group];
      for (const auto& [license, count] : licenses) {
        facts.licenses[static_cast<std::size_t>(license)] -= count;
      }
      if (end == records_[at].end) {
        if (at + 1 < records_.size()) after = at + 1;
        break;
      }
    }
    if (all_free) {
      begins_at(place + 1, plan);
      if (after < records_.size()) ends_at(after, plan);
    } else {
      work_out_anew();
    }
  }
  // One record that is as the one before it is dropped.
  for (std::size_t at = before; at != after && at + 1 < records_.size(); ++at) {
    const std::size_t next = records_[at + 1].facts;
    if (facts_[next].gains || facts_[next].loses) continue;
    const bool alike =
        !keeps_licenses_ || facts_[next].licenses == facts_[records_[at].facts].licenses;
    if (!alike) continue;
    records_[at].end = records_[at + 1].end;
    unused_.push_back(next);
    records_.erase(records_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    break;
  }
}

bool NodeSpace::overlaps(Seconds start, Seconds end, const NodeSet& nodes) const {
  if (start == end) {  // within a record, not between two
    const std::size_t place = first_after(start);
    if (place == records_.size() || records_[place].begin >= start) return false;
  }
  for (const std::size_t number : by_begin_) {
    const Plan& plan = plans_[number];
    if (plan.begin >= end) break;
    if (plan.end > start && plan.nodes.meets(nodes, plan.extent)) return true;
  }
  return false;
}

bool NodeSpace::record_lacks(std::size_t place, const LicenseCounts& licenses) const {
  const std::vector<std::int64_t>& left = facts_[records_[place].facts].licenses;
  return std::any_of(licenses.begin(), licenses.end(), [&left](const auto& asked) {
    return left[static_cast<std::size_t>(asked.first)] < asked.second;
  });
}

bool NodeSpace::lacks(Seconds start, Seconds end, const LicenseCounts& licenses) const {
  if (licenses.empty()) return false;
  for (std::size_t place = first_after(start); place < records_.size(); ++place) {
    if (records_[place].begin >= end) break;
    if (record_lacks(place, licenses)) return true;
  }
  return false;
}

Seconds NodeSpace::first_plan_of(const NodeSet& nodes) const {
  for (const std::size_t number : by_begin_) {
    const Plan& plan = plans_[number];
    if (plan.nodes.meets(nodes, plan.extent)) return plan.begin;
  }
  return kNever;
}

void NodeSpace::leave_free(Seconds start, Seconds end, NodeSet& nodes) const {
  for (const std::size_t number : by_begin_) {
    const Plan& plan = plans_[number];
    if (plan.begin > end) break;
    if (plan.end > start) nodes.remove(plan.nodes, plan.extent);
  }
}

}  // namespace foretime
