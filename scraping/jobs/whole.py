"""The last look before a job's match is committed: all of it is there, or none of it is written."""

from __future__ import annotations

from scraping.errors import PayloadRejected, Transient
from scraping.models import MatchRef
from scraping.payloads import Payload


def refuse_half(ref_id: int, payload: Payload) -> None:
    """Raise, inside the transaction that writes the payload, where it was not believed or its events have holes."""
    ref = MatchRef.objects.only("captured_at", "events_through", "events_seen").get(pk=ref_id)
    if ref.captured_at != payload.captured_at:
        raise Transient("the score went back and was not confirmed: nothing was written", url=ref.url)
    if ref.has_gap:
        raise PayloadRejected(
            f"the source's list of events has a hole after number {ref.events_through} of {ref.events_seen}: "
            "nothing was written",
            url=ref.url,
        )
