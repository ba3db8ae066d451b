"""Where sources disagree about a match: rows that open, are counted, and close when they agree again."""
