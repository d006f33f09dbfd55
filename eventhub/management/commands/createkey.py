"""`manage.py createkey CLIENT --grant emit:orders.*`: create an API key and print it once.
Django module.
"""

from argparse import ArgumentParser
from typing import Any

from eventhub.access import selectors
from eventhub.access.grants import Grant, parse_grants
from eventhub.access.names import valid_name
from eventhub.access.principal import Actor
from eventhub.accounts import keys, services
from eventhub.base import limits
from eventhub.management.command import HubCommand


class Command(HubCommand):
    help = "Create an API key for a client, and the client if it is new, and print the key once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("client")
        parser.add_argument("--zone", default="default")
        parser.add_argument("--label", default="")
        parser.add_argument(
            "--grant",
            action="append",
            default=[],
            metavar="ACTION:STREAMS",
            help="emit, listen or manage on a stream pattern, such as emit:orders.*; repeatable",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        issued, is_new = _create(options)
        if is_new:
            self.stderr.write(f"The client {options['client']} is new in zone {options['zone']}.")
        self.stdout.write(issued)


def _create(options: dict[str, Any]) -> tuple[str, bool]:
    """Create the key; return its text, and whether its client was created for it."""
    name = valid_name(options["client"], field="client")
    grants = _grants(options["grant"])
    zone = selectors.find_zone(name=valid_name(options["zone"], field="zone"))
    found = selectors.live_clients(zone_id=zone.pk).filter(name=name).first()
    client = found or services.create_client(zone_id=zone.pk, name=name)
    issued = keys.issue_key(
        actor=Actor(zone.pk, zone.name, None),
        client=client,
        grants=grants,
        terms=keys.KeyTerms(label=options["label"][: limits.NAME_CHARS_MAX]),
    )
    return issued.text, found is None


def _grants(texts: list[str]) -> tuple[Grant, ...]:
    parts = [text.partition(":") for text in texts]
    return parse_grants([{"action": action, "streams": streams} for action, _, streams in parts])
