#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/slack_settings.hpp"
#include "planning/conservative.hpp"
#include "planning/slack/slack_pricing.hpp"
#include "planning/slack/slack_search.hpp"

namespace foretime {

class Slack final : public Conservative {
 public:
  using Conservative::Conservative;

  // By job index; jobs beyond them have neither priorities nor an average wait of their own.
  void describe(std::vector<SlackJob> jobs) { described_ = std::move(jobs); }
  // First planned start + initial slack; kInfiniteSlack: it may wait for ever.
  Seconds latest_start(JobIndex index) const { return note(index).latest_start; }

  bool lets_overrun() const override { return settings_.overruns != Overruns::kKill; }
  // While there are newcomers to be placed.
  bool goes_on() const override { return next_newcomer_ < newcomers_.size(); }
  std::optional<OverrunVerdict> judge_overrun(Seconds now) override;
  std::vector<JobIndex> take_kills() override { return std::exchange(kills_, {}); }

 private:
  struct Note {
    double priority = 0;
    Seconds initial_slack = 0;
    Seconds latest_start = kInfiniteSlack;
  };

  void plan(Seconds now, const QueueInOrder& queue, Starts& starts) override;
  void has_started(JobIndex index, Seconds now) override;

  Processors make_room(Processors needed, Processors free) override;
  void plan_after_ends(Seconds now);
  void keep_possible(Seconds now);
  void insert(Seconds now, JobIndex index);
  void use_gains(Seconds now);
  // Improves on a plan in which nobody moves.
  void improve(SlackPlan& best, Seconds now, double for_priority, const Newcomer& newcomer,
               bool at_once = false) const;
  const AvailabilityProfile& planned() const;
  std::vector<Movable> movable_jobs(double for_priority) const;
  std::vector<std::size_t> insertion_order(const std::vector<Movable>& movable) const;
  std::vector<Seconds> slots(Seconds now, const std::vector<Movable>& movable) const;
  void move(const std::vector<SlackMove>& moves);
  void compress_all(Seconds now);
  void renew(Seconds now);

  SlackJob described(JobIndex index) const;
  double average_wait(const SlackJob& given) const;
  const Note& note(JobIndex index) const { return notes_[static_cast<std::size_t>(index)]; }

  const SlackSettings settings_ = settings_of<SlackSettings>(policy().settings);
  std::vector<SlackJob> described_;
  std::vector<Note> notes_;  // by job index
  std::vector<JobIndex> newcomers_;
  std::size_t next_newcomer_ = 0;
  bool settled_ = true;  // nobody could be moved up alone when last planned, nor since
  // Of the jobs that have started.
  Seconds waited_ = 0;
  std::int64_t started_ = 0;
  std::vector<std::int64_t> start_number_;  // by job index: its place among them
  std::vector<JobIndex> kills_;
};

}  // namespace foretime
