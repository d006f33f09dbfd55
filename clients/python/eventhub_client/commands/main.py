"""The command line `eventhub`: a client of a hub, in a shell. Plain module."""

import logging
from typing import Any

import click
from click.core import ParameterSource

from eventhub_client.commands import login
from eventhub_client.commands.api import add_commands
from eventhub_client.commands.emit import emit
from eventhub_client.commands.exits import run
from eventhub_client.commands.listen import listen, replay, traces
from eventhub_client.commands.manage import segments, state, streams, types
from eventhub_client.commands.outbox import outbox
from eventhub_client.commands.output import say
from eventhub_client.commands.relay import relay
from eventhub_client.commands.settings import Given, Settings, settings


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--url",
    envvar="EVENTHUB_URL",
    default="",
    metavar="URL",
    help="The hub. Also EVENTHUB_URL; http://127.0.0.1:8000 by default.",
)
@click.option(
    "--key",
    envvar="EVENTHUB_KEY",
    default="",
    metavar="KEY",
    help="An API key. Prefer EVENTHUB_KEY or a file: other users can read a command's options.",
)
@click.option(
    "--key-file",
    envvar="EVENTHUB_KEY_FILE",
    default="",
    metavar="FILE",
    help="A file with the key, readable only by its owner (chmod 600).",
)
@click.option(
    "--config",
    envvar="EVENTHUB_CONFIG",
    default="",
    metavar="FILE",
    help="A TOML file with `url` and `key` or `key_file` (chmod 600).",
)
@click.pass_context  # fmt: skip
def main(context: click.Context, /, **given: Any) -> None:
    """Emit events to a hub, receive them, and manage the hub.

    \b
    export EVENTHUB_URL=http://127.0.0.1:8000 EVENTHUB_KEY=...
    eventhub streams create orders
    eventhub emit orders --domain shop --type order.placed --attribute total=99
    eventhub listen orders --from oldest --format text

    \b
    Exit status:
      0    success
      1    refused by the hub, or invalid input
      2    invalid use of the command
      3    the hub is unreachable, or temporarily unable
      4    the key is refused, or lacks a grant
      5    events are no longer stored (a gap), or the cursor is of another log
      6    a consumer (program, file or receiver) failed
      7    events are pending in the outbox, not yet in the hub
      130  ended by Ctrl-C     143  ended by SIGTERM
    """
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    if context.get_parameter_source("key") is ParameterSource.COMMANDLINE:
        say("Warning: other users can read --key in the list of processes; use EVENTHUB_KEY.")
    context.obj = settings(Given(**given))


@main.command("login")
@click.argument("name")
@click.password_option(
    envvar="EVENTHUB_PASSWORD",
    confirmation_prompt=False,
    help="Better EVENTHUB_PASSWORD, or typed when asked: others see a command's options.",
)
@click.pass_obj
def sign_in(settings: Settings, name: str, password: str) -> None:
    """Sign in as the operator NAME, for commands that an API key may not use.

    The login is kept in a file that only its owner can read, until `eventhub logout`.
    """
    run(login.sign_in(settings.url, name, password))


@main.command("logout")
@click.pass_obj
def sign_out(settings: Settings) -> None:
    """Sign out."""
    run(login.sign_out(settings.url))


for command in (emit, listen, replay, traces, relay, streams, segments, state, types, outbox):
    main.add_command(command)
add_commands(main)
