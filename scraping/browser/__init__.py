"""The browser of a worker: one Playwright and one Chromium, driven from the loop thread.

Imports no Django. Every await has a timeout.
"""
