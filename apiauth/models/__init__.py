"""Who may read our API, with what key, and what they asked."""

from apiauth.models.access import AccessLog, UsageHour
from apiauth.models.consumer import ApiKey, Consumer, Tier

__all__ = ["AccessLog", "ApiKey", "Consumer", "Tier", "UsageHour"]
