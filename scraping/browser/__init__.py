"""The browser: one Playwright and one Chromium a worker, on the loop thread.

No Django here, and no await without an end.
"""
