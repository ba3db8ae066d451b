"""Football: scripts of matches, how they are generated, and the state they fold into."""
