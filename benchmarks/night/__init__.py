"""Runs the system through a simulated match night: its own scheduler steps, journal, worker flow and ingest.

Guards against policies that are correct one by one and wrong together. Only the surroundings are simulated: the
matches, the source sites with their faults, and the clock. The same seed gives the same night.
"""
