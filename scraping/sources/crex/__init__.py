"""Crex: cricket. Its API has keys for names and strings for scores; its pages embed copies of the API responses."""
