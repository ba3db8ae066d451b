"""Replays recorded or logged matches through the system into a scratch database and compares the outcome."""
