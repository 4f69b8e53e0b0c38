#include "bindings/learning_bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/choices.hpp"
#include "bindings/interruption.hpp"
#include "bindings/numpy_columns.hpp"
#include "engine/learning_run.hpp"
#include "estimators/expected_runtime.hpp"
#include "estimators/last_two.hpp"
#include "estimators/learned_runtime.hpp"

namespace nb = nanobind;

namespace foretime {
namespace {

std::vector<LearningJob> learning_jobs(In submit, In processors, In actual_runtime,
                                       In requested_time, In user, In project, In queue,
                                       In executable, In evidence) {
  std::vector<LearningJob> jobs(submit.shape(0));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    LearningJob& job = jobs[i];
    job.submit = submit(i);
    job.processors = processors(i);
    job.actual_runtime = actual_runtime(i);
    job.requested = requested_time(i);
    job.user = static_cast<UserCode>(user(i));
    job.project = static_cast<NameCode>(project(i));
    job.queue = static_cast<NameCode>(queue(i));
    job.executable = static_cast<NameCode>(executable(i));
    job.evidence = static_cast<Evidence>(evidence(i));
  }
  return jobs;
}

// A user's last jobs, oldest first: (actual_runtime, requested_time).
std::vector<std::vector<Seconds>> recent_jobs(const LastTwo& estimator, UserCode user) {
  std::vector<std::vector<Seconds>> jobs;
  const LastTwo::Recent* recent = estimator.of(user);
  for (std::size_t i = 0; recent != nullptr && i < recent->count; ++i) {
    jobs.push_back({recent->jobs[i].runtime, recent->jobs[i].requested});
  }
  return jobs;
}

using Floats = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Terms = OnlineRegression::Terms;

Terms terms_of(Floats values) {
  Terms terms{};
  std::copy_n(values.data(), std::min(values.shape(0), OnlineRegression::kTerms), terms.begin());
  return terms;
}

Out<double> numpy_terms(const Terms& terms) {
  return to_numpy(std::vector<double>(terms.begin(), terms.begin() + OnlineRegression::kTerms));
}

using Learned = std::tuple<std::int64_t, double, Out<double>, Out<double>, Out<double>>;

// Examples, normalised squares, weights, scales, squared gradients.
Learned learned_of(const LearnedRuntime& estimator) {
  const OnlineRegression::Learned& learned = estimator.regression().learned();
  return {learned.examples, learned.normalised_squares, numpy_terms(learned.weight),
          numpy_terms(learned.scale), numpy_terms(learned.gradient_squares)};
}

using Past =
    std::tuple<std::vector<Seconds>, std::int64_t, Seconds, Processors, std::optional<Seconds>>;
using Running = std::vector<std::tuple<JobIndex, Seconds, Processors>>;

// The last runtimes, latest first, jobs, sum of runtimes, of processors, end of the last; and what
// runs: job, start, processors.
std::pair<Past, Running> jobs_of_user(const LearnedRuntime& estimator, UserCode code) {
  const RuntimeFeatures::UserJobs& user = estimator.features().user(code);
  Running running;
  for (const auto& job : user.running) running.emplace_back(job.job, job.start, job.processors);
  return {Past{user.last_runtimes, user.jobs, user.runtime_sum, user.processors_sum, user.last_end},
          std::move(running)};
}

void restore_user(LearnedRuntime& estimator, UserCode code, const Past& past) {
  RuntimeFeatures::UserJobs user;
  std::tie(user.last_runtimes, user.jobs, user.runtime_sum, user.processors_sum, user.last_end) =
      past;
  estimator.features().restore(code, std::move(user));
}

using Asked = std::vector<std::pair<JobIndex, std::vector<double>>>;

Asked asked_of(const LearnedRuntime& estimator) {
  Asked asked;
  for (const auto& [job, features] : estimator.asked()) {
    asked.emplace_back(job, std::vector<double>(features.begin(), features.end()));
  }
  return asked;
}

void register_learned_runtime(nb::module_& m) {
  nb::class_<PredictionLoss>(m, "PredictionLoss")
      .def(
          "__init__",
          [](PredictionLoss* self, LossBranch over, LossBranch under, LossWeight weight,
             double log_base, double least_weight) {
            new (self) PredictionLoss{over, under, weight, log_base, least_weight};
          },
          nb::arg("over"), nb::arg("under"), nb::arg("weight"), nb::arg("log_base"),
          nb::arg("least_weight"));
  nb::class_<LearnedRuntime, OnlineEstimator>(m, "LearnedRuntime")
      .def(
          "__init__",
          [](LearnedRuntime* self, const PredictionLoss& loss, double eta, double l2, double decay,
             bool absolute, std::size_t most_asked) {
            new (self) LearnedRuntime(loss, {eta, l2, decay}, absolute, most_asked);
          },
          nb::arg("loss"), nb::arg("eta"), nb::arg("l2"), nb::arg("decay"), nb::arg("absolute"),
          nb::arg("most_asked"))
      .def(
          "restore_learned",
          [](LearnedRuntime& estimator, std::int64_t examples, double normalised_squares,
             Floats weight, Floats scale, Floats gradient_squares) {
            estimator.regression().restore({examples, normalised_squares, terms_of(weight),
                                            terms_of(scale), terms_of(gradient_squares)});
          },
          nb::arg("examples"), nb::arg("normalised_squares"), nb::arg("weight"), nb::arg("scale"),
          nb::arg("gradient_squares"))
      .def("restore_user", &restore_user, nb::arg("user"), nb::arg("past"))
      .def("learned", &learned_of)
      .def_prop_ro("users",
                   [](const LearnedRuntime& estimator) { return estimator.features().users(); })
      .def("jobs_of_user", &jobs_of_user, nb::arg("user"))
      .def("asked", &asked_of);
}

// The level, its values, the latest end, weight and sums.
using KnownKind = std::tuple<int, std::vector<std::int64_t>, Seconds, double, double, double>;

void restore_kind(ExpectedRuntime& estimator, const KnownKind& given) {
  const auto& [level, values, end, weight, first, second] = given;
  KindSums::Known known{{static_cast<KindLevel>(level), {}}, end, weight, {first, second}};
  std::copy_n(values.begin(), std::min(values.size(), known.kind.values.size()),
              known.kind.values.begin());
  estimator.sums().restore(known);
}

std::vector<KnownKind> known_kinds(const ExpectedRuntime& estimator) {
  std::vector<KnownKind> kinds;
  for (const KindSums::Known& known : estimator.sums().known()) {
    const auto& values = known.kind.values;
    kinds.emplace_back(static_cast<int>(known.kind.level),
                       std::vector<std::int64_t>(values.begin(), values.end()), known.end,
                       known.weight, known.sums[0], known.sums[1]);
  }
  return kinds;
}

void register_expected_runtime(nb::module_& m) {
  nb::class_<ExpectedRuntime, OnlineEstimator>(m, "ExpectedRuntime")
      .def(
          "__init__",
          [](ExpectedRuntime* self, double fading, double enough, Seconds window_s,
             double left_open, Seconds shortest_s) {
            new (self) ExpectedRuntime({fading, enough, window_s, left_open}, shortest_s);
          },
          nb::arg("fading"), nb::arg("enough"), nb::arg("window_s"), nb::arg("left_open"),
          nb::arg("shortest_s"))
      .def("restore_kind", &restore_kind, nb::arg("kind"))
      .def("kinds", &known_kinds);
}

}  // namespace

