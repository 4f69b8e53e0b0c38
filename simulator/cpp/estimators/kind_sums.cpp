// CMakeLists.txt forbids fused operations here: Python gets the same bits.
#include "estimators/kind_sums.hpp"

#include <bit>
#include <iterator>

namespace foretime {
namespace {

std::int64_t bits(std::int64_t number) {
  return static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(number)));
}

// From fine to coarse.
class Kinds {
 public:
  explicit Kinds(const JobRequest& job) {
    const std::int64_t request = job.requested;
    const std::int64_t size = job.processors;
    const std::int64_t request_class = bits(request);
    const std::int64_t size_class = bits(size);
    if (job.user != kNoName) {
      if (job.executable != kNoName) {
        add(KindLevel::kExecutable, {job.user, job.executable, request, size});
      }
      add(KindLevel::kUserRequestSize, {job.user, request, size});
      add(KindLevel::kUserRequest, {job.user, request});
      add(KindLevel::kUserClass, {job.user, request_class});
      add(KindLevel::kUser, {job.user});
    }
    if (job.project != kNoName) {
      add(KindLevel::kProjectRequest, {job.project, request});
      add(KindLevel::kProject, {job.project});
    }
    if (job.queue != kNoName) {
      add(KindLevel::kQueueClasses, {job.queue, request_class, size_class});
    }
    add(KindLevel::kClasses, {request_class, size_class});
    add(KindLevel::kAll, {});
  }
  const Kind* begin() const { return kinds_.data(); }
  const Kind* end() const { return kinds_.data() + count_; }

 private:
  void add(KindLevel level, const std::array<std::int64_t, 4>& values) {
    kinds_[count_++] = {level, values};
  }

  std::array<Kind, 10> kinds_;
  std::size_t count_ = 0;
};

}  // namespace

void KindSums::add(const JobRequest& job, const Figures& figures, Seconds end) {
  for (const Kind& kind : Kinds(job)) {
    const auto [place, is_new] = place_.try_emplace(kind);
    if (is_new) {
      known_.push_back({kind, end, 1, figures});
      place->second = std::prev(known_.end());
      continue;
    }
    Known& known = *place->second;
    known.end = end;
    known.weight = 1 + ageing_.fading * known.weight;
    for (std::size_t i = 0; i < kFigures; ++i) {
      known.sums[i] = figures[i] + ageing_.fading * known.sums[i];
    }
    known_.splice(known_.end(), known_, place->second);
  }
  while (known_.front().end < end - ageing_.window) {
    place_.erase(known_.front().kind);
    known_.pop_front();
  }
}

std::optional<KindSums::Figures> KindSums::mean(const JobRequest& job,
                                                const Figures& otherwise) const {
  double left_open = 1;
  Figures means{};
  for (const Kind& kind : Kinds(job)) {
    const auto place = place_.find(kind);
    if (place == place_.end()) continue;
    const Known& known = *place->second;
    const double each = left_open / (known.weight + ageing_.enough);
    for (std::size_t i = 0; i < kFigures; ++i) means[i] = means[i] + each * known.sums[i];
    left_open = each * ageing_.enough;
    if (left_open < ageing_.left_open) break;
  }
  if (left_open == 1) return std::nullopt;
  for (std::size_t i = 0; i < kFigures; ++i) means[i] = means[i] + left_open * otherwise[i];
  return means;
}

void KindSums::restore(const Known& known) {
  known_.push_back(known);
  place_[known.kind] = std::prev(known_.end());
}

}  // namespace foretime
