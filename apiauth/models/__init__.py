"""Tables of API access: consumers, their keys, the access log and hourly usage."""

from apiauth.models.access import AccessLog, UsageHour
from apiauth.models.consumer import ApiKey, Consumer, Tier

__all__ = ["AccessLog", "ApiKey", "Consumer", "Tier", "UsageHour"]