void register_learning(nb::module_& m) {
  nb::class_<OnlineEstimator>(m, "OnlineEstimator");

  nb::class_<LastTwo, OnlineEstimator>(m, "LastTwo")
      .def(nb::init<>())
      .def(
          "remember",
          [](LastTwo& estimator, UserCode user, Seconds actual_runtime, Seconds requested_time) {
            estimator.remember(user, {actual_runtime, requested_time});
          },
          nb::arg("user"), nb::arg("actual_runtime"), nb::arg("requested_time"))
      .def_prop_ro("users", [](const LastTwo& estimator) { return estimator.users(); })
      .def("recent", &recent_jobs, nb::arg("user"));

  register_learned_runtime(m);
  register_expected_runtime(m);

  nb::class_<LearningRun>(m, "LearningRun")
      .def(
          "__init__",
          [](LearningRun* self, Engine& engine, OnlineEstimator& estimator, In submit,
             In processors, In actual_runtime, In requested_time, In user, In project,
             In queue_name, In executable, In evidence, bool queue, bool backfill, bool drain) {
            new (self) LearningRun(engine, estimator,
                                   learning_jobs(submit, processors, actual_runtime, requested_time,
                                                 user, project, queue_name, executable, evidence),
                                   {queue, backfill, drain});
          },
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::arg("engine"), nb::arg("estimator"),
          nb::arg("submit_time"), nb::arg("processors"), nb::arg("actual_runtime"),
          nb::arg("requested_time"), nb::arg("user"), nb::arg("project"), nb::arg("queue_name"),
          nb::arg("executable"), nb::arg("evidence"), nb::arg("queue"), nb::arg("backfill"),
          nb::arg("drain"))
      .def(
          "submit_up_to",
          [](LearningRun& run, std::size_t jobs) {
            interruptibly(run.engine(), [&] { run.submit_up_to(jobs); });
          },
          nb::arg("jobs"))
      // Of the jobs submitted so far, one column a role.
      .def("predicted", [](const LearningRun& run) {
        std::vector<Seconds> queue;
        std::vector<Seconds> backfill;
        std::vector<Seconds> drain;
        for (const RolePrediction& times : run.predicted()) {
          queue.push_back(times.queue);
          backfill.push_back(times.backfill);
          drain.push_back(times.drain);
        }
        return std::tuple{to_numpy(std::move(queue)), to_numpy(std::move(backfill)),
                          to_numpy(std::move(drain))};
      });
}

}  // namespace foretime
