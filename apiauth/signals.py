"""What apiauth tells the rest of the system. Arguments: key_issued(prefix, consumer), key_revoked(prefix)."""

from __future__ import annotations

from django.dispatch import Signal

key_issued = Signal()
key_revoked = Signal()
