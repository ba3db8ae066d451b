"""Scoreboard: cricket pages without JSON. A page that updates itself stays open and is read by selectors."""
