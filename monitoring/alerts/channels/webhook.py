"""Posts the document as JSON, signed if a secret is set, so that the receiver can verify the sender.

The signature covers a time and the body (`<time>.<body>`), which prevents replay of a recorded message.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import dataclass, field

import orjson

from monitoring.alerts.channels.base import OutgoingMessage
from monitoring.alerts.channels.http_post import post

SIGNATURE = "X-VictoryLine-Signature"
TIMESTAMP = "X-VictoryLine-Timestamp"


@dataclass(frozen=True)
class Webhook:
    url: str = field(repr=False)
    secret: str = field(default="", repr=False)

    def send(self, message: OutgoingMessage) -> str:
        body = orjson.dumps(message.document)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "VictoryLine",
            "Idempotency-Key": message.id,
        }
        if self.secret:
            moment = str(int(time.time()))
            headers |= {TIMESTAMP: moment, SIGNATURE: f"v1={signature(self.secret, moment, body)}"}
        return f"answered {post(self.url, body, headers)}"


def signature(secret: str, moment: str, body: bytes) -> str:
    return hmac.new(secret.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()
