"""Runtime and accuracy models: numpy only, the lowest layer."""
