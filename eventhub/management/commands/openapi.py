"""Prints the OpenAPI document, always the same text for the same API: the console's types are made
from it. Django module.
"""

from typing import Any

from django.core.management.base import BaseCommand

from eventhub.openapi import document_text


class Command(BaseCommand):
    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(document_text(), ending="")
