"""Fixtures of two sources for the bench `pairing`: world teams, their variants, and traps."""
