"""Cricket: match scripts, their generator, and the state after any number of events."""
