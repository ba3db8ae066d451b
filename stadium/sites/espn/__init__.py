"""An API like ESPN's, without pages or access control: cricket by match, football by day."""
