"""The benchmark's cells: what is run, by whom, and how much of it."""
import dataclasses

NGINX = "nginx"
KIB, MIB = 1024, 1024 * 1024


@dataclasses.dataclass(frozen=True)
class Consume:
    """A full queue is handed to a claims system."""
    name: str
    title: str
    prefetch: int
    counts: dict  # contender → claims
    size: int = KIB
    target: object = NGINX  # or the latency, in ms, of a claims system that reads the whole claim
    copies: int = 1
    known: int = 0  # ids in the store before
    rounds: float = 1
    counts_calls: bool = False
    quick: bool = False  # part of --quick


@dataclasses.dataclass(frozen=True)
class PublishMany:
    name: str
    title: str
    counts: dict
    size: int = KIB
    rounds: float = 1
    counts_calls: bool = False
    quick: bool = False  # part of --quick


@dataclasses.dataclass(frozen=True)
class OneShot:
    """One process from start to end; its time is what counts."""
    name: str
    title: str
    contenders: tuple
    rounds: float = 6
    counts_calls: bool = False
    quick: bool = False  # part of --quick


def consumers(ours, **peers):
    return {"claimq": ours, **{name.replace("_", "-"): count for name, count in peers.items()}}


def counts(cell):
    """How many claims each contender is given; another build of ours ("before") as many as this one."""
    given = dict.fromkeys(cell.contenders, 1) if isinstance(cell, OneShot) else cell.counts
    return given | {"before" + name.removeprefix("claimq"): count for name, count in given.items() if name.startswith("claimq")}


CELLS = (
    Consume("prefetch-1", "1 KB, prefetch 1", 1, consumers(20_000, pika=3_000, go=5_000, node=3_000, ceiling=20_000)),
    Consume("prefetch-5", "1 KB, prefetch 5", 5,
            consumers(20_000, pika=3_000, pika_threads=3_000, go=8_000, go_tuned=8_000, node=4_000, ceiling=20_000),
            counts_calls=True, quick=True),
    Consume("prefetch-50", "1 KB, prefetch 50", 50,
            consumers(20_000, pika=3_000, pika_threads=3_000, go=8_000, go_tuned=8_000, node=4_000, ceiling=20_000),
            counts_calls=True, quick=True),
    Consume("prefetch-500", "1 KB, prefetch 500", 500,
            consumers(20_000, pika_threads=3_000, go=8_000, go_tuned=8_000, node=4_000, ceiling=20_000)),
    Consume("many", "200,000 of 1 KB, prefetch 50", 50, consumers(200_000), rounds=0.4),
    Consume("store-1m", "1 KB, prefetch 50, 1,000,000 ids in the store", 50, consumers(20_000), known=1_000_000,
            rounds=0.6),
    Consume("body-100k", "100 KB, prefetch 5", 5, consumers(2_000, pika=800, go=2_000, node=800), 100 * KIB, target=0),
    Consume("body-5m", "5 MB, prefetch 5", 5, consumers(40, pika=20, go=40, node=20), 5 * MIB, target=0, rounds=0.6,
            quick=True),
    Consume("slow-5ms", "claims system of 5 ms, prefetch 50", 50,
            consumers(20_000, pika_threads=3_000, go=8_000, node=4_000), target=5, quick=True),
    Consume("slow-100ms", "claims system of 100 ms, prefetch 50", 50,
            consumers(3_000, pika_threads=1_000, go=2_000, node=2_000), target=100, rounds=0.6),
    Consume("slow-100ms-500", "claims system of 100 ms, prefetch 500", 500,
            consumers(20_000, pika_threads=4_000, go=8_000, node=4_000), target=100, rounds=0.6),
    Consume("two-consumers", "two consumers, prefetch 50 each", 50,
            consumers(20_000, go=8_000, go_tuned=8_000, node=4_000), copies=2, quick=True),
    PublishMany("publish-many", "publish many, 1 KB",
                {"claimq": 20_000, "claimq-ndjson": 20_000, "go": 20_000, "go-ndjson": 20_000, "pika": 2_000,
                 "pika-pipelined": 5_000}, counts_calls=True, quick=True),
    OneShot("publish-one", "publish one file", ("claimq", "amqp-publish", "go", "pika"), counts_calls=True, quick=True),
    OneShot("topology", "topology, all declared already", ("claimq", "handshake", "pika"), counts_calls=True, quick=True),
)

# What issue 4 asks for. (text, cell, kind, our figure, the other's, at least or at most, bound)
GOALS = (
    ("prefetch 5: pika's rate", "prefetch-5", "rate", "claimq", "pika", "≥", 3),
    ("prefetch 50: pika's rate", "prefetch-50", "rate", "claimq", "pika", "≥", 7),
    ("prefetch 5: Go's rate", "prefetch-5", "rate", "claimq", "go", "≥", 2.5),
    ("prefetch 50: Go's rate", "prefetch-50", "rate", "claimq", "go", "≥", 2.5),
    ("prefetch 50: the broker's ceiling", "prefetch-50", "rate", "claimq", "ceiling", "≥", 0.65),
    ("prefetch 50: Go's CPU per claim", "prefetch-50", "cpu_us", "claimq", "go", "≤", 0.25),
    ("prefetch 50: peak MiB", "prefetch-50", "rss_mib", "claimq", None, "≤", 16),
    ("200,000 claims: peak MiB", "many", "rss_mib", "claimq", None, "≤", 16),
    ("100 ms, prefetch 50: share of 500 /s", "slow-100ms", "steady", "claimq", 500, "≥", 0.95),
    ("100 ms, prefetch 500: share of 5,000 /s", "slow-100ms-500", "steady", "claimq", 5_000, "≥", 0.95),
    ("publish one: amqp-publish's time", "publish-one", "wall_ms", "claimq", "amqp-publish", "≤", 1.1),
    ("publish one: pika's speed", "publish-one", "speed", "claimq", "pika", "≥", 8),
    ("publish many: Go's rate", "publish-many", "rate", "claimq", "go", "≥", 1.3),
    ("publish many: pika's rate", "publish-many", "rate", "claimq", "pika", "≥", 10),
    ("publish many: NDJSON, files' rate", "publish-many", "rate", "claimq-ndjson", "claimq", "≥", 1),
    ("topology: the bare handshake's time", "topology", "wall_ms", "claimq", "handshake", "≤", 1.3),
)
