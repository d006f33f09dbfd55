"""`eventhub streams`, `segments`, `state`, `types`: the hub's data. Plain module."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, Any

import click

from eventhub_client.commands.exits import run
from eventhub_client.commands.filters import PairType
from eventhub_client.commands.output import line, say, show, table
from eventhub_client.commands.settings import Settings
from eventhub_client.http import refuse, stream_path
from eventhub_client.remote import HubClient

_JSON = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")


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
@click.pass_obj
def list_streams(settings: Settings, as_json: bool) -> None:
    """Show all streams that the key may see."""
    columns = ("name", "durability", "keyed", "sequence", "segment")
    _list(settings, as_json, lambda hub: hub.streams(), columns)


@streams.command("show")
@click.argument("stream")
@click.pass_obj
def show_stream(settings: Settings, stream: str) -> None:
    """Show one stream with its policy."""
    _call(settings, "GET", stream_path(stream))


@streams.command()
@click.argument("stream")
@click.argument("policy", nargs=-1, type=PairType())
@click.pass_obj
def create(settings: Settings, stream: str, policy: tuple[tuple[str, Any], ...]) -> None:
    """Create STREAM with a POLICY given as name=value."""
    _call(settings, "PUT", stream_path(stream), dict(policy))


@streams.command("set")
@click.argument("stream")
@click.argument("policy", nargs=-1, type=PairType(), required=True)
@click.pass_obj
def set_policy(settings: Settings, stream: str, policy: tuple[tuple[str, Any], ...]) -> None:
    """Change the policy of STREAM, given as name=value; null removes a limit."""
    _call(settings, "PUT", stream_path(stream), dict(policy))


@click.group()
def segments() -> None:
    """List and download the segments of a stream.

    \b
    eventhub segments list orders
    eventhub segments download orders 0197c2f0-1111-7222-8333-444455556666 --output orders.pb
    """


@segments.command("list")
@click.argument("stream")
@_JSON
@click.pass_obj
def list_segments(settings: Settings, stream: str, as_json: bool) -> None:
    """Show all segments of STREAM, oldest first."""
    columns = ("uuid", "first", "last", "state", "tier", "bytes", "opened_at")
    _list(settings, as_json, lambda hub: hub.segments(stream), columns)


@segments.command()
@click.argument("stream")
@click.argument("segment")
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
@click.argument("stream")
@click.argument("key", required=False)
@click.option("--follow", is_flag=True, help="Then print each change, until Ctrl-C.")
@click.pass_obj
def state(settings: Settings, stream: str, key: str | None, follow: bool) -> None:
    """Show the latest event of each key of a keyed STREAM, or of KEY alone.

    \b
    eventhub state prices
    eventhub state prices article/17
    eventhub state prices --follow
    """

    async def command() -> None:
        async with settings.hub() as hub:
            if key is not None:
                show(await hub.call("GET", stream_path(stream, "state", key)))
                return
            items, cursor = await hub.snapshot(stream)
            show([item._asdict() for item in items.values()])
            if follow:
                async for delivered in hub.listen(stream, start=cursor):
                    click.echo(line(stream, delivered))

    run(command())


@click.group()
def types() -> None:
    """List and show the declared types of events.

    \b
    eventhub types list
    eventhub types show shop order.placed
    """


@types.command("list")
@_JSON
@click.pass_obj
def list_types(settings: Settings, as_json: bool) -> None:
    """Show all declared types."""
    columns = ("domain", "type", "version", "parent", "evolution")
    _list(settings, as_json, lambda hub: hub.types(), columns)


@types.command("show")
@click.argument("domain")
@click.argument("type")
@click.argument("version", required=False)
@click.pass_obj
def show_type(settings: Settings, domain: str, type: str, version: str | None) -> None:
    """Show a type's newest definition, or one version."""
    parts = [part for part in (domain, type, version) if part]
    _call(settings, "GET", "/v1/types/" + stream_path(*parts).removeprefix("/v1/streams/"))


def _list(
    settings: Settings,
    as_json: bool,
    read: Callable[[HubClient], Awaitable[list[dict[str, Any]]]],
    columns: tuple[str, ...],
) -> None:
    """Print what `read` returns, as JSON or as a table with these columns."""

    async def command() -> None:
        async with settings.hub() as hub:
            found = await read(hub)
        if as_json:
            show(found)
        else:
            table(list(map(_row, found)), columns)

    run(command())


def _call(settings: Settings, method: str, path: str, body: Any = None) -> None:
    async def command() -> None:
        async with settings.hub() as hub:
            show(await hub.call(method, path, body))

    run(command())


def _row(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item's row; a stream's has its last sequence and its current segment."""
    head = item.get("segment")
    return {**item, "sequence": head["sequence"], "segment": head["uuid"]} if head else item
