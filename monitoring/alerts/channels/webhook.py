"""Posts the document as JSON. With a secret it is signed, so that nobody else can speak in our name.

The signature covers a time and the body (`<time>.<body>`): a message that was overheard cannot be sent again later.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import dataclass, field

import orjson

from monitoring.alerts.channels.base import Outgoing
from monitoring.alerts.channels.posting import post

SIGNATURE = "X-VictoryLine-Signature"
TIMESTAMP = "X-VictoryLine-Timestamp"


@dataclass(frozen=True)
class Webhook:
    url: str = field(repr=False)
    secret: str = field(default="", repr=False)

    def send(self, message: Outgoing) -> str:
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
