"""The end of a match: the last reading of everything, what was found present, and the record that is kept."""
