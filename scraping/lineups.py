"""Line-ups into rows: what was known before the start stays apart from what was known after it."""
