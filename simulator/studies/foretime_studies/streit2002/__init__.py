"""Streit 2002: dynP on its job sets."""
