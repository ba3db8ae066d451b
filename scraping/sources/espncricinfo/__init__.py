"""ESPNcricinfo: pages that carry all their data in one script."""

from scraping.sources.espncricinfo.adapter import EspncricinfoAdapter
