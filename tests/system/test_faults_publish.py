"""publish and topology under faults of the broker and of the way to it: SPEC section 5; RABBITMQ-C rules 4 to 6."""
import json
import os
import signal
import time

import pytest

from support.proxy import Proxy
from support.waiting import holds_for, wait_for


def through(lab, proxy, query):
    return {"EAI_AMQP_URL": lab.mq.url(query, port=proxy.port)}


def ids(count):
    return [f"g{n}." for n in range(count)]


def lines(guids, fill=""):
    return "".join('{"guid":"%s","fill":"%s"}\n' % (each, fill) for each in guids)


def receipts(done):
    return {receipt["guid"]: receipt["result"] for receipt in map(json.loads, done.out.splitlines())}


def left_in(lab):
    return [properties.message_id for _, properties, _ in lab.mq.read("claim.in")]


# --- a connection that is lost between send and confirm

def test_claims_sent_through_a_connection_that_is_cut_again_and_again(lab):
    """0: every claim is there, some of them twice, under the same id."""
    proxy = lab.also(Proxy(lab.mq.broker.port))
    everything = ids(600)
    cut_at = everything[100::100]

    def cut():
        proxy.cut()
        if cut_at:
            proxy.when_seen(cut_at.pop(0).encode(), cut)
    proxy.when_seen(everything[50].encode(), cut)
    done = lab.publish("--json", "--window", "20", lab.file("x.ndjson", lines(everything)), env=through(lab, proxy, "retry_delay=0.1"))
    done.ended_with(0)
    assert receipts(done) == {each: "confirmed" for each in everything}
    assert proxy.connections == 7
    left = left_in(lab)
    assert set(left) == set(everything) and len(left) <= 600 + 6 * 20
    lab.mq.ends_with()


@pytest.mark.parametrize("attempts, status", [(200, 0), (1, 75)], ids=["patient", "impatient"])
def test_what_was_confirmed_is_there_after_the_broker_was_killed_in_mid_run(frail_lab, attempts, status):
    lab, broker = frail_lab, frail_lab.mq.broker
    proxy = lab.also(Proxy(broker.port))
    everything = ids(400)
    proxy.when_seen(everything[200].encode(), broker.kill)
    given = lab.file("x.ndjson", lines(everything))
    env = through(lab, proxy, f"connection_attempts={attempts}&retry_delay=0.2")
    running = lab.start("publish", "--json", "--window", "50", given, env=env)
    wait_for(lambda: broker.process.poll() is not None, what="the broker is killed")
    if attempts == 1:
        running.wait(40)
    broker.start()
    results = receipts(running.wait(60).ended_with(status))
    assert list(results) == everything[:len(results)], "each claim that was read is told of once"
    confirmed = {each for each, result in results.items() if result == "confirmed"}
    left = set(left_in(lab))
    assert confirmed <= left <= set(everything) and len(confirmed) >= 50
    assert (status == 0) == (confirmed == set(everything))
    lab.publish(given).ended_with(0)
    lab.mq.ends_with(claim_in=everything)


# --- a peer that stops reading, or speaking

@pytest.mark.parametrize("heartbeat", [0, 2])
@pytest.mark.parametrize("directions", [("up",), ("down",), ("up", "down")], ids=" ".join)
@pytest.mark.parametrize("size", [100, 20_000_000], ids=["small ones", "a large one"])
def test_a_peer_that_stops_never_hangs_it(lab, directions, heartbeat, size):
    """More than every buffer holds, or as much as the window allows."""
    proxy = lab.also(Proxy(lab.mq.broker.port))
    everything = ids(1 if size > 1000 else 2000)
    proxy.when_seen(b"g0.", lambda: proxy.pause(*directions))
    given = lab.file("x.ndjson", lines(everything, "x" * size))
    query = f"heartbeat={heartbeat}&stack_timeout=2&retry_delay=0.2&blocked_connection_timeout=3"
    done = lab.publish("--confirm-timeout", "3", given, env=through(lab, proxy, query), bound=60).ended_with(75)
    assert done.seconds < 30
    proxy.cut()
    assert set(left_in(lab)) <= set(everything)
    lab.mq.ends_with()


