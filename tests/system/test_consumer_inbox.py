"""Never twice, never lost: SPEC section 6, "Never twice", "Never lost" and "The honest boundary"."""
import sqlite3
import threading
import time

import pytest

from support.claims import ACCEPTED, BUSY, REJECTED, Answer
from support.proxy import Proxy
from support.store import everything_in, locked, processed
from support.waiting import holds_for, wait_for


# --- duplicates

def test_the_same_id_twice_is_called_once(lab):
    lab.mq.put("g", "g")
    done = lab.consume()
    assert lab.claims.calls("g") == 1
    assert (done.summary["accepted"], done.summary["duplicate"], done.summary["conflicts"]) == (1, 1, 0)
    lab.mq.ends_with()


def test_a_processed_id_is_acked_uncalled_after_a_restart(lab):
    for accepted, duplicate in (1, 0), (0, 1), (0, 1):
        lab.mq.put("g")
        done = lab.consume()
        assert (done.summary["accepted"], done.summary["duplicate"]) == (accepted, duplicate)
    assert lab.claims.calls("g") == 1
    assert processed(lab.store) == ["g"]
    lab.mq.ends_with()


def test_a_redelivered_duplicate_is_acked_uncalled_although_the_claims_system_fails(lab):
    lab.mq.put("g")
    lab.consume()
    lab.claims.answer = lambda request: BUSY
    lab.mq.put("g")
    done = lab.consume()
    assert lab.claims.calls("g") == 1 and done.summary["duplicate"] == 1
    lab.mq.ends_with()


def test_ids_are_compared_byte_by_byte(lab):
    ids = ["a", "A", "a ", "\u00e9", "e\u0301", "a\x00b", "a\x00c", "a\x00"]
    for each in ids:
        lab.mq.put(each, body=b'{"guid":"x"}')
    done = lab.consume()
    assert done.summary["accepted"] == len(ids) == lab.claims.calls()
    lab.mq.ends_with()


def test_rejected_and_dead_lettered_ids_are_called_again_when_sent_again(lab):
    lab.claims.answers = {"r": [REJECTED, ACCEPTED], "d": [BUSY, BUSY, ACCEPTED]}
    lab.mq.put("r", "d")
    lab.consume()
    lab.mq.ends_with(dead=["r", "d"])
    lab.mq.put("r", "d")
    done = lab.consume()
    assert done.summary["accepted"] == 2 and lab.claims.calls_by_id() == {"r": 2, "d": 3}
    lab.mq.ends_with()


def test_another_body_under_a_known_id_is_acked_with_a_warning_and_kept(lab):
    lab.mq.put("g", body=b'{"guid":"g","amount":1}')
    lab.consume()
    other = b'{"guid":"g","amount":2222}'
    lab.mq.put("g", body=other)
    done = lab.consume()
    assert lab.claims.calls("g") == 1
    assert done.summary["conflicts"] == 1
    assert any("g" in line and "warn" in line.lower() for line in done.err_lines), done
    assert "2222" not in done.err
    assert other in everything_in(lab.store)
    lab.mq.ends_with()


def test_the_same_body_under_a_known_id_is_no_conflict(lab):
    for _ in range(2):
        lab.mq.put("g", body=b'{"guid":"g","amount":1}', headers={"n": 1})
        done = lab.consume()
    assert (done.summary["conflicts"], done.summary["duplicate"]) == (0, 1)
    lab.mq.ends_with()


def test_two_deliveries_of_one_id_in_one_consumer_wait_for_each_other(lab):
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(201, gate=gate)]
    lab.mq.put("g", "g")
    running = lab.consumer()
    wait_for(lambda: lab.claims.calls("g") == 1 and lab.mq.unacked() == 2, what="both are delivered, one is called")
    holds_for(0.5, lambda: lab.claims.calls("g") == 1 and lab.mq.unacked() == 2, "the second waits")
    gate.set()
    wait_for(lambda: lab.mq.depth() == 0, what="both are acked")
    done = running.stop().ended_with(0)
    assert lab.claims.calls("g") == 1
    assert (done.summary["accepted"], done.summary["duplicate"]) == (1, 1)
    lab.mq.ends_with()


