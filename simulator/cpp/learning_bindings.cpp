#include "learning_bindings.hpp"

#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "interruption.hpp"
#include "last_two.hpp"
#include "learning_run.hpp"
#include "numpy_columns.hpp"

namespace nb = nanobind;

namespace foretime {
namespace {

using Flags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::vector<LearningJob> learning_jobs(In submit, In processors, In actual_runtime,
                                       In requested_time, In user, Flags is_evidence) {
  std::vector<LearningJob> jobs(submit.shape(0));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i] = {submit(i),          processors(i),
               actual_runtime(i),  requested_time(i),
               static_cast<UserCode>(user(i)), is_evidence(i)};
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

  nb::class_<LearningRun>(m, "LearningRun")
      .def(
          "__init__",
          [](LearningRun* self, Engine& engine, OnlineEstimator& estimator, In submit,
             In processors, In actual_runtime, In requested_time, In user, Flags is_evidence,
             bool queue, bool backfill, bool drain) {
            new (self) LearningRun(engine, estimator,
                                   learning_jobs(submit, processors, actual_runtime,
                                                 requested_time, user, is_evidence),
                                   {queue, backfill, drain});
          },
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::arg("engine"), nb::arg("estimator"),
          nb::arg("submit_time"), nb::arg("processors"), nb::arg("actual_runtime"),
          nb::arg("requested_time"), nb::arg("user"), nb::arg("is_evidence"), nb::arg("queue"),
          nb::arg("backfill"), nb::arg("drain"))
      .def(
          "submit_up_to",
          [](LearningRun& run, std::size_t jobs) {
            interruptibly(run.engine(), [&] { run.submit_up_to(jobs); });
          },
          nb::arg("jobs"))
      .def("predicted", [](const LearningRun& run) {
        return to_numpy(std::vector<Seconds>(run.predicted()));
      });
}

}  // namespace foretime
