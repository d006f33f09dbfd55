"""Receivers of signals of other packages: the registrations of a client end with it. Every process
loads them with the apps, so they import nothing of the services that send the signals. Django
module.
"""

from typing import Any

import psycopg
from django.dispatch import receiver

from eventhub.access.models import Client
from eventhub.accounts.signals import client_ending
from eventhub.eventlog.system import Announcement
from registrations.client_deletion import end_client


@receiver(client_ending, dispatch_uid="registrations of a client end with it")
def end_registrations(
    sender: type[Client], client: Client, connection: psycopg.Connection[Any], **more: Any
) -> list[Announcement]:
    """End the client's registrations in the transaction that deletes the client."""
    return end_client(connection, client_id=client.pk, client=client.name)
