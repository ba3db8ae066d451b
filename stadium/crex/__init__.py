"""The Crex-like site."""
