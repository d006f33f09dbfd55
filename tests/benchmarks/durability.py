"""`durability`: the emit route for streams of each durability, against a sync one."""

from tests.benchmarks import emit
from tests.benchmarks.shape import QUICK, Case, Pace
from tests.benchmarks.world import World


def cases(world: World, pace: Pace) -> list[Case]:
    def target(durability: str) -> emit.Find:
        return lambda: world.emit_target(f"kept.{durability}")

    rates = [
        Case(
            name=f"emit_64_{durability}",
            unit="requests/s",
            product=emit.posted(world, pace, target(durability), 64),
            baselines={"sync": emit.posted(world, pace, target("sync"), 64)},
        )
        for durability in ("async", "transient")
    ]
    latencies = [
        Case(
            name=f"emit_1_{durability}",
            unit="ms",
            product=emit.latency(world, pace, target(durability)),
            baselines={"sync": emit.latency(world, pace, target("sync"))},
            lower_is_better=True,
            order=() if pace == QUICK else (("value", "sync"),),
        )
        for durability in ("async", "transient")
    ]
    return [*rates, *latencies]
