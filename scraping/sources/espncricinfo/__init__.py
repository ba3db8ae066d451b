"""ESPNcricinfo: pages that carry all their data in one script."""
