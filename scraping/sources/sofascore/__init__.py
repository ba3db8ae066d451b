"""Sofascore: football and cricket. One response has the whole match, another all its events."""
