"""Runtime and accuracy models: numpy only, the lowest layer.

`jobs` says what may be known of a job, `accuracy.AccuracyModel` gives a scheduled
time, `registry.parse_estimator` names every estimator, `checks` is what each of them must pass.
"""
