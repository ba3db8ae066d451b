"""Units of memory and disk space. (Traffic is billed in millions of bytes: `scraping.stats.traffic`.)"""

MEGABYTE = 1024 * 1024
