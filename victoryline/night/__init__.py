"""A whole tournament night in seconds: the real policies, a made-up world, a clock that jumps.

Guards against rules that are right one by one and wrong together: hundreds of matches, hours of play, sources that
fail, workers that die. Nothing here decides anything: every decision is a call of the function that the scheduler and
the workers call, on rows of the same models, which are never saved. A seed makes the world; the same seed makes the
same night.
"""
