"""One side of a comparison, as a process of its own: reads "go N" from stdin, does N tasks, prints how long it took."""
