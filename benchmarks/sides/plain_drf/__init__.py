"""The baseline of the bench `api`: the same matches as anybody would serve them first, with Django REST framework.

ModelViewSet, ModelSerializer, simplejwt, UserRateThrottle over Redis. No access log, no freshness, no ETag, no
references of a match at its sources: less work than ours does.
"""
