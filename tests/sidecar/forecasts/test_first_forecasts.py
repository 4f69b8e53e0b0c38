"""How long the first forecasts still take, as those are told who ask meanwhile."""

from __future__ import annotations

from foretime_sidecar.forecasts.first_forecasts import FirstForecasts


class _Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_nothing_is_known_before_anything_is_learned() -> None:
    assert FirstForecasts(1_000, _Clock()).left_s() is None


def test_what_is_left_goes_by_what_the_rest_took() -> None:
    clock = _Clock()
    first = FirstForecasts(10_000, clock)
    clock.now_s += 10
    first.learn(0.5)
    assert first.left_s() == 20  # as long again, and 9 s for the queue
    clock.now_s += 9.5
    assert first.left_s() == 10
    first.learn(1.0)
    assert first.left_s() == 10
    clock.now_s += 100
    assert first.left_s() == 10


def test_nothing_stored_is_learned_at_once() -> None:
    first = FirstForecasts(10, _Clock())
    first.learn(1.0)
    assert first.left_s() == 10
