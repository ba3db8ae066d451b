"""Signals of apiauth. All have `actor` and `now`.

key_issued(prefix, consumer), key_rotated(prefix, new_prefix, consumer, until), key_revoked(prefix, consumer, reason),
consumer_changed(consumer, changes: new values by field, prefixes).
"""

from django.dispatch import Signal

key_issued = Signal()
key_rotated = Signal()
key_revoked = Signal()
consumer_changed = Signal()
