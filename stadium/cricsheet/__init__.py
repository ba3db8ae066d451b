"""Recorded matches in the Cricsheet format, turned into scripts that the sites can play."""
