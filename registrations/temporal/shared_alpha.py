"""An alpha memory with the registrations that use it, and which of them an event in it concerns.
Plain module.

An event that enters an alpha memory is nothing to a registration that has no event to join it with:
the first two events of a registration are joined if both of their memories have entries, and later
ones if combinations wait for them. The others are not called, however many share the memory (the
literature on Rete calls that unlinking).
"""

from collections import Counter
from collections.abc import Collection

from registrations.temporal.compiled_tests import Check
from registrations.temporal.entries import AlphaMemory
from registrations.temporal.joins import PatternJoins

Users = dict[int, PatternJoins]  # by number


class SharedAlpha:
    """An alpha memory. `leaf`: the number of its filter; `check`: the test of its entries' values.
    Concurrency: none.
    """

    def __init__(self, leaf: int, memory: AlphaMemory, check: Check | None) -> None:
        self.leaf = leaf
        self.memory = memory
        self.check = check
        self.users: Users = {}
        self._lengths: Counter[int] = Counter()  # of the users' memories
        self._alone: Users = {}  # those that are no pattern of several events
        self._partners: dict[AlphaMemory, Users] = {}  # by the memory of the other one of the two

    def use(self, joins: PatternJoins) -> None:
        """Add a registration, once for all of its events that are here."""
        if joins.number in self.users:
            return
        self.users[joins.number] = joins
        self._lengths[joins.memory] += 1
        self.memory.memory = max(self.memory.memory, joins.memory)
        for partner in joins.partners_of(self.memory):
            self._users_with(partner)[joins.number] = joins

    def release(self, joins: PatternJoins) -> None:
        """Remove a registration; do nothing if it is not here."""
        if self.users.pop(joins.number, None) is None:
            return
        self._lengths[joins.memory] -= 1
        if not self._lengths[joins.memory]:
            del self._lengths[joins.memory]
        self.memory.memory = max(self._lengths, default=0)
        for partner in joins.partners_of(self.memory):
            users = self._users_with(partner)
            users.pop(joins.number, None)
            if partner is not None and not users:
                del self._partners[partner]

    def concerned(self, filled: Collection[AlphaMemory]) -> Users:
        """Return the registrations that the latest entry may be joined in. `filled`: the memories
        of the network that have entries.
        """
        due = dict(self._alone)
        partners = self._partners
        if len(partners) <= len(filled):
            for partner, users in partners.items():
                if partner.entries:
                    due |= users
        else:
            for memory in filled:
                due |= partners.get(memory, _NOBODY)
        for number, _ in self.memory.waiting:
            due[number] = self.users[number]
        return due

    def _users_with(self, partner: AlphaMemory | None) -> Users:
        return self._alone if partner is None else self._partners.setdefault(partner, {})


_NOBODY: Users = {}
