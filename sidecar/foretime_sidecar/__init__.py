"""The daemon that learns from finished jobs, publishes the table and answers questions."""
