"""How a consumer ends: SPEC section 6, "The end"."""
import signal
import threading
import time

import pytest

from support.claims import ACCEPTED, BUSY, Answer
from support.proxy import Proxy
from support.store import locked
from support.waiting import holds_for, wait_for


def consuming(lab, *arguments, **options):
    running = lab.consumer(*arguments, **options)
    wait_for(lambda: lab.mq.consumers() == 1 or not running.alive(), what="it consumes")
    return running


@pytest.mark.case(28)
@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_consumer_ends_at_once_with_0(lab, signal_number):
    running = consuming(lab)
    asked = time.monotonic()
    running.send(signal_number)
    done = running.wait(20).ended_with(0)
    assert time.monotonic() - asked < 2
    assert done.summary["accepted"] == 0
    lab.mq.ends_with()


def test_max_seconds_ends_an_idle_consumer_in_time(lab):
    done = lab.consumer("--max-seconds", "1.5").wait(20).ended_with(0)
    assert 1.5 <= done.seconds < 8
    assert 1 <= done.summary["seconds"] < 8
    lab.mq.ends_with()


def test_max_seconds_with_work_gets_it_done(lab):
    lab.mq.put("a", "b", "c")
    done = lab.consumer("--max-seconds", "4").wait(30).ended_with(0)
    assert done.summary["accepted"] == 3
    lab.mq.ends_with()


def test_without_max_seconds_it_runs_on(lab):
    running = consuming(lab)
    holds_for(3, running.alive)
    running.stop().ended_with(0)
    lab.mq.ends_with()


@pytest.mark.cell("in flight", "SIGTERM")
@pytest.mark.case(29)
@pytest.mark.parametrize("how", ["deadline", "SIGTERM", "SIGINT"])
def test_a_call_in_flight_is_finished_recorded_and_acked(lab, how):
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(201, gate=gate)]
    lab.mq.put("g", "later")
    running = lab.consumer("--prefetch", "1", *(["--max-seconds", "2"] if how == "deadline" else []))
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    if how != "deadline":
        running.send(getattr(signal, how))
    wait_for(lambda: lab.mq.consumers() == 0, what="basic.cancel is sent")
    assert running.alive()
    gate.set()
    answered = time.monotonic()
    done = running.wait(20).ended_with(0)
    assert time.monotonic() - answered < 7
    assert done.summary["accepted"] == 1 and lab.claims.calls_by_id() == {"g": 1}
    lab.mq.ends_with(claim_in=["later"])


@pytest.mark.parametrize("answer, claim_in, dead", [(Answer(422), [], ["g"]), (Answer(503), ["g"], [])], ids=["422", "503"])
def test_a_call_in_flight_at_the_end_is_settled_by_its_answer(lab, answer, claim_in, dead):
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(answer.status, gate=gate)]
    lab.mq.put("g")
    running = lab.consumer()
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    running.send(signal.SIGTERM)
    wait_for(lambda: lab.mq.consumers() == 0, what="basic.cancel is sent")
    gate.set()
    running.wait(20).ended_with(0)
    assert lab.claims.calls("g") == 1
    lab.mq.ends_with(claim_in=claim_in, dead=dead)


@pytest.mark.case(27)
def test_at_the_deadline_what_was_not_started_stays_queued(lab):
    lab.claims.answer = lambda request: Answer(201, delay=0.7)
    ids = [f"g{n}" for n in range(10)]
    lab.mq.put(*ids)
    done = lab.consumer("--max-seconds", "2", "--timeout", "5").wait(30).ended_with(0)
    called = lab.claims.calls_by_id()
    assert max(called.values()) == 1
    assert done.summary["accepted"] == len(called), "each call was finished and recorded"
    lab.mq.ends_with(claim_in=[each for each in ids if each not in called])


@pytest.mark.case(27)
def test_a_second_run_does_the_rest_and_nothing_twice(lab):
    lab.claims.answer = lambda request: Answer(201, delay=0.3)
    ids = [f"g{n}" for n in range(10)]
    lab.mq.put(*ids)
    lab.consumer("--max-seconds", "1").wait(30).ended_with(0)
    lab.consume()
    assert lab.claims.calls_by_id() == {each: 1 for each in ids}
    lab.mq.ends_with()


@pytest.mark.cell("not called", "SIGTERM")
def test_no_call_starts_after_the_end_began(lab):
    gate = threading.Event()
    lab.claims.answer = lambda request: Answer(201, gate=gate)
    lab.mq.put(*[f"g{n}" for n in range(8)])
    running = lab.consumer()
    wait_for(lambda: lab.mq.unacked() == 5 and lab.claims.in_flight == 1, what="5 are unacked, one is in flight")
    running.send(signal.SIGTERM)
    wait_for(lambda: lab.mq.consumers() == 0, what="basic.cancel is sent")
    gate.set()
    done = running.wait(20).ended_with(0)
    assert lab.claims.calls() == 1 and done.summary["accepted"] == 1
    lab.mq.ends_with(claim_in=[f"g{n}" for n in range(8) if lab.claims.calls(f"g{n}") == 0])


def test_the_end_is_bounded_although_the_claims_system_hangs(lab):
    lab.claims.answer = lambda request: Answer(raw=b"", then="hang")
    lab.mq.put("a", "b")
    done = lab.consumer("--max-seconds", "1", "--timeout", "2").wait(30).ended_with(0)
    assert done.seconds < 1 + 2 + 5 + 1
    assert lab.claims.calls() == 1
    lab.mq.ends_with(claim_in=["a", "b"])


