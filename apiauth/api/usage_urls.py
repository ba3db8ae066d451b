from django.urls import path

from apiauth.api.usage_views import Usage

urlpatterns = [path("usage", Usage.as_view(), name="usage")]
