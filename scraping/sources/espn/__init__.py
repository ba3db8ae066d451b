"""ESPN's open API: cricket by match (`espn`), football by day (`espnsoccer`)."""
