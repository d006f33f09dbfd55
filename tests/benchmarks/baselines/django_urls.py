"""The one URL of the Django baseline."""

from django.urls import path

from tests.benchmarks.baselines.django_view import emit

urlpatterns = [path("emit/<int:stream_id>", emit)]
