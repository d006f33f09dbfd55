"""Two texts with the same XXH64, found as an attacker would: a lane of the hash takes its words one
by one, and the next word can lead it back to any state.
"""

from random import Random
from struct import pack, unpack

from registrations.match_index.format.names import SEED

P1, P2 = 11400714785074694791, 14029467366897019727
BITS = (1 << 64) - 1
LANE_BYTES = 32  # four words, of which the first goes into the first lane
ASCII = "abcdefghijklmnopqrstuvwxyz"


def colliding(head: bytes) -> tuple[bytes, bytes]:
    """Return two ASCII tails after a head, equal except for one word in each of two stripes."""
    random = Random(1)
    begin = b"".join(bytes([random.choice(b"abc")]) for _ in range(-len(head) % LANE_BYTES))
    lane = (SEED + P1 + P2) & BITS
    for at in range(0, len(head + begin), LANE_BYTES):
        lane = _round(lane, unpack("<Q", (head + begin)[at : at + 8])[0])
    middle = b"m" * (LANE_BYTES - 8)
    while True:
        one, other = _word(random), _word(random)
        follows = _word(random)
        target = unpack("<Q", follows)[0]
        first, second = (_round(lane, unpack("<Q", word)[0]) for word in (one, other))
        # lane + word * P2 must be equal in both
        difference = (first - second) * pow(P2, -1, 1 << 64)
        answer = pack("<Q", (target + difference) & BITS)
        if one != other and all(byte < 128 for byte in answer):
            return (
                begin + one + middle + follows + middle,
                begin + other + middle + answer + middle,
            )


def _word(random: Random) -> bytes:
    return "".join(random.choice(ASCII) for _ in range(8)).encode()


def _round(lane: int, word: int) -> int:
    lane = (lane + word * P2) & BITS
    lane = (lane << 31 | lane >> 33) & BITS
    return lane * P1 & BITS
