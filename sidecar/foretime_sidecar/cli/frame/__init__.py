"""What every command is made with: help pages, bars, files to write, an end by Ctrl-C.

Knows no command and none of their options.

Public names: `add_commands`, `CommandModule`, `HelpAllOption`, `OptionGroup`,
`with_option_groups`, `progress_bar`, `check_outputs`, `run_cells`.
"""
