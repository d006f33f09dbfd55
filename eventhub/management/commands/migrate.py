"""`manage.py migrate`: Django's, but a database whose tables another version of the hub made, or
something else, is refused before anything is changed."""

import os
from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections

from eventhub import schema


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        ours = schema.digests()
        with connections[options["database"]].cursor() as cursor:
            found = schema.read(cursor, ours)
            try:
                schema.require_same(found, ours)
                schema.require_own(cursor, found)
            except schema.OtherSchema as error:
                raise CommandError(str(error), returncode=os.EX_CONFIG) from error
            if not (options["plan"] or options["check_unapplied"]):
                schema.keep(cursor, found, ours)
        super().handle(*args, **options)