def test_a_second_delivery_is_called_when_the_first_was_rejected(lab):
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(422, gate=gate), ACCEPTED]
    lab.mq.put("g", "g")
    running = lab.consumer()
    wait_for(lambda: lab.claims.calls("g") == 1 and lab.mq.unacked() == 2, what="both are delivered, one is called")
    gate.set()
    wait_for(lambda: lab.mq.depth() == 0, what="both are settled")
    done = running.stop().ended_with(0)
    assert (done.summary["rejected"], done.summary["accepted"], lab.claims.calls("g")) == (1, 1, 2)
    lab.mq.ends_with(dead=["g"])


# --- two consumers on one store

@pytest.mark.cell("in flight", "second consumer")
@pytest.mark.case(41)
def test_two_consumers_never_have_one_id_in_flight_together(lab):
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(201, gate=gate)]
    lab.mq.put("g", "g")
    both = [lab.consumer("--prefetch", "1") for _ in range(2)]
    wait_for(lambda: lab.mq.unacked() == 2, what="each has one")
    wait_for(lambda: lab.claims.calls("g") == 1, what="one is called")
    holds_for(1, lambda: lab.claims.calls("g") == 1 and lab.mq.unacked() == 2, "the second waits")
    gate.set()
    wait_for(lambda: lab.mq.depth() == 0, what="both are acked")
    done = [running.stop().ended_with(0).summary for running in both]
    assert lab.claims.calls("g") == 1
    assert sorted((each["accepted"], each["duplicate"]) for each in done) == [(0, 1), (1, 0)]
    lab.mq.ends_with()


@pytest.mark.case(36)
def test_eight_consumers_on_a_new_store_call_each_of_2000_ids_once(lab):
    ids = [f"g{n}" for n in range(2000)]
    lab.mq.put(*ids, *ids)
    all_of_them = [lab.consumer("--prefetch", "20", "--timeout", "60") for _ in range(8)]
    wait_for(lambda: lab.mq.depth() == 0 or not all(each.alive() for each in all_of_them), 120, "all are settled")
    done = [running.stop().ended_with(0) for running in all_of_them]
    assert {each: calls for each, calls in lab.claims.calls_by_id().items() if calls > 1} == {}
    assert lab.claims.calls() == 2000
    assert sum(each.summary["accepted"] for each in done) == 2000
    assert sum(each.summary["duplicate"] for each in done) == 2000
    assert [line for each in done for line in each.err_lines if "locked" in line] == []
    lab.mq.ends_with()


@pytest.mark.case(41)
def test_a_killed_consumer_frees_its_ids_at_once(lab):
    lab.claims.answers["g"] = [Answer(201, gate=threading.Event()), ACCEPTED]
    lab.mq.put("g", "g")
    first = lab.consumer("--prefetch", "1")
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    second = lab.consumer("--prefetch", "1")
    wait_for(lambda: lab.mq.unacked() == 2, what="the second has the other one, and waits")
    first.kill()
    killed = time.monotonic()
    wait_for(lambda: lab.claims.calls("g") == 2, what="the second calls it")
    assert time.monotonic() - killed < 10
    wait_for(lambda: lab.mq.depth() == 0, what="both are acked")
    done = second.stop().ended_with(0)
    assert (done.summary["accepted"], done.summary["duplicate"]) == (1, 1)
    lab.mq.ends_with()


# --- kill -9

@pytest.mark.case(25)
def test_killed_in_mid_call_nothing_is_lost(lab):
    lab.claims.answer = lambda request: Answer(503, gate=held)
    held = threading.Event()
    ids = ["a", "b", "c", "d", "e"]
    lab.mq.put(*ids)
    running = lab.consumer()
    wait_for(lambda: lab.claims.calls() >= 1 and lab.mq.unacked() == 5, what="5 are prefetched, the first is in flight")
    running.kill()
    held.set()
    wait_for(lambda: lab.mq.unacked() == 0, what="the broker has them back")
    lab.consume()
    lab.mq.ends_with(dead=ids)


