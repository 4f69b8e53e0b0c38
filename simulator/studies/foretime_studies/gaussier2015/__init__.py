"""Gaussier et al. 2015: its triples, selection, tables and figures."""
