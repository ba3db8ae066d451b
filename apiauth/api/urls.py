from django.urls import path

from apiauth.api.token_view import GenerateToken
from apiauth.api.usage_view import UsageView

urlpatterns = [
    path("token/generate-token", GenerateToken.as_view(), name="generate-token"),
    path("api/v1/usage", UsageView.as_view(), name="usage"),
]
