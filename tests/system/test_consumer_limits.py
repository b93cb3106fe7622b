"""How much at once and for how long: prefetch, concurrency, timeout, retry delay, processor and memory use."""
import os
import signal
import threading
import time

import pytest

from support.claims import ACCEPTED, BUSY, REJECTED, Answer, Claims
from support.proxy import Proxy
from support.waiting import holds_for, wait_for


def most_unacked_until_empty(lab, bound=90):
    most = 0
    end = time.monotonic() + bound
    while lab.mq.depth() > 0:
        most = max(most, lab.mq.unacked())
        assert time.monotonic() < end, "claim.in did not become empty"
    return most


# --- prefetch

@pytest.mark.parametrize("options, limit", [((), 5), (("--prefetch", "5"), 5), (("--prefetch", "2"), 2), (("--prefetch", "1"), 1)],
                         ids=["default", "5", "2", "1"])
def test_with_a_slow_claims_system_the_most_unacked_is_the_prefetch(lab, options, limit):
    lab.claims.answer = lambda request: Answer(201, delay=0.2)
    lab.mq.put(*[f"g{n}" for n in range(12)])
    running = lab.consumer(*options)
    most = most_unacked_until_empty(lab)
    done = running.stop().ended_with(0)
    assert most == limit
    assert lab.claims.most_in_flight <= limit
    assert done.summary["accepted"] == 12 == lab.claims.calls()
    lab.mq.ends_with()


def test_prefetch_50_holds_50(lab):
    gate = threading.Event()
    lab.claims.answer = lambda request: Answer(201, gate=gate)
    lab.mq.put(*[f"g{n}" for n in range(80)])
    running = lab.consumer("--prefetch", "50")
    wait_for(lambda: lab.mq.unacked() == 50, what="50 are unacked")
    holds_for(0.5, lambda: lab.mq.unacked() == 50, "and no more")
    gate.set()
    wait_for(lambda: lab.mq.depth() == 0, what="all are acked")
    running.stop().ended_with(0)
    lab.mq.ends_with()


# --- concurrency

def test_concurrency_starts_at_one(lab):
    gate = threading.Event()
    lab.claims.answer = lambda request: Answer(201, gate=gate)
    lab.mq.put(*[f"g{n}" for n in range(8)])
    running = lab.consumer()
    wait_for(lambda: lab.mq.unacked() == 5 and lab.claims.calls() == 1, what="5 are unacked, one is in flight")
    holds_for(0.7, lambda: lab.claims.calls() == 1, "one call until its answer came")
    gate.set()
    wait_for(lambda: lab.mq.depth() == 0, what="all are acked")
    running.stop().ended_with(0)
    lab.mq.ends_with()


@pytest.mark.parametrize("options, limit", [(("--prefetch", "5"), 5), (("--prefetch", "5", "--concurrency", "2"), 2), (("--prefetch", "1"), 1),
                                            (("--prefetch", "8", "--concurrency", "1"), 1)], ids=lambda value: str(value))
def test_concurrency_grows_to_its_bound_and_not_beyond(lab, options, limit):
    lab.claims.answer = lambda request: Answer(201, delay=0.15)
    lab.mq.put(*[f"g{n}" for n in range(25)])
    lab.consume(*options)
    assert lab.claims.most_in_flight == limit
    assert lab.claims.calls() == 25
    lab.mq.ends_with()


def test_concurrency_grows_by_one_with_each_quick_answer(lab):
    """n answers came: at most n + 1 calls are in flight."""
    gates = [threading.Event() for _ in range(12)]
    order = iter(gates)
    lab.claims.answer = lambda request: Answer(201, gate=next(order))
    lab.mq.put(*[f"g{n}" for n in range(12)])
    running = lab.consumer("--prefetch", "12", "--timeout", "60")
    for answered in range(4):
        expected = answered + 1
        wait_for(lambda: lab.claims.in_flight == expected, what=f"{expected} in flight after {answered} answers")
        holds_for(0.3, lambda: lab.claims.in_flight == expected, f"no more than {expected}")
        gates[answered].set()
    for gate in gates:
        gate.set()
    wait_for(lambda: lab.mq.depth() == 0, what="all are acked")
    running.stop().ended_with(0)
    lab.mq.ends_with()


