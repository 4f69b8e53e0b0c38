"""Beyond Streit 2002: switching that pays."""
