"""The services of a process that its listeners use. Plain module."""

from typing import NamedTuple

from delivery.listening.catchup import CatchUpScheduler
from delivery.listening.fan_out import FanOuts
from delivery.listening.listener_recorder import ListenerRecorder
from delivery.listening.version_loader import VersionLoader
from eventhub.access.authorizer import Authorizer
from eventhub.base.clock import Clock
from eventhub.eventlog.log import Log
from eventhub.types.registry import TypeRegistry
from registrations.feed import Feed
from registrations.interest.live import Closures


class ListenerServices(NamedTuple):
    """One of each per process."""

    log: Log
    authorizer: Authorizer
    feed: Feed
    clock: Clock
    types: TypeRegistry
    closures: Closures
    recorder: ListenerRecorder
    catch_up: CatchUpScheduler
    versions: VersionLoader
    fan_outs: FanOuts
