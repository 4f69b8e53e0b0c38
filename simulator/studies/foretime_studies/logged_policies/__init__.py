"""Logs as logged: what forward runs by a plausible policy of the site bring."""
