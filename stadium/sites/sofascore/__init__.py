"""A site like Sofascore: football at `/sofascore`, and cricket at `/sofascorecricket`."""
