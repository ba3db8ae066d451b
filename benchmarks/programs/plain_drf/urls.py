from __future__ import annotations

from rest_framework import serializers
from rest_framework.pagination import CursorPagination
from rest_framework.routers import DefaultRouter
from rest_framework.viewsets import ModelViewSet

from benchmarks.programs.plain_drf.models import PlainMatch


class PlainMatchSerializer(serializers.ModelSerializer):
    class Meta:
        model = PlainMatch
        fields = "__all__"


class Pages(CursorPagination):
    """It counts nothing, unlike the pages with numbers."""

    page_size = 50
    ordering = "-id"


class PlainMatchViewSet(ModelViewSet):
    queryset = PlainMatch.objects.all()
    serializer_class = PlainMatchSerializer
    pagination_class = Pages


router = DefaultRouter()
router.register("matches", PlainMatchViewSet)
urlpatterns = router.urls