class Slow:
    """Lines of a named pipe, each when the test says so."""

    def __init__(self, lab):
        self.path = os.path.join(lab.folder, "slow.ndjson")
        os.mkfifo(self.path)
        self._pipe = None

    def say(self, guid):
        self._pipe = self._pipe or open(self.path, "wb", buffering=0)
        self._pipe.write(lines([guid]).encode())

    def close(self):
        if self._pipe:
            self._pipe.close()


@pytest.mark.parametrize("stopped", [False, True], ids=["waiting", "stopped"])
@pytest.mark.parametrize("comes_back", [True, False], ids=["and comes back", "for good"])
def test_a_publish_after_a_silence_of_more_than_two_heartbeats_never_hangs(lab, stopped, comes_back):
    """rabbitmq-c 0.11 waits for ever in amqp_basic_publish when nothing was read for so long (upstream issue 780)."""
    proxy = lab.also(Proxy(lab.mq.broker.port))
    slow = lab.also(Slow(lab))
    env = through(lab, proxy, "heartbeat=1&stack_timeout=2&retry_delay=0.2")
    running = lab.start("publish", "--json", "--confirm-timeout", "5", slow.path, env=env)
    slow.say("a")
    wait_for(lambda: '"confirmed"' in running.out(), what="a is confirmed, and publish knows it")
    proxy.pause("up", "down")
    if stopped:
        running.send(signal.SIGSTOP)
    holds_for(3, running.alive, "more than two heartbeats long")
    slow.say("b")
    slow.close()
    if stopped:
        running.send(signal.SIGCONT)
    if comes_back:
        proxy.cut()
        proxy.resume("up", "down")
    done = running.wait(40)
    assert done.status in ([0] if comes_back else [69, 75]), done
    proxy.cut()
    lab.mq.ends_with(claim_in=["a", "b"] if comes_back else ["a"])


@pytest.mark.parametrize("signal_number, status", [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_a_publish_that_waits_for_a_peer_that_stopped_reading(lab, signal_number, status):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    proxy.when_seen(b"g0.", lambda: proxy.pause("up", "down"))
    given = lab.file("x.ndjson", lines(ids(1), "x" * 20_000_000))
    running = lab.start("publish", given, env=through(lab, proxy, "heartbeat=60"))
    wait_for(lambda: proxy.bytes["up"] > 0 and proxy.held() > 0, what="the body is on its way and stuck")
    running.send(signal_number)
    asked = time.monotonic()
    running.wait(20).ended_with(status)
    assert time.monotonic() - asked < 3
    proxy.cut()
    lab.mq.ends_with()


# --- a disk alarm, like the memory alarm in test_publish.py

@pytest.mark.parametrize("size", [1000, 12_000_000], ids=["1 KB", "12 MB"])
def test_a_disk_alarm_is_75_with_the_brokers_reason(frail_lab, size):
    broker = frail_lab.mq.broker
    broker.raise_disk_alarm()
    path = frail_lab.claim("a", fill="x" * size)
    running = frail_lab.start("publish", path, env={"EAI_AMQP_URL": frail_lab.mq.url("blocked_connection_timeout=2")})
    wait_for(lambda: "low on disk" in running.err(), what="the broker's reason is told at once")
    told = time.monotonic()
    running.wait(40).ended_with(75, path)
    assert time.monotonic() - told < 15
    broker.clear_alarms()
    assert len(frail_lab.mq.read("claim.in")) <= 1
    frail_lab.mq.ends_with()


def test_topology_is_bounded_under_a_disk_alarm(frail_lab):
    frail_lab.mq.broker.raise_disk_alarm()
    done = frail_lab.topology(bound=40)
    assert done.status in (0, 75), done
    frail_lab.mq.broker.clear_alarms()
    frail_lab.mq.ends_with()


@pytest.mark.parametrize("directions", [("up",), ("down",), ("up", "down")], ids=" ".join)
def test_topology_is_bounded_when_the_broker_stops(lab, directions):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    proxy.when_seen(b"eai.", lambda: proxy.pause(*directions))
    done = lab.topology(env=through(lab, proxy, "heartbeat=2&stack_timeout=2"), bound=60)
    assert done.status in (69, 75) and done.seconds < 30, done
    proxy.cut()
    lab.mq.ends_with()
