"""What goes into the shared cache goes as it is.

Django's own way is pickle: whoever can write to Redis could then run code in our processes.
"""

from __future__ import annotations


class BytesOnly:
    """A serializer for django.core.cache.backends.redis."""

    def dumps(self, value: object) -> bytes:
        if not isinstance(value, bytes):
            raise TypeError(f"the shared cache takes bytes, not {type(value).__name__}")
        return value

    def loads(self, data: bytes) -> bytes:
        return data
