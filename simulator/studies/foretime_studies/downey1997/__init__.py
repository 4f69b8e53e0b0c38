"""Downey 1997: heads of queues, whole queues, choices."""
