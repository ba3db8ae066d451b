from django.urls import path

from apiauth.api.views import GenerateToken

urlpatterns = [path("generate-token", GenerateToken.as_view(), name="generate-token")]
