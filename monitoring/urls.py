from django.urls import path

from monitoring import views

urlpatterns = [
    path("", views.page, name="status-page"),
    path("match/<str:name>", views.match, name="status-match"),
    path("health", views.health, name="health"),
    path("health/live", views.live, name="health-live"),
    path("health/ready", views.ready, name="health-ready"),
    path("status", views.status, name="status"),
    path("metrics", views.prometheus, name="metrics"),
]
