"""`manage.py createoperator NAME --role viewer`: create an operator and print its set-up token
once. Django module.
"""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings

from eventhub.access.roles import ADMIN, ROLES
from eventhub.accounts import operators
from eventhub.accounts.operator_serializers import OPERATOR_NAME
from eventhub.base.errors import InvalidField
from eventhub.management.command import HubCommand, secret_key


class Command(HubCommand):
    help = (
        "Create an operator, and print a token with which it sets its password in the console,"
        " within three days."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--role", choices=ROLES, default=ADMIN)

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["name"]
        if not OPERATOR_NAME.fullmatch(name):
            raise InvalidField("A name is letters, digits and `.`, `@`, `+`, `-`, `_`.")
        settings.SECRET_KEY = secret_key()  # the processes of the hub check the token
        self.say(operators.create_operator(name=name, role=options["role"]).setup_token)
