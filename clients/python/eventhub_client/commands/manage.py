"""`eventhub streams`, `segments`, `state`, `types`: the hub's data. Plain module."""

import sys
from pathlib import Path
from typing import IO, Any

import click
import orjson

from eventhub_client.commands.api import operations
from eventhub_client.commands.exits import run
from eventhub_client.commands.filters import PairType, PathPart
from eventhub_client.commands.output import line, say, show, table
from eventhub_client.commands.settings import Settings
from eventhub_client.http import Request, refuse, stream_path
from eventhub_client.remote import HubClient
from eventhub_client.types import StateItem

_JSON = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
_ZONE = click.option(
    "--zone",
    default="",
    metavar="STRING",
    help="Operators only: the zone to act in, `default` if omitted.",
)
_STREAM = click.argument("stream", type=PathPart())


class _PolicyCommand(click.Command):
    """A command that takes a stream's policy; its help has the API's description of each field."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        [fields] = [one.body for one in operations() if one.words == ["streams", "set"]]
        with formatter.section("Policy"):
            formatter.write_dl([(field.name, field.help) for field in fields or ()])


@click.group()
def streams() -> None:
    """List, create and change streams.

    \b
    eventhub streams list
    eventhub streams create orders keyed=true retain_age_s=2592000
    eventhub streams set orders retain_bytes=1000000000 hold=null
    """


@streams.command("list")
@_JSON
@_ZONE
@click.pass_obj
def list_streams(settings: Settings, as_json: bool, zone: str) -> None:
    """Show all streams that you may see."""
    columns = ("name", "durability", "keyed", "sequence", "segment")
    _list(settings, "/v1/streams", columns, as_json=as_json, zone=zone)


@streams.command("show")
@_STREAM
@_ZONE
@click.pass_obj
def show_stream(settings: Settings, stream: str, zone: str) -> None:
    """Show one stream with its policy."""
    _call(settings, Request("GET", stream_path(stream)), zone)


@streams.command(cls=_PolicyCommand)
@_STREAM
@click.argument("policy", nargs=-1, type=PairType())
@_ZONE
@click.pass_obj
def create(settings: Settings, stream: str, policy: tuple[tuple[str, Any], ...], zone: str) -> None:
    """Create STREAM with a POLICY given as name=value."""
    _put_policy(settings, stream, policy, zone)


@streams.command("set", cls=_PolicyCommand)
@_STREAM
@click.argument("policy", nargs=-1, type=PairType(), required=True)
@_ZONE
@click.pass_obj
def set_policy(
    settings: Settings, stream: str, policy: tuple[tuple[str, Any], ...], zone: str
) -> None:
    """Change the policy of STREAM, given as name=value; null removes a limit."""
    _put_policy(settings, stream, policy, zone)


@click.group()
def segments() -> None:
    """List and download the segments of a stream.

    \b
    eventhub segments list orders
    eventhub segments download orders 0197c2f0-1111-7222-8333-444455556666 --output orders.pb
    """


@segments.command("list")
@_STREAM
@_JSON
@_ZONE
@click.pass_obj
def list_segments(settings: Settings, stream: str, as_json: bool, zone: str) -> None:
    """Show all segments of STREAM, oldest first."""
    columns = ("uuid", "first", "last", "state", "tier", "bytes", "opened_at")
    _list(settings, stream_path(stream, "segments"), columns, as_json=as_json, zone=zone)


@segments.command()
@_STREAM
@click.argument("segment", type=PathPart())
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file; without it standard output, unless that is a terminal.",
)
@click.option(
    "--parquet",
    is_flag=True,
    help="Parquet, of an archived segment; takes an operator's connection token.",
)
@click.pass_obj  # fmt: skip
def download(
    settings: Settings, stream: str, segment: str, output: Path | None, parquet: bool
) -> None:
    """Download a sealed segment in its stored form: length-delimited StoredEvent messages."""
    if output is None and sys.stdout.isatty():
        raise click.UsageError("A segment is binary: give --output, or redirect the output.")
    kind = "application/vnd.apache.parquet" if parquet else "application/x-protobuf"

    async def command() -> None:
        async with settings.hub() as hub:
            if output is None:
                await _download(hub, (stream, segment, kind), sys.stdout.buffer)
                return
            part = output.with_name(output.name + ".part")
            with part.open("wb") as file:
                size = await _download(hub, (stream, segment, kind), file)
            part.replace(output)
            say(f"{size} bytes in {output}")

    run(command())


async def _download(hub: HubClient, what: tuple[str, str, str], file: IO[bytes]) -> int:
    stream, segment, kind = what
    path = stream_path(stream, "segments", segment, "raw")
    url, size = hub.http.base_url + path, 0
    async with hub.http.session.get(url, headers={"Accept": kind}) as response:
        await refuse(response)
        async for chunk in response.content.iter_any():
            file.write(chunk)
            size += len(chunk)
    return size


@click.command()
@_STREAM
@click.argument("key", required=False, type=PathPart())
@click.option("--follow", is_flag=True, help="Then print each change, until Ctrl-C; takes a key.")
@_ZONE
@click.pass_obj
def state(settings: Settings, stream: str, key: str | None, follow: bool, zone: str) -> None:
    """Show the latest event of each key of a keyed STREAM, or of KEY alone.

    \b
    eventhub state prices
    eventhub state prices article/17
    eventhub state prices --follow
    """

    if key is not None:
        _call(settings, Request("GET", stream_path(stream, "state", key)), zone)
    elif follow:
        run(_follow_state(settings, stream))
    else:
        run(_show_state(settings, stream, zone))


async def _show_state(settings: Settings, stream: str, zone: str) -> None:
    async with settings.management(zone=zone) as http:
        items = await http.items(stream_path(stream, "state"))
    show([StateItem.of(item)._asdict() for item in items])


async def _follow_state(settings: Settings, stream: str) -> None:
    async with settings.hub() as hub:
        items, cursor = await hub.snapshot(stream)
        show([item._asdict() for item in items.values()])
        async for delivered in hub.listen(stream, start=cursor):
            click.echo(line(stream, delivered))


@click.group()
def types() -> None:
    """List and show the declared types of events.

    \b
    eventhub types list
    eventhub types show shop order.placed
    """


@types.command("list")
@_JSON
@_ZONE
@click.pass_obj
def list_types(settings: Settings, as_json: bool, zone: str) -> None:
    """Show all declared types."""
    columns = ("domain", "type", "version", "parent", "evolution")
    _list(settings, "/v1/types", columns, as_json=as_json, zone=zone)


@types.command("show")
@click.argument("domain", type=PathPart())
@click.argument("type", type=PathPart())
@click.argument("version", required=False, type=PathPart())
@_ZONE
@click.pass_obj
def show_type(settings: Settings, domain: str, type: str, version: str | None, zone: str) -> None:
    """Show a type's newest definition, or one version."""
    parts = [part for part in (domain, type, version) if part]
    path = "/v1/types/" + stream_path(*parts).removeprefix("/v1/streams/")
    _call(settings, Request("GET", path), zone)


def _list(
    settings: Settings, path: str, columns: tuple[str, ...], *, as_json: bool, zone: str
) -> None:
    """Print the items of a list, as JSON or as a table with these columns."""

    async def command() -> None:
        async with settings.management(zone=zone) as http:
            found = await http.items(path)
        if as_json:
            show(found)
        else:
            table(list(map(_row, found)), columns)

    run(command())


def _put_policy(
    settings: Settings, stream: str, policy: tuple[tuple[str, Any], ...], zone: str
) -> None:
    _call(settings, Request("PUT", stream_path(stream), orjson.dumps(dict(policy))), zone)


def _call(settings: Settings, request: Request, zone: str) -> None:
    async def command() -> None:
        async with settings.management(zone=zone) as http:
            show((await http.ask(request)).json)

    run(command())


def _row(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item's row; a stream's has its last sequence and its current segment."""
    head = item.get("segment")
    return {**item, "sequence": head["sequence"], "segment": head["uuid"]} if head else item
