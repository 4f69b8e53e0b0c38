"""Published studies, run again: what was run, its tables and figures, and what its paper says.

`study_runs` runs a study's cases, `study_tables` and `study_plots` write what they found, and
`study_page` keeps a page of docs/studies at what the command wrote. A study is a module that
declares its cases (`tang2010`), with its tables, its figures and its paper's claims beside it.
"""
