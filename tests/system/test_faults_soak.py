"""The consumer over many claims and many losses of its connection, and how it ends when nothing around it answers any more."""
import os
import threading

import pytest

from support.claims import REJECTED, Answer
from support.proxy import Proxy
from support.store import locked, processed
from support.waiting import wait_for

CLAIMS, LOSSES, PREFETCH = 10_000, 300, 20


def descriptors(running):
    return len(os.listdir(f"/proc/{running.pid}/fd"))


def threads(running):
    return len(os.listdir(f"/proc/{running.pid}/task"))


def test_10000_dead_letters_and_300_losses_leave_memory_and_descriptors_flat(lab):
    """All are rejected: a call whose connection is lost before it is settled may be made once more, and nothing else."""
    proxy = lab.also(Proxy(lab.mq.broker.port))
    lab.claims.answer = lambda request: REJECTED
    ids = [f"g{n}" for n in range(CLAIMS)]
    sanitizer = os.environ.get("ASAN_OPTIONS", "")
    env = {"EAI_AMQP_URL": lab.mq.url("retry_delay=0.1", port=proxy.port), "ASAN_OPTIONS": f"{sanitizer}:quarantine_size_mb=2".lstrip(":")}
    running = lab.consumer("--prefetch", PREFETCH, env=env)
    wait_for(lambda: lab.mq.consumers() == 1, what="it consumes")
    idle = descriptors(running), threads(running)
    lab.mq.put(*ids, body=b"x" * 1000)
    for loss in range(1, LOSSES + 1):
        wait_for(lambda: lab.claims.calls() >= loss * CLAIMS // (LOSSES + 1) and proxy.open() > 0, what=f"it is connected before loss {loss}")
        proxy.cut()
        if loss == LOSSES // 3:
            early = running.resident_bytes()
    wait_for(lambda: lab.mq.depth() == 0 and lab.mq.consumers() == 1, 120, "all are in claim.dead")
    grown = running.resident_bytes() - early
    wait_for(lambda: (descriptors(running), threads(running)) == idle, 20, f"it has as many descriptors and threads as at first, {idle}")
    assert running.stop().ended_with(0).err.count("connection to the broker lost") > LOSSES // 2, "the others met it while it connected"
    calls = lab.claims.calls_by_id()
    assert sorted(calls) == sorted(ids) and sum(calls.values()) <= CLAIMS + LOSSES * PREFETCH
    assert grown < 8_000_000, f"grew by {grown} bytes in the last two thirds"
    lab.mq.ends_with(dead=ids)


@pytest.mark.parametrize("store", ["free", "locked"])
def test_the_end_is_bounded_with_a_hung_claims_system_and_a_dead_broker(lab, store):
    """And with a store that somebody locks, too."""
    proxy = lab.also(Proxy(lab.mq.broker.port))
    gate = threading.Event()
    lab.claims.answers = {"good": [Answer(201, gate=gate)], "bad": [Answer(raw=b"", then="hang")]}
    lab.mq.put("warm")
    running = lab.consumer("--max-seconds", "6", "--timeout", "3", env={"EAI_AMQP_URL": lab.mq.url(port=proxy.port)})
    wait_for(lambda: lab.mq.depth() == 0, what="a call was quick, so that two may be in flight")
    lab.mq.put("good", "bad")
    wait_for(lambda: lab.claims.in_flight == 1 and lab.claims.calls("bad") == 1, what="both calls are made")
    proxy.pause("up", "down")
    lock = locked(lab.store)
    if store == "locked":
        lock.__enter__()
    gate.set()
    done = running.wait(40)
    assert done.status in ([0, 69] if store == "free" else [74]), done
    assert done.seconds < 6 + 3 + 5 + 1
    if store == "locked":
        lock.__exit__()
    proxy.cut()
    assert processed(lab.store) == (["good", "warm"] if store == "free" else ["warm"])
    del lab.claims.answers["bad"]
    lab.consume()
    assert lab.claims.calls_by_id() == {"warm": 1, "good": 1 if store == "free" else 2, "bad": 2}
    lab.mq.ends_with()