@pytest.mark.cell("in flight", "kill -9")
@pytest.mark.case(25)
def test_killed_in_mid_call_and_started_again_the_claim_is_handed_over(lab):
    lab.claims.answers["g"] = [Answer(201, gate=threading.Event()), ACCEPTED]
    lab.mq.put("g", "h")
    running = lab.consumer()
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    running.kill()
    done = lab.consume()
    assert done.summary["accepted"] == 2
    assert lab.claims.calls("g") == 2 and lab.claims.calls("h") <= 2
    lab.mq.ends_with()


@pytest.mark.cell("acked", "kill -9")
@pytest.mark.case(39)
def test_killed_after_the_commit_and_before_the_ack_it_is_not_called_again(lab):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(201, gate=gate)]
    lab.mq.put("g")
    running = lab.consumer(env={"EAI_AMQP_URL": lab.mq.url(port=proxy.port)})
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    proxy.pause("up")  # the ack will not reach the broker
    gate.set()
    wait_for(lambda: processed(lab.store) == ["g"], what="the record is committed")
    running.kill()
    proxy.cut()
    wait_for(lambda: lab.mq.broker.queues(lab.mq.name)["claim.in"][0] == 1, what="the broker has it back")
    done = lab.consume()
    assert lab.claims.calls("g") == 1 and done.summary["duplicate"] == 1
    lab.mq.ends_with()


@pytest.mark.cell("answered", "kill -9")
@pytest.mark.case(40)
def test_killed_after_the_201_and_before_the_commit_it_is_called_once_more(lab):
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(201, gate=gate), ACCEPTED]
    lab.mq.put("g")
    running = lab.consumer()
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    with locked(lab.store):
        gate.set()
        wait_for(lambda: lab.claims.in_flight == 0, what="201 is sent")
        holds_for(0.5, lambda: lab.mq.unacked() == 1, "no ack without a record")
        running.kill()
    done = lab.consume()
    assert lab.claims.calls("g") == 2 and done.summary["accepted"] == 1
    lab.mq.ends_with()


# --- the record

def test_the_record_is_there_before_the_ack(lab):
    """Whenever the broker has been told, the store knows: looked at after every ack."""
    ids = [f"g{n}" for n in range(20)]
    lab.mq.put(*ids)
    running = lab.consumer("--prefetch", "1")
    while (left := lab.mq.depth()) > 0:
        assert len(processed(lab.store)) >= 20 - left
    running.stop().ended_with(0)
    assert processed(lab.store) == sorted(ids)
    lab.mq.ends_with()


def test_the_store_is_readable_with_the_sqlite3_shell(lab):
    lab.mq.put("g")
    lab.consume()
    with sqlite3.connect(lab.store) as connection:
        columns = {row[1]: row for row in connection.execute("PRAGMA table_info(processed)")}
        assert columns["message_id"][2] == "TEXT" and columns["message_id"][5] == 1
        assert connection.execute("SELECT typeof(message_id) FROM processed").fetchall() == [("text",)]
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    lab.mq.ends_with()


@pytest.mark.cell("answered", "store locked for seconds")
def test_a_busy_store_is_waited_for_and_heartbeats_go_on(lab):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(201, gate=gate)]
    lab.mq.put("g")
    running = lab.consumer(env={"EAI_AMQP_URL": lab.mq.url("heartbeat=2", port=proxy.port)})
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    with locked(lab.store):
        gate.set()
        holds_for(8, lambda: lab.mq.unacked() == 1 and running.alive(), "no ack, no end, no lost connection")
    wait_for(lambda: lab.mq.depth() == 0, what="acked after the lock is gone")
    running.stop().ended_with(0)
    assert (lab.claims.calls("g"), proxy.connections) == (1, 1)
    assert processed(lab.store) == ["g"]
    lab.mq.ends_with()


def test_a_reader_does_not_disturb(lab):
    lab.mq.put("a")
    lab.consume()
    with sqlite3.connect(lab.store, isolation_level=None) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM processed").fetchone() == (1,)
        lab.mq.put("b", "a")
        done = lab.consume()
        reader.execute("COMMIT")
    assert (done.summary["accepted"], done.summary["duplicate"]) == (1, 1)
    lab.mq.ends_with()
