"""What a job asks for, read as sbatch and qsub read it.

Pure: from options and scripts to a request.

Public names: `asked_job`, `read_script`, `parse_begin`.
"""
