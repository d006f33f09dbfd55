"""Django's routes: the management API under /v1 and the documentation; the hot doors never reach
Django.
"""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
