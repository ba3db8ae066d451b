from django.urls import path

from scraping.api.submission_views import SubmissionView, SubmitView

urlpatterns = [
    path("cricket-data", SubmitView.as_view(), name="submit"),
    path("cricket-data/submissions/<str:submission_id>", SubmissionView.as_view(), name="submission"),
]
