"""Beyond Gaussier 2015: what closes the gap, and what that costs in long waits."""
