"""What commands print: tables, and answers in words; those of `wait` are in `answers`.

Asks no daemon and reads no option: it is given what there is to say.

Public names: `print_whole`, `print_uncut`, `status_lines`, `explanation`.
"""
