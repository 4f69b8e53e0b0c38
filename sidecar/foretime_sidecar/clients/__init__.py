"""Scheduler clients: a contract, pure parsers of what schedulers print, and thin runners."""
