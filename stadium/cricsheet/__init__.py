"""Converts recorded matches in the Cricsheet format into scripts that the sites play."""
