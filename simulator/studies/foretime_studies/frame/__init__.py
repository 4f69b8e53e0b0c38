"""What all studies share: runs, tables, figures, reports and what is kept of them.

Knows no paper.
"""
