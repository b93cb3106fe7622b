"""Many faults in one run, at random moments and at named system calls. Each run ends with every message and every call accounted for."""
import collections
import os
import random
import time

import pytest

from support.claims import ACCEPTED, BUSY, REJECTED, Answer
from support.proxy import Proxy
from support.store import processed
from support.tracing import UNCHECKED
from support.waiting import wait_for
from support.way import Way

IN_FLIGHT_AT_MOST = 5  # of one consumer: its prefetch


@pytest.fixture
def dice():
    """CLAIMQ_SEED replays a run, as far as the machine's own timing lets it."""
    seed = int(os.environ.get("CLAIMQ_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"CLAIMQ_SEED={seed}")
    return random.Random(seed)


def ids(count):
    return [f"g{n}" for n in range(count)]


def moments(dice, count, most):
    """Counts of calls, at each of which a fault happens."""
    return sorted(dice.sample(range(5, most), count))


def slowly(request):
    return Answer(201, delay=0.01)


# --- kill -9 at random moments

class Excuses:
    """Which ids a kill may have sent into a second call: called before it, and not in the store after it."""

    def __init__(self, lab):
        self._lab, self._kills = lab, []

    def note(self):
        self._kills.append((time.monotonic(), set(processed(self._lab.store))))

    def of_all(self):
        """id -> kills that excuse one more call. The server may read a request a little after its sender was killed."""
        counts = collections.Counter()
        for when, recorded in self._kills:
            called = {request.id for request in self._lab.claims.requests if request.started <= when + 0.5}
            counts.update(called - recorded)
        return counts


def kill_at_random(lab, dice, kills, most):
    """Two consumers on one store; one of them is killed again and again, and another takes its place at once."""
    running = [lab.consumer() for _ in range(2)]
    excuses = Excuses(lab)
    for moment in moments(dice, kills, most):
        wait_for(lambda: lab.claims.calls() >= moment or lab.mq.depth() == 0, what=f"{moment} calls")
        at = dice.randrange(2)
        running[at].kill()
        excuses.note()
        running[at] = lab.consumer()
    wait_for(lambda: lab.mq.depth() == 0, what="all is settled")
    wait_for(lambda: lab.mq.consumers() == len(running), what="the last ones have connected, too")
    for each in running:
        each.stop().ended_with(0)
    return excuses.of_all()


def test_300_claims_survive_20_kills_of_two_consumers(lab, dice):
    lab.claims.answer = slowly
    lab.mq.put(*ids(300))
    excuses = kill_at_random(lab, dice, 20, 290)
    calls = lab.claims.calls_by_id()
    assert sorted(calls) == sorted(ids(300)) == sorted(processed(lab.store))
    assert {each: count for each, count in calls.items() if count > 1 + excuses[each]} == {}
    assert sum(calls.values()) <= 300 + 20 * IN_FLIGHT_AT_MOST
    lab.mq.ends_with()


def test_claims_of_all_kinds_survive_12_kills(lab, dice):
    """A kill may use up the one more try of a claim that then fails: it is in claim.dead, and nowhere else."""
    kinds = {"a": [ACCEPTED], "b": [BUSY, ACCEPTED], "r": [REJECTED], "f": [BUSY]}
    usual = {"a": 1, "b": 2, "r": 1, "f": 2}
    everything = [f"{kind}{n}" for n in range(40) for kind in kinds]
    lab.claims.answers = {each: kinds[each[0]] for each in everything}
    lab.mq.put(*everything)
    excuses = kill_at_random(lab, dice, 12, 200)
    calls, accepted = lab.claims.calls_by_id(), processed(lab.store)
    assert sorted(calls) == sorted(everything)
    assert {each: count for each, count in calls.items() if count > usual[each[0]] + excuses[each]} == {}
    assert {each for each in everything if each[0] == "a"} <= set(accepted)
    assert not {each for each in accepted if each[0] in "rf"}
    lab.mq.ends_with(dead=sorted(set(everything) - set(accepted)))


# --- kill -9 at named system calls

NAMED = {
    "before the answer is read": ("recvfrom:signal=SIGKILL:when=1", False),
    "before the store's lock is asked for": ("fcntl:signal=SIGKILL:when=1", False),
    "at the second lock": ("fcntl:signal=SIGKILL:when=2", False),
    "before the record is written": ("pwrite64:signal=SIGKILL:when=1", False),
    "with the record half written": ("pwrite64:signal=SIGKILL:when=2", False),
    "before the record is flushed": ("fdatasync:signal=SIGKILL:when=1", True),
    "before the ack is written": ("sendto:signal=SIGKILL:when=1", True),
    "before the settled claim is told": ("write:signal=SIGKILL:when=1", True),
}


@pytest.mark.parametrize("injection, recorded", NAMED.values(), ids=NAMED)
def test_killed_at_a_system_call_it_is_called_again_only_without_a_record(lab, injection, recorded):
    """What was written survives kill -9 unflushed, too; only the machine's own end takes it away."""
    way = Way(lab)
    way.reach("in flight")
    way.trace(injection)
    way.gate.set()
    way.consumer.wait().ended_with(137)
    way.proxy.cut()
    assert processed(lab.store) == (["g"] if recorded else [])
    way.ends("kill -9", status=137)
    assert lab.claims.calls("g") == (1 if recorded else 2)


@pytest.mark.parametrize("when", range(1, 9))
@pytest.mark.parametrize("call", ["fdatasync", "pwrite64", "ftruncate"])
def test_killed_while_it_makes_its_store_the_next_one_makes_it(lab, call, when):
    """Where there are fewer such calls it consumes and is ended."""
    lab.mq.put("g")
    prefix = ("strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={when}")
    first = lab.consumer("--until-empty", prefix=prefix, env=UNCHECKED)
    assert first.wait().status in (0, 137)
    recorded = "g" in processed(lab.store)
    lab.consume()
    assert lab.claims.calls("g") <= 2 if not recorded else lab.claims.calls("g") == 1
    assert processed(lab.store) == ["g"]
    lab.mq.ends_with()


# --- the broker and the way to it

def test_a_broker_that_is_killed_and_stopped_in_mid_run(frail_lab, dice):
    lab, broker = frail_lab, frail_lab.mq.broker
    lab.claims.answer = slowly
    lab.mq.put(*ids(200))
    running = [lab.consumer(env={"EAI_AMQP_URL": lab.mq.url("retry_delay=0.5")}) for _ in range(2)]
    for moment, end in zip(moments(dice, 2, 150), (broker.kill, broker.stop)):
        wait_for(lambda: lab.claims.calls() >= moment, what=f"{moment} calls")
        end()
        broker.start()
    wait_for(lambda: lab.mq.depth() == 0 and lab.mq.consumers() == 2, 90, "all are acked, and both are back")
    for each in running:
        each.stop().ended_with(0)
    assert lab.claims.calls_by_id() == {each: 1 for each in ids(200)}
    lab.mq.ends_with()


def test_connections_that_the_operator_closes_again_and_again(lab, dice):
    lab.claims.answer = slowly
    lab.mq.put(*ids(200))
    running = [lab.consumer(env={"EAI_AMQP_URL": lab.mq.url("retry_delay=0.1")}) for _ in range(2)]
    for moment in moments(dice, 8, 190):
        wait_for(lambda: lab.claims.calls() >= moment, what=f"{moment} calls")
        lab.mq.broker.close_connections(lab.mq.name, "maintenance")
    wait_for(lambda: lab.mq.depth() == 0 and lab.mq.consumers() == 2, what="all are acked")
    for each in running:
        each.stop().ended_with(0)
    assert lab.claims.calls_by_id() == {each: 1 for each in ids(200)}
    lab.mq.ends_with()


def test_a_way_to_the_broker_that_delays_cuts_and_swallows(lab, dice):
    """Everything that comes through late, not at all, or in one direction only, with heartbeats that find out."""
    proxy = lab.also(Proxy(lab.mq.broker.port))
    lab.claims.answer = slowly
    lab.mq.put(*ids(250))
    running = lab.consumer(env={"EAI_AMQP_URL": lab.mq.url("heartbeat=1&retry_delay=0.1&stack_timeout=2", port=proxy.port)})
    troubles = [("delay",), ("cut",), ("up",), ("down",), ("up", "down")] * 2
    dice.shuffle(troubles)
    for moment, trouble in zip(moments(dice, len(troubles), 230), troubles):
        wait_for(lambda: lab.claims.calls() >= moment, what=f"{moment} calls")
        before = times_noticed(running)
        proxy.delay = 0.05 if trouble == ("delay",) else 0
        if trouble == ("cut",):
            proxy.cut()
        elif trouble != ("delay",):
            proxy.pause(*trouble)
            wait_for(lambda: times_noticed(running) > before, 30, "the silence is noticed")
            proxy.cut()
            proxy.resume(*trouble)
    proxy.delay = 0
    wait_for(lambda: lab.mq.depth() == 0 and lab.mq.consumers() == 1, what="all are acked")
    running.stop().ended_with(0)
    assert lab.claims.calls_by_id() == {each: 1 for each in ids(250)}
    lab.mq.ends_with()


def times_noticed(running):
    """That its connection is gone, or, when it had none at the moment, that it gets none."""
    return sum(running.err().count(words) for words in ("connection to the broker lost", "trying again"))


def test_alarms_that_come_and_go_while_claims_are_published_and_consumed(frail_lab):
    lab, broker = frail_lab, frail_lab.mq.broker
    lab.claims.answer = slowly
    running = lab.consumer()
    everything = ids(400)
    lines = lab.file("claims.ndjson", "".join('{"guid":"%s"}\n' % each for each in everything))
    for each in broker.raise_memory_alarm, broker.raise_disk_alarm:
        each()
        publishing = lab.start("publish", lines)
        wait_for(lambda: "blocked by the broker" in publishing.err(), what="it is told to wait")
        broker.clear_alarms()
        publishing.wait().ended_with(0)
    wait_for(lambda: lab.mq.depth() == 0, what="all are acked")
    done = running.stop().ended_with(0)
    assert lab.claims.calls_by_id() == {each: 1 for each in everything}
    assert done.summary["duplicate"] >= 400
    lab.mq.ends_with()