def test_slow_answers_within_the_timeout_keep_it_at_one(lab):
    lab.claims.answer = lambda request: Answer(201, delay=1.3)
    lab.mq.put("a", "b", "c", "d")
    done = lab.consume("--timeout", "2.4")
    assert lab.claims.most_in_flight == 1
    assert done.summary["accepted"] == 4 == lab.claims.calls()
    lab.mq.ends_with()


def test_a_timeout_caps_it_for_the_rest_of_the_run(lab):
    """4 in flight time out: later at most 3 are in flight, however quick the answers."""
    late = [f"late{n}" for n in range(4)]
    lab.claims.answers = {each: [Answer(raw=b"", then="hang"), ACCEPTED] for each in late}
    warm = [f"w{n}" for n in range(12)]
    lab.mq.put(*warm)
    running = lab.consumer("--prefetch", "4", "--timeout", "2")
    wait_for(lambda: lab.mq.depth() == 0, what="warmed up")
    lab.mq.put(*late)
    wait_for(lambda: lab.claims.calls() == 16, what="4 are in flight")
    wait_for(lambda: lab.mq.depth() == 0, what="they have timed out and were called again")
    lab.claims.most_in_flight = 0
    rest = [f"r{n}" for n in range(20)]
    lab.claims.answers |= {each: [Answer(201, delay=0.1)] for each in rest}
    lab.mq.put(*rest)
    wait_for(lambda: lab.mq.depth() == 0, what="the rest is done")
    done = running.stop().ended_with(0)
    assert 1 <= lab.claims.most_in_flight <= 3
    assert done.summary["accepted"] == 36
    lab.mq.ends_with()


@pytest.mark.case(42)
@pytest.mark.parametrize("then, work, timeout, count", [("close", 0.9, 3, 10), ("keep", 3, 10, 6)], ids=["close", "keep"])
def test_a_serial_claims_system_is_not_pushed_into_timeouts(lab, then, work, timeout, count):
    """Row 42 at three tenths of its time; with connections kept, whose 2 s of idleness do not shrink, at full time."""
    serial = lab.also(Claims(serial=True))
    serial.answer = lambda request: Answer(201, delay=work, then=then)
    ids = [f"g{n}" for n in range(count)]
    lab.mq.put(*ids)
    done = lab.consume("--timeout", timeout, claims=serial, bound=150)
    calls = serial.calls_by_id()
    assert sorted(calls) == sorted(ids)
    assert max(calls.values()) <= 2 and list(calls.values()).count(2) <= 1, calls
    assert done.summary["accepted"] == count
    lab.mq.ends_with()


# --- timeout

def test_the_timeout_is_10_seconds_by_default(lab):
    lab.claims.answers["g"] = [Answer(raw=b"", then="hang"), ACCEPTED]
    lab.mq.put("g")
    lab.consume()
    first, again = lab.claims.requests
    assert 9.5 <= again.started - first.started < 20
    lab.mq.ends_with()


def test_an_answer_within_the_timeout_counts(lab):
    lab.claims.answer = lambda request: Answer(201, delay=1.5)
    lab.mq.put("g")
    lab.consume("--timeout", "6")
    assert lab.claims.calls("g") == 1
    lab.mq.ends_with()


def test_the_timeout_bounds_an_answer_that_trickles(lab):
    lab.claims.answers["g"] = [Answer(503, trickle=0.1), ACCEPTED]
    lab.mq.put("g")
    lab.consume("--timeout", "1")
    first, again = lab.claims.requests
    assert again.started - first.started < 10
    lab.mq.ends_with()


