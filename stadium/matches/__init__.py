"""The matches that the sites show: clock, programme, teams, and the version of a match that each site shows."""