@pytest.mark.parametrize("directions", [("up",), ("down",), ("up", "down")], ids=" ".join)
def test_the_end_is_bounded_although_the_broker_is_silent(lab, directions):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    lab.mq.put("g")
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(201, gate=gate)]
    running = lab.consumer("--max-seconds", "2", "--timeout", "2", env={"EAI_AMQP_URL": lab.mq.url(port=proxy.port)})
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    proxy.pause(*directions)
    gate.set()
    done = running.wait(30)
    assert done.status in (0, 69), done
    assert done.seconds < 2 + 2 + 5 + 1
    proxy.cut()
    lab.consume()
    assert lab.claims.calls("g") == 1, "its record was made"
    lab.mq.ends_with()


def test_the_end_is_bounded_although_the_store_is_locked(lab):
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(201, gate=gate), ACCEPTED]
    lab.mq.put("g")
    running = lab.consumer("--max-seconds", "2", "--timeout", "2")
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    with locked(lab.store):
        gate.set()
        done = running.wait(30).ended_with(74)
    assert done.seconds < 2 + 2 + 5 + 1 and done.summary["accepted"] == 0
    lab.mq.ends_with(claim_in=["g"])


@pytest.mark.parametrize("signal_number, status", [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_a_second_signal_ends_it_at_once(lab, signal_number, status):
    lab.claims.answer = lambda request: Answer(201, gate=threading.Event())
    lab.mq.put("g")
    running = lab.consumer("--timeout", "60")
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    running.send(signal.SIGTERM)
    wait_for(lambda: lab.mq.consumers() == 0, what="the first signal is seen")
    assert running.alive()
    running.send(signal_number)
    asked = time.monotonic()
    running.wait(20).ended_with(status)
    assert time.monotonic() - asked < 3
    lab.mq.ends_with(claim_in=["g"])


def test_a_waiting_requeue_goes_out_at_once_at_the_end(lab):
    lab.claims.answer = lambda request: BUSY
    lab.mq.put("g")
    running = lab.consumer("--retry-delay", "25")
    wait_for(lambda: lab.claims.calls("g") == 1 and lab.claims.in_flight == 0, what="the first call has failed")
    holds_for(0.5, lambda: lab.mq.unacked() == 1, "it waits unacked")
    asked = time.monotonic()
    running.send(signal.SIGTERM)
    done = running.wait(20).ended_with(0)
    assert time.monotonic() - asked < 5
    assert done.summary["requeued"] == 1 and lab.claims.calls("g") == 1
    [(method, _, _)] = lab.mq.ends_with(claim_in=["g"])
    assert method.redelivered


def test_a_delivery_that_waits_for_anothers_outcome_is_acked_at_the_end(lab):
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(201, gate=gate)]
    lab.mq.put("g", "g")
    running = lab.consumer()
    wait_for(lambda: lab.claims.calls("g") == 1 and lab.mq.unacked() == 2, what="one is in flight, one waits")
    running.send(signal.SIGTERM)
    wait_for(lambda: lab.mq.consumers() == 0, what="basic.cancel is sent")
    gate.set()
    done = running.wait(20).ended_with(0)
    assert (done.summary["accepted"], done.summary["duplicate"]) == (1, 1)
    lab.mq.ends_with()


def test_a_delivery_that_waits_for_another_consumers_outcome_is_handed_back_or_acked_at_the_end(lab):
    lab.claims.answers["g"] = [Answer(201, gate=threading.Event()), ACCEPTED]
    lab.mq.put("g", "g")
    first = lab.consumer("--prefetch", "1", "--timeout", "60")
    wait_for(lambda: lab.claims.calls("g") == 1, what="the first has it in flight")
    second = lab.consumer("--prefetch", "1", "--timeout", "2")
    wait_for(lambda: lab.mq.unacked() == 2, what="the second waits")
    second.send(signal.SIGTERM)
    second.wait(15).ended_with(0)
    assert lab.claims.calls("g") == 1
    first.kill()
    lab.mq.ends_with(claim_in=["g", "g"])


# --- until empty

def test_until_empty_ends_with_0_when_all_is_done(lab):
    lab.claims.answers = {"b": [Answer(422)], "c": [BUSY]}
    lab.mq.put("a", "b", "c", *[f"g{n}" for n in range(30)])
    done = lab.consumer("--until-empty").wait(60).ended_with(0)
    assert (done.summary["accepted"], done.summary["rejected"], done.summary["dead_lettered"]) == (31, 1, 1)
    lab.mq.ends_with(dead=["b", "c"])


def test_until_empty_with_an_empty_queue_ends_soon(lab):
    done = lab.consumer("--until-empty").wait(30).ended_with(0)
    assert done.seconds < 10 and done.summary["accepted"] == 0
    lab.mq.ends_with()


def test_until_empty_waits_for_what_is_in_flight_and_for_a_waiting_requeue(lab):
    gate = threading.Event()
    lab.claims.answers = {"slow": [Answer(201, gate=gate)], "again": [BUSY, ACCEPTED]}
    lab.mq.put("again", "slow")
    running = lab.consumer("--until-empty", "--retry-delay", "1")
    wait_for(lambda: lab.claims.calls("slow") == 1, what="slow is in flight")
    holds_for(1.5, running.alive)
    gate.set()
    done = running.wait(30).ended_with(0)
    assert done.summary["accepted"] == 2 and lab.claims.calls("again") == 2
    lab.mq.ends_with()


def test_until_empty_still_ends_at_max_seconds(lab):
    lab.claims.answer = lambda request: Answer(201, delay=0.5)
    ids = [f"g{n}" for n in range(40)]
    lab.mq.put(*ids)
    done = lab.consumer("--until-empty", "--max-seconds", "1", "--prefetch", "1").wait(30).ended_with(0)
    assert done.seconds < 12 and done.summary["accepted"] < 40
    lab.mq.ends_with(claim_in=[each for each in ids if lab.claims.calls(each) == 0])
