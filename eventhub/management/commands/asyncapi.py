"""Prints the AsyncAPI document, always the same text for the same messages, from which the types of
the TypeScript client are generated. Django module.
"""

from typing import Any

from django.core.management.base import BaseCommand

from eventhub.web.asyncapi import document_text


class Command(BaseCommand):
    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(document_text(), ending="")
