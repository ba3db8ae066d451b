"""The Sofascore-like site."""
