"""Files as people hand them over: compressed text, TOML, durations in words.

Knows nothing of jobs.

Public names: `read_text`, `write_text`, `write_whole`, `kind_of`, `parse_toml`, `parse_duration`,
`shipped_file`.
"""
