"""A site like ESPNcricinfo: open pages with all of their data in one script element."""
