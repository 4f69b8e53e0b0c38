"""A real Blue Gene's waits beside simulated ones."""
