from django.urls import path

from apiauth.api.token_view import GenerateToken
from apiauth.api.usage_view import Usage

urlpatterns = [
    path("token/generate-token", GenerateToken.as_view(), name="generate-token"),
    path("api/v1/usage", Usage.as_view(), name="usage"),
]
