"""The shape of a listen on record."""

from typing import Any

from rest_framework import serializers

from delivery.listens.selectors import ListenRow, micros
from eventhub.event.json_codec import time_text

DOORS = ("websocket", "sse", "poll", "lines", "local", "many")


class PlaceSerializer(serializers.Serializer):
    segment = serializers.UUIDField(allow_null=True)
    sequence = serializers.IntegerField()


class ListenSerializer(serializers.Serializer):
    id = serializers.CharField()
    stream = serializers.CharField()
    node = serializers.CharField(
        help_text="The web process that told it, named anew at every start."
    )
    door = serializers.ChoiceField(
        choices=DOORS,
        help_text="`poll` and `lines`: requests that followed one another. `many`: the client began"
        " more listens within an hour than are kept; from here on they are not on record.",
    )
    listen = serializers.CharField(help_text="Its name on a websocket.")
    start = serializers.CharField(
        help_text="What it began from: `cursor`, `now`, `oldest`, `boot`, `time`; `gap` or `state`"
        " behind what was missing; `continued` after a day."
    )
    after = PlaceSerializer(help_text="It is told what comes after this event.")
    mask = serializers.CharField()
    filter = serializers.CharField(
        allow_null=True,
        help_text="What it lets through, in predicate form; null: registrations, or too long.",
    )
    registrations = serializers.ListField(child=serializers.IntegerField())
    through = PlaceSerializer(help_text="It was told all of that up to this event.")
    events = serializers.IntegerField(help_text="So many.")
    began_at = serializers.DateTimeField()
    seen_at = serializers.DateTimeField(help_text="As of then.")
    ended_at = serializers.DateTimeField(
        allow_null=True, help_text="Null: it goes on, or its process was killed."
    )
    why = serializers.CharField(
        allow_null=True,
        help_text="`stopped`, `left`, `slow_reader`, `gap`, `continued`, or the code of an error.",
    )


def listen_json(row: ListenRow) -> dict[str, Any]:
    return {
        "id": str(row.place),
        "stream": row.stream,
        "node": row.node,
        "door": row.door,
        "listen": row.name,
        "start": row.start,
        "after": {"segment": row.segment, "sequence": row.sequence},
        "mask": str(row.mask),
        "filter": row.filter,
        "registrations": row.registrations,
        "through": {"segment": row.told_segment, "sequence": row.told_sequence},
        "events": row.told,
        "began_at": time_text(micros(row.at)),
        "seen_at": time_text(micros(row.seen_at)),
        "ended_at": None if row.ended_at is None else time_text(micros(row.ended_at)),
        "why": row.why,
    }
