"""Are two matches, found at two sources, one and the same? Pure: facts in, a score with its reasons out."""
