"""Receivers of signals of other packages: the registrations of a client end with it. Django
module.
"""

from typing import Any

from django.dispatch import receiver

from eventhub.access.models import Client
from eventhub.accounts.services import client_ending
from eventhub.api.announcements import raw_connection
from eventhub.eventlog.system import Announcement
from registrations.client_deletion import end_client


@receiver(client_ending, dispatch_uid="registrations of a client end with it")
def end_registrations(sender: type[Client], client: Client, **more: Any) -> list[Announcement]:
    """End the client's registrations in the transaction that deletes the client."""
    return end_client(raw_connection(), client_id=client.pk, client=client.name)
