"""The ladder for live matches that have gone silent: who is on it, what is done, and the way back.

Guards against the failure that raises no error: everything runs, and nothing arrives. `look` is the whole of it, once
every few seconds: `finding` knows who is silent, policies.ladder which rung is due, `rungs` what is done there.
"""

from scraping.recovery.silence.ladder import look

__all__ = ["look"]
