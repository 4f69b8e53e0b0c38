"""What keeps jobs from harm: audit, breaker, starvation guard, mended limits, watchdog.

Knows no forecast.

Public names: `Oversight`, `DecisionLog`, `watch`, `planning_switch`, `changes_of`, `beat`.
"""