def test_an_answer_that_was_there_while_the_program_was_stopped_counts(lab):
    """However late it is looked at: here the whole program stood still past the timeout."""
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(201, gate=gate)]
    lab.mq.put("g")
    running = lab.consumer("--timeout", "2")
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    running.send(signal.SIGSTOP)
    gate.set()
    wait_for(lambda: lab.claims.in_flight == 0, what="the answer is sent")
    holds_for(3, running.alive, "stopped past the timeout")
    running.send(signal.SIGCONT)
    wait_for(lambda: lab.mq.depth() == 0, what="g is settled")
    done = running.stop().ended_with(0)
    assert lab.claims.calls("g") == 1 and done.summary["accepted"] == 1
    lab.mq.ends_with()


# --- retry delay

@pytest.mark.case(32)
@pytest.mark.parametrize("retry_after, least, most", [("2", 2, 12), ("abc", 1, 1.9), (None, 1, 1.9), ("0", 1, 1.9), ("-5", 1, 1.9)], ids=str)
def test_a_retry_waits_its_delay_or_the_answers_if_that_is_longer(lab, retry_after, least, most):
    headers = () if retry_after is None else (("Retry-After", retry_after),)
    lab.claims.answers["g"] = [Answer(503, headers=headers), ACCEPTED]
    lab.mq.put("g")
    running = lab.consumer("--retry-delay", "1")
    wait_for(lambda: lab.claims.calls("g") == 2, what="the second call")
    wait_for(lambda: lab.mq.depth() == 0, what="settled")
    running.stop().ended_with(0)
    first, again = lab.claims.requests
    waited = again.started - first.started
    assert waited >= least
    assert waited < most + 5, "bounded, with room for a slow machine"
    lab.mq.ends_with()


@pytest.mark.case(32)
def test_the_delivery_stays_unacked_while_it_waits_and_others_go_on(lab):
    lab.claims.answers["slow"] = [BUSY, ACCEPTED]
    lab.mq.put("slow", "a", "b", "c")
    running = lab.consumer("--retry-delay", "3")
    wait_for(lambda: lab.claims.calls() == 4, what="the others are called meanwhile")
    wait_for(lambda: lab.mq.depth() == 1, what="the others are acked")
    assert (lab.mq.unacked(), lab.claims.calls("slow")) == (1, 1)
    wait_for(lambda: lab.mq.depth() == 0, what="all are acked")
    running.stop().ended_with(0)
    lab.mq.ends_with()


@pytest.mark.case(32)
def test_a_retry_waits_30_seconds_at_most_and_heartbeats_go_on(lab):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    lab.claims.answers["g"] = [Answer(503, headers=(("Retry-After", "99999"),)), ACCEPTED]
    lab.mq.put("g")
    running = lab.consumer("--retry-delay", "1", env={"EAI_AMQP_URL": lab.mq.url("heartbeat=4", port=proxy.port)})
    wait_for(lambda: lab.claims.calls("g") == 2, 60, "the second call")
    wait_for(lambda: lab.mq.depth() == 0, what="settled")
    running.stop().ended_with(0)
    first, again = lab.claims.requests
    assert 29 <= again.started - first.started < 45
    assert proxy.connections == 1
    lab.mq.ends_with()


def test_at_most_half_of_the_prefetch_waits(lab):
    """Prefetch 4, six claims that fail, a delay of 30 s: two may wait, the oldest goes back early; nothing stands still."""
    failing = [f"f{n}" for n in range(6)]
    lab.claims.answers = {each: [BUSY, ACCEPTED] for each in failing}
    lab.mq.put(*failing, "good")
    running = lab.consumer("--prefetch", "4", "--retry-delay", "20")
    wait_for(lambda: lab.claims.calls("good") == 1, 15, "a good claim behind them gets its turn")
    wait_for(lambda: lab.claims.calls() >= 7 + 4, 15, "all but two went back early")
    running.stop().ended_with(0)
    left = lab.mq.read("claim.in")
    assert len(left) <= 2 and all(method.redelivered for method, _, _ in left)
    lab.mq.ends_with()


