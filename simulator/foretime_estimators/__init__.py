"""Runtime and accuracy models: numpy only, the lowest package.

`jobs` says what may be known of a job, `accuracy` how a request becomes a scheduled time,
`estimators` what says how long a job will take, `distributions` how surely.

>>> from foretime_estimators import parse_estimator
>>> type(parse_estimator("last-two")).__name__
'LastTwo'
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
