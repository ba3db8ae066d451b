"""A site in the shape of ESPNcricinfo: open pages that hold all their data in one script."""
