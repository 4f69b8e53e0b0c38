"""A site's scheduler as its own commands tell of it, live or saved, made a site.

Public names: `read_folder`, `ask_slurm`, `import_site`, `ask_pbs`, `import_pbs_site`.
"""
