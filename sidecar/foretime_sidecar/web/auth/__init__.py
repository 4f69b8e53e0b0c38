"""Who asks, by what can be believed, and how often they may.

Knows no answers.

Public names: `Caller`, `caller_of`, `Identity`, `ApiError`, `RateLimits`, `ChangeTokens`.
"""