@pytest.mark.parametrize("status", [201, 422])
def test_retry_delay_holds_nothing_else_up(lab, status):
    lab.claims.answer = lambda request: Answer(status)
    lab.mq.put("a", "b")
    done = lab.consume("--retry-delay", "30", bound=15)
    assert done.seconds < 20
    lab.mq.ends_with(dead=["a", "b"] if status == 422 else [])


def test_a_redelivered_claim_that_fails_goes_to_claim_dead_without_delay(lab):
    lab.claims.answers["g"] = [BUSY]
    lab.mq.put("g")
    lab.consume("--retry-delay", "2")
    first, again = lab.claims.requests
    assert again.started - first.started >= 2
    assert time.monotonic() - again.started < 10
    lab.mq.ends_with(dead=["g"])


# --- processor and memory

def test_an_idle_consumer_uses_next_to_no_processor(lab):
    running = lab.consumer()
    wait_for(lambda: lab.mq.consumers() == 1, what="it consumes")
    before = running.cpu_seconds()
    holds_for(4, running.alive)
    used = running.cpu_seconds() - before
    running.stop().ended_with(0)
    assert used <= 0.08, f"{used} s of processor time in 4 s of idleness"
    lab.mq.ends_with()


def test_waiting_for_an_answer_uses_next_to_no_processor(lab):
    gate = threading.Event()
    lab.claims.answer = lambda request: Answer(201, gate=gate)
    lab.mq.put("g", "g", "h")
    running = lab.consumer("--timeout", "60")
    wait_for(lambda: lab.claims.in_flight == 1, what="one is in flight, one waits for it")
    before = running.cpu_seconds()
    holds_for(4, running.alive)
    used = running.cpu_seconds() - before
    gate.set()
    wait_for(lambda: lab.mq.depth() == 0, what="settled")
    running.stop().ended_with(0)
    assert used <= 0.12, f"{used} s of processor time in 4 s of waiting"
    lab.mq.ends_with()


@pytest.mark.case(24)
def test_a_claim_that_always_fails_does_not_spin(lab):
    lab.claims.answer = lambda request: BUSY
    lab.mq.put("g")
    running = lab.consumer("--max-seconds", "20")
    wait_for(lambda: lab.mq.depth("claim.dead") == 1, what="it is dead-lettered")
    before = running.cpu_seconds()
    holds_for(3, running.alive)
    used = running.cpu_seconds() - before
    running.stop().ended_with(0)
    assert lab.claims.calls("g") == 2
    assert used <= 0.08, f"{used} s of processor time in 3 s of idleness"
    lab.mq.ends_with(dead=["g"])


@pytest.mark.case(26)
def test_5000_rejected_claims_leave_memory_flat(lab):
    lab.claims.answer = lambda request: REJECTED
    ids = [f"g{n}" for n in range(5000)]
    lab.mq.put(*ids, body=b"x" * 10_000)
    sanitizer = os.environ.get("ASAN_OPTIONS", "")
    running = lab.consumer("--prefetch", "20", env={"ASAN_OPTIONS": f"{sanitizer}:quarantine_size_mb=2".lstrip(":")})
    wait_for(lambda: lab.claims.calls() > 1500, 120, "1500 are done")
    early = running.resident_bytes()
    wait_for(lambda: lab.mq.depth("claim.dead") == 5000, 180, "all are in claim.dead")
    grown = running.resident_bytes() - early
    done = running.stop().ended_with(0)
    assert done.summary["rejected"] == 5000 == lab.claims.calls()
    assert grown < 12_000_000, f"grew by {grown} bytes over 3500 claims of 10 KB"
    lab.mq.ends_with(dead=ids)
