"""A cache serializer that stores bytes unchanged.

Django's default is pickle, with which a writer to Redis could run code in our processes.
"""

from __future__ import annotations


class BytesSerializer:
    """For django.core.cache.backends.redis."""

    def dumps(self, value: object) -> bytes:
        if not isinstance(value, bytes):
            raise TypeError(f"the shared cache takes bytes, not {type(value).__name__}")
        return value

    def loads(self, data: bytes) -> bytes:
        return data
