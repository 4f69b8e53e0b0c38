#include "bindings/availability_profile_bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "core/availability_profile.hpp"

namespace nb = nanobind;

namespace foretime {

void register_availability_profile(nb::module_& m) {
  using Profile = AvailabilityProfile;
  nb::class_<Profile>(m, "AvailabilityProfile")
      .def(nb::init<Processors, Seconds>(), nb::arg("capacity"), nb::arg("now"))
      .def(
          "reserve",
          [](Profile& profile, Seconds start, std::optional<Seconds> duration,
             Processors processors) {
            return profile.reserve(start, duration.value_or(kNever), processors);
          },
          nb::arg("start"), nb::arg("duration").none(), nb::arg("processors"))
      .def(
          "release",
          [](Profile& profile, Seconds start, std::optional<Seconds> duration,
             Processors processors) {
            return profile.release(start, duration.value_or(kNever), processors);
          },
          nb::arg("start"), nb::arg("duration").none(), nb::arg("processors"))
      .def(
          "earliest_fit",
          [](const Profile& profile, Seconds from, std::optional<Seconds> duration,
             Processors processors) -> std::optional<Seconds> {
            const Seconds fit = profile.earliest_fit(from, duration.value_or(kNever), processors);
            return fit == kNever ? std::nullopt : std::optional<Seconds>(fit);
          },
          nb::arg("from_time"), nb::arg("duration").none(), nb::arg("processors"))
      .def("free_at", &Profile::free_at, nb::arg("time"))
      .def(
          "min_free",
          [](const Profile& profile, Seconds start, std::optional<Seconds> end) {
            return profile.min_free(start, end.value_or(kNever));
          },
          nb::arg("start"), nb::arg("end").none())
      .def("advance", &Profile::advance, nb::arg("now"))
      .def("copy", [](const Profile& profile) { return Profile(profile); })
      .def("steps", &Profile::steps)
      .def_prop_ro("now", &Profile::now)
      .def_prop_ro("capacity", &Profile::capacity)
      .def("__len__", &Profile::size);
}

}  // namespace foretime
