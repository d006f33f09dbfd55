"""The command line `eventhub`: a client of a hub, in a shell. Plain module."""

import logging
from typing import Any

import click
from click.core import ParameterSource

from eventhub_client.commands import login
from eventhub_client.commands.api import add_commands
from eventhub_client.commands.emit import emit
from eventhub_client.commands.exits import run
from eventhub_client.commands.listen import listen, replay
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
    help="The hub. Also EVENTHUB_URL; http://127.0.0.1:8000 if nothing says.",
)
@click.option(
    "--key",
    envvar="EVENTHUB_KEY",
    default="",
    metavar="KEY",
    help="An API key. Better EVENTHUB_KEY or a file: others see a command's options.",
)
@click.option(
    "--key-file",
    envvar="EVENTHUB_KEY_FILE",
    default="",
    metavar="FILE",
    help="A file with the key, for its owner alone (chmod 600).",
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
      0    done
      1    refused by the hub, or wrong input
      2    wrong use of the command
      3    the hub cannot be reached, or cannot do it now
      4    the key is refused, or may not do this
      5    events are gone (a gap), or the log behind the cursor is another one
      6    a program, file or receiver that was to get events failed
      7    events wait in the outbox, and are not in the hub yet
      130  ended by Ctrl-C     143  ended by SIGTERM
    """
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    if context.get_parameter_source("key") is ParameterSource.COMMANDLINE:
        say("Warning: --key can be read by others in the list of processes; use EVENTHUB_KEY.")
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


for command in (emit, listen, replay, relay, streams, segments, state, types, outbox):
    main.add_command(command)
add_commands(main)
