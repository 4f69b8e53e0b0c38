"""Published studies, run again: what was run, its tables and figures, and what its paper says.

A study is a folder: `command.py` has the function that is the command, beside it are its cases, its
runs, its tables, its figures, its paper's numbers as CSV and its paper's claims. `frame` has what
all studies share, and its `page` keeps a page of docs/studies at what the command wrote.
"""
