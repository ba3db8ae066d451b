"""The baseline of the bench `api`: the same matches in a usual first version with Django REST framework.

ModelViewSet, ModelSerializer, simplejwt, UserRateThrottle over Redis. No access log, no freshness, no ETag, no
references of a match at its sources.
"""
