"""Runtime estimators: what is said of a job at its submission, from those that have ended.

Each asks nothing but what was told before; `testing` holds what each must pass, also those of
others.

Public names: `parse_estimator`, `ESTIMATORS`, `RuntimeEstimator`, `StartObserver`, `learn_history`.
"""
