"""Online regression over a job's features (Gaussier 2015): its losses, its learning, its estimator.

It knows of no other estimator.

Public names: `LearnedRuntime`, `OnlineRegression`, `PredictionLoss`, `RuntimeFeatures`.
"""
