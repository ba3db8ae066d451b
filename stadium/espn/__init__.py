"""An API like ESPN's: cricket by match, football by day. It has no pages, and nothing of it is gated."""
