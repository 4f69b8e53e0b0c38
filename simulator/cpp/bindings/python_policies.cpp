#include "bindings/python_policies.hpp"

#include <nanobind/stl/string_view.h>

#include <string>
#include <string_view>

#include "bindings/numpy_columns.hpp"

namespace nb = nanobind;

namespace foretime {
namespace {

// Asks an object of foretime_sim.policies.policy_calls, which checks what the user's code gives
// back. Passes run without the interpreter's lock; it is held while Python is asked, and only then.
class PythonPolicies final : public OutsidePolicy {
 public:
  explicit PythonPolicies(nb::object calls) : calls_(std::move(calls)) {}

  std::vector<double> scores(const Engine& engine, const std::vector<JobIndex>& queue,
                             OutsideNews&& news) override {
    return ask<double>("scores", engine, queue, std::move(news));
  }

  std::vector<JobIndex> backfill(const Engine& engine, const std::vector<JobIndex>& queue,
                                 bool on_requested, OutsideNews&& news) override {
    return ask<JobIndex>("backfill", engine, queue, std::move(news), on_requested);
  }

  nb::handle calls() const { return calls_; }

 private:
  template <class T, class... More>
  std::vector<T> ask(const char* method, const Engine& engine, const std::vector<JobIndex>& queue,
                     OutsideNews&& news, More... more) {
    using Answer = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
    const nb::gil_scoped_acquire locked;
    const nb::object given =
        calls_.attr(method)(nb::find(engine), to_read_only_numpy(std::vector<JobIndex>(queue)),
                            engine.now(), to_read_only_numpy(std::move(news.started)),
                            to_read_only_numpy(std::move(news.finished)), more...);
    const auto answer = nb::cast<Answer>(given);
    return std::vector<T>(answer.data(), answer.data() + answer.shape(0));
  }

  nb::object calls_;
};

struct Field {
  std::string_view name;
  std::int64_t (*value)(const Job&);
};

// What a policy may know of a job.
constexpr auto kFields = std::to_array<Field>({
    {"submit_time", [](const Job& job) { return job.submit; }},
    {"processors", [](const Job& job) { return job.processors; }},
    {"requested_time", [](const Job& job) { return job.requested; }},
    {"scheduled_time", [](const Job& job) { return job.queue_time; }},
    {"backfill_time", [](const Job& job) { return job.backfill_time; }},
    {"priority", [](const Job& job) { return job.priority; }},
    {"start_time", [](const Job& job) { return job.start; }},
    {"end_time", [](const Job& job) { return job.end; }},
});

template <class Get>
Out<const std::int64_t> gather(In jobs, Get get) {
  std::vector<std::int64_t> values;
  values.reserve(jobs.shape(0));
  for (std::size_t i = 0; i < jobs.shape(0); ++i) values.push_back(get(jobs(i)));
  return to_read_only_numpy(std::move(values));
}

Out<const std::int64_t> values(const Engine& engine, std::string_view name, In jobs) {
  for (const Field& field : kFields) {
    if (field.name != name) continue;
    return gather(jobs, [&](JobIndex index) {
      return field.value(engine.jobs().at(static_cast<std::size_t>(index)));
    });
  }
  throw nb::value_error(("no field " + std::string(name)).c_str());
}

nb::handle held_calls(PyObject* self) {
  if (!nb::inst_ready(self)) return {};
  const auto* asked = static_cast<PythonPolicies*>(nb::inst_ptr<Engine>(self)->asked());
  return asked == nullptr ? nb::handle() : asked->calls();
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(held_calls(self).ptr());
  return 0;
}

int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<Engine>(self)->ask(nullptr);
  return 0;
}

}  // namespace

const std::array<PyType_Slot, 3> engine_slots{{
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {0, nullptr},
}};

void register_python_policies(nb::class_<Engine>& engine) {
  engine
      .def(
          "ask",
          [](Engine& self, nb::object calls) {
            self.ask(std::make_unique<PythonPolicies>(std::move(calls)));
          },
          nb::arg("calls"))
      .def("values", &values, nb::arg("field"), nb::arg("jobs"))
      .def(
          "planned_ends",
          [](const Engine& self, In jobs, bool on_requested) {
            return gather(jobs,
                          [&](JobIndex index) { return self.planned_end(index, on_requested); });
          },
          nb::arg("jobs"), nb::arg("on_requested"));
}

}  // namespace foretime
