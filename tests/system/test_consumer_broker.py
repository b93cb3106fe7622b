"""When the broker is gone, changed or strange: SPEC section 6, "The dead-letter way", "Broker gone", heartbeats."""
import threading
import time

import pytest

from support.claims import ACCEPTED, BUSY, REJECTED, Answer
from support.proxy import Proxy
from support.store import processed
from support.vhost import IN_ARGUMENTS
from support.waiting import holds_for, wait_for


def through(lab, proxy, query=""):
    return {"EAI_AMQP_URL": lab.mq.url(query, port=proxy.port)}


def consumes(lab):
    return lambda: lab.mq.broker.queues(lab.mq.name).get("claim.in", (0, 0, 0))[2] == 1


# --- the dead-letter way

@pytest.mark.case(44)
@pytest.mark.parametrize("arguments, named", [
    ({}, "x-dead-letter-exchange"), ({"x-dead-letter-exchange": "eai.dlx"}, "x-dead-letter-routing-key"),
    (IN_ARGUMENTS | {"x-dead-letter-exchange": "other"}, "x-dead-letter-exchange"),
], ids=["none", "no key", "another exchange"])
def test_claim_in_without_the_dead_letter_arguments_is_76_before_consuming(bare, arguments, named):
    bare.mq.declare(claim_in=arguments)
    bare.mq.put("g")
    bare.consumer("--max-seconds", "20").wait(30).ended_with(76, "claim.in", named)
    assert bare.claims.connections == 0
    [(method, _, _)] = bare.mq.ends_with(claim_in=["g"])
    assert not method.redelivered, "it was never delivered"


def test_with_assume_dead_letter_a_policy_may_do_it(bare):
    bare.mq.declare(claim_in={})
    bare.mq.broker.set_policy(bare.mq.name, "dlx", "^claim.in$", {"dead-letter-exchange": "eai.dlx", "dead-letter-routing-key": "claim.dead"})
    bare.claims.answer = lambda request: REJECTED
    bare.mq.put("g")
    bare.consume("--assume-dead-letter")
    bare.mq.ends_with(dead=["g"])


def test_any_other_difference_of_claim_in_is_accepted(bare):
    bare.mq.declare(claim_in=IN_ARGUMENTS | {"x-max-length": 1000})
    bare.claims.answer = lambda request: REJECTED
    bare.mq.put("g")
    bare.consume()
    bare.mq.ends_with(dead=["g"])


def test_a_missing_binding_of_claim_dead_is_made_again(bare):
    bare.mq.declare(bind_dead=False)
    bare.claims.answer = lambda request: REJECTED
    bare.mq.put("g")
    bare.consume()
    bare.mq.ends_with(dead=["g"])


def test_without_permission_to_check_it_warns_and_goes_on(lab):
    user = f"worker-{lab.mq.name}"
    lab.mq.broker.add_user(user, "pw")
    lab.mq.broker.permit(user, lab.mq.name, configure="^$", write="^$", read=r"^claim\.in$")
    lab.claims.answers["b"] = [REJECTED]
    lab.mq.put("a", "b")
    done = lab.consume(env={"EAI_AMQP_URL": lab.mq.url(user=user, password="pw")})
    assert "unverified" in done.err, done
    assert done.summary["accepted"] == 1
    lab.mq.ends_with(dead=["b"])


def test_without_permission_to_consume_it_is_77(lab):
    user = f"blind-{lab.mq.name}"
    lab.mq.broker.add_user(user, "pw")
    lab.mq.broker.permit(user, lab.mq.name, read="^$")
    lab.mq.put("g")
    lab.consumer(env={"EAI_AMQP_URL": lab.mq.url(user=user, password="pw")}).wait(30).ended_with(77, "claim.in")
    lab.mq.ends_with(claim_in=["g"])


def test_quorum_queues_are_served_like_classic_ones(bare):
    bare.topology("--queue-type", "quorum").ended_with(0)
    bare.claims.answers = {"b": [REJECTED], "c": [BUSY], "d": [BUSY, ACCEPTED]}
    bare.publish(*[bare.claim(each) for each in "abcd"]).ended_with(0)
    done = bare.consumer("--until-empty").wait(60).ended_with(0)
    assert bare.claims.calls_by_id() == {"a": 1, "b": 1, "c": 2, "d": 2}
    assert done.summary["accepted"] == 2
    bare.mq.ends_with(dead=["b", "c"])


# --- heartbeats

@pytest.mark.case(21)
def test_heartbeats_go_on_during_a_long_call(lab):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    lab.claims.answers["g"] = [Answer(201, delay=10)]
    lab.mq.put("g")
    running = lab.consumer("--timeout", "30", env=through(lab, proxy, "heartbeat=2"))
    wait_for(lambda: lab.mq.depth() == 0, what="acked")
    done = running.stop().ended_with(0)
    assert proxy.connections == 1, "the connection was never lost"
    assert lab.claims.calls("g") == 1 and done.summary["accepted"] == 1
    lab.mq.ends_with()


def test_a_silent_broker_is_noticed_by_its_missing_heartbeats(lab):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    running = lab.consumer(env=through(lab, proxy, "heartbeat=2&retry_delay=0.5"))
    wait_for(consumes(lab), what="it consumes")
    proxy.pause("down")
    wait_for(lambda: proxy.connections >= 2, 30, "it connects again")
    proxy.cut()
    proxy.resume("down")
    lab.mq.put("g")
    wait_for(lambda: lab.claims.calls("g") == 1 and lab.mq.depth() == 0, what="g is handed over")
    running.stop().ended_with(0)
    lab.mq.ends_with()


# --- the queue goes away

@pytest.mark.case(22)
def test_a_queue_deleted_and_made_again_is_taken_up_again(lab):
    running = lab.consumer()
    wait_for(consumes(lab), what="it consumes")
    with lab.mq.channel() as channel:
        channel.queue_delete("claim.in")
    wait_for(lambda: "claim.in" in running.err(), 10, "the loss is told")
    lab.mq.declare()
    wait_for(consumes(lab), 30, "it consumes again")
    lab.mq.put("g")
    wait_for(lambda: lab.mq.depth() == 0 and lab.claims.calls("g") == 1, what="g is handed over")
    running.stop().ended_with(0)
    lab.mq.ends_with()


@pytest.mark.case(22)
def test_a_queue_deleted_for_good_is_69_at_the_deadline(lab):
    running = lab.consumer("--max-seconds", "5")
    wait_for(consumes(lab), what="it consumes")
    with lab.mq.channel() as channel:
        channel.queue_delete("claim.in")
    done = running.wait(30).ended_with(69, "claim.in")
    assert done.seconds < 20
    assert lab.mq.depth("claim.dead") == 0
    lab.mq.accounted = True


@pytest.mark.cell("in flight", "queue deleted")
def test_a_queue_deleted_during_a_call_loses_no_record(lab):
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(201, gate=gate)]
    lab.mq.put("g")
    running = lab.consumer()
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    with lab.mq.channel() as channel:
        channel.queue_delete("claim.in")
    gate.set()
    wait_for(lambda: processed(lab.store) == ["g"], what="the record is made")
    lab.mq.declare()
    lab.mq.put("g")
    wait_for(lambda: lab.mq.depth() == 0, 30, "taken up again, and acked uncalled")
    running.stop().ended_with(0)
    assert lab.claims.calls("g") == 1
    lab.mq.ends_with()


# --- the connection goes away

@pytest.mark.cell("in flight", "connection reset")
@pytest.mark.case(30)
def test_a_connection_cut_during_the_call_keeps_the_result(lab):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(201, gate=gate)]
    lab.mq.put("g")
    running = lab.consumer(env=through(lab, proxy, "retry_delay=0.5"))
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    proxy.cut()
    wait_for(lambda: proxy.connections == 2, what="it connects again")
    wait_for(lambda: lab.mq.unacked() == 1, what="g is redelivered")
    holds_for(0.5, lambda: lab.claims.calls("g") == 1, "and waits for the call in flight")
    gate.set()
    wait_for(lambda: lab.mq.depth() == 0, what="acked uncalled")
    done = running.stop().ended_with(0)
    assert lab.claims.calls("g") == 1
    assert proxy.connections == 2, "no tag of the old channel was used on the new one"
    assert done.summary["accepted"] + done.summary["duplicate"] >= 1
    lab.mq.ends_with()


@pytest.mark.case(43)
def test_a_201_that_comes_while_there_is_no_broker_is_recorded(lab):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(201, gate=gate)]
    lab.mq.put("g")
    running = lab.consumer(env=through(lab, proxy, "retry_delay=0.5"))
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    proxy.down()
    gate.set()
    wait_for(lambda: processed(lab.store) == ["g"], what="the record is made without a connection")
    assert running.alive()
    proxy.accept()
    wait_for(lambda: lab.mq.depth() == 0, what="acked uncalled")
    running.stop().ended_with(0)
    assert lab.claims.calls("g") == 1
    lab.mq.ends_with()


def test_a_failure_that_comes_while_there_is_no_broker_is_not_lost(lab):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(422, gate=gate), REJECTED]
    lab.mq.put("g")
    running = lab.consumer(env=through(lab, proxy, "retry_delay=0.5"))
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    proxy.down()
    gate.set()
    wait_for(lambda: lab.claims.in_flight == 0, what="422 is sent")
    proxy.accept()
    wait_for(lambda: lab.mq.depth("claim.dead") == 1, what="dead-lettered")
    running.stop().ended_with(0)
    assert lab.claims.calls("g") <= 2, "one more call in the honest window"
    lab.mq.ends_with(dead=["g"])


def test_a_connection_closed_by_the_operator_is_made_again(lab):
    running = lab.consumer(env={"EAI_AMQP_URL": lab.mq.url("retry_delay=0.5")})
    wait_for(consumes(lab), what="it consumes")
    lab.mq.broker.close_connections(lab.mq.name, "maintenance window")
    wait_for(lambda: "maintenance window" in running.err(), what="the broker's reason is quoted")
    lab.mq.put("g")
    wait_for(lambda: lab.mq.depth() == 0 and lab.claims.calls("g") == 1, what="g is handed over")
    running.stop().ended_with(0)
    lab.mq.ends_with()


def test_many_cuts_lose_nothing_and_call_nothing_twice(lab):
    """All answers are 201: every call's record is made, so no cut causes a second call."""
    proxy = lab.also(Proxy(lab.mq.broker.port))
    lab.claims.answer = lambda request: Answer(201, delay=0.05)
    ids = [f"g{n}" for n in range(60)]
    lab.mq.put(*ids)
    running = lab.consumer(env=through(lab, proxy, "retry_delay=0.1"))
    for step in range(1, 6):
        wait_for(lambda: lab.claims.calls() >= step * 8, what=f"{step * 8} calls")
        proxy.cut()
    wait_for(lambda: lab.mq.depth() == 0, what="all are acked")
    running.stop().ended_with(0)
    assert lab.claims.calls_by_id() == {each: 1 for each in ids}
    lab.mq.ends_with()


def test_a_consumer_started_before_its_broker_works_when_that_is_there(lab):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    proxy.refuse()
    lab.mq.put("g")
    running = lab.consumer("--max-seconds", "60", env=through(lab, proxy, "retry_delay=0.5"))
    wait_for(lambda: str(proxy.port) in running.err(), what="it says that the broker is not there")
    proxy.accept()
    wait_for(lambda: lab.mq.depth() == 0, what="g is handed over")
    running.stop().ended_with(0)
    assert lab.claims.calls("g") == 1
    lab.mq.ends_with()


def test_a_broker_that_goes_away_for_good_is_69_at_the_deadline(lab):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    running = lab.consumer("--max-seconds", "4", "--timeout", "2", env=through(lab, proxy))
    wait_for(consumes(lab), what="it consumes")
    proxy.down()
    done = running.wait(30).ended_with(69)
    assert done.seconds < 4 + 2 + 5 + 1
    assert len(done.err_lines) <= 10, "no storm of lines"
    lab.mq.ends_with()


def test_a_login_refused_later_is_retried_like_an_outage(lab):
    user = f"rotated-{lab.mq.name}"
    lab.mq.broker.add_user(user, "pw")
    lab.mq.broker.permit(user, lab.mq.name)
    running = lab.consumer(env={"EAI_AMQP_URL": lab.mq.url("retry_delay=0.5", user=user, password="pw")})
    wait_for(consumes(lab), what="it consumes")
    change = f'rabbit_auth_backend_internal:change_password(<<"{user}">>, <<"%s">>, <<"test">>)'
    lab.mq.broker.eval(change % "other")
    lab.mq.broker.close_connections(lab.mq.name, "rotated")
    wait_for(lambda: "ACCESS_REFUSED" in running.err() or not running.alive(), 30, "the refusal is told")
    assert running.alive(), running.wait()
    lab.mq.broker.eval(change % "pw")
    wait_for(consumes(lab), 60, "it consumes again")
    running.stop().ended_with(0)
    lab.mq.ends_with()


# --- a real broker that stops

@pytest.mark.cell("in flight", "broker restarted")
@pytest.mark.case(23)
def test_a_broker_restarted_after_the_third_201_costs_no_second_call(frail_lab):
    lab, broker = frail_lab, frail_lab.mq.broker
    lab.claims.answer = lambda request: Answer(201, delay=0.2)
    ids = [f"g{n}" for n in range(10)]
    lab.mq.put(*ids)
    running = lab.consumer("--max-seconds", "120", env={"EAI_AMQP_URL": lab.mq.url("retry_delay=0.5")})
    wait_for(lambda: lab.claims.calls() >= 4, what="the third 201 is sent")
    broker.restart()
    wait_for(lambda: lab.mq.depth() == 0, 90, "all are acked")
    running.stop().ended_with(0)
    assert lab.claims.calls_by_id() == {each: 1 for each in ids}
    lab.mq.ends_with()


@pytest.mark.case(43)
def test_a_broker_that_is_down_while_a_call_is_answered(frail_lab):
    lab, broker = frail_lab, frail_lab.mq.broker
    lab.claims.answers["g"] = [Answer(201, delay=3)]
    lab.mq.put("g")
    running = lab.consumer(env={"EAI_AMQP_URL": lab.mq.url("retry_delay=0.5")})
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    broker.kill()
    wait_for(lambda: processed(lab.store) == ["g"], what="the record is made without a connection")
    broker.start()
    wait_for(lambda: lab.mq.depth() == 0, 60, "acked uncalled")
    running.stop().ended_with(0)
    assert lab.claims.calls("g") == 1
    lab.mq.ends_with()


@pytest.mark.cell("in flight", "broker silent")
def test_a_frozen_broker_is_noticed_and_survived(frail_lab):
    lab, broker = frail_lab, frail_lab.mq.broker
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(201, gate=gate)]
    lab.mq.put("g", "h")
    running = lab.consumer("--prefetch", "1", env={"EAI_AMQP_URL": lab.mq.url("heartbeat=2&retry_delay=0.5&stack_timeout=2")})
    wait_for(lambda: lab.claims.calls("g") == 1, what="g is in flight")
    broker.freeze()
    gate.set()
    wait_for(lambda: processed(lab.store) == ["g"], what="the record is made")
    wait_for(lambda: len(running.err().splitlines()) > 0 and "127.0.0.1" in running.err(), 30, "the loss is told")
    broker.thaw()
    wait_for(lambda: lab.mq.depth() == 0, 60, "all are acked")
    running.stop().ended_with(0)
    assert lab.claims.calls_by_id() == {"g": 1, "h": 1}
    lab.mq.ends_with()


@pytest.mark.case(10)
def test_a_consumer_goes_on_acking_under_a_memory_alarm(frail_lab):
    lab = frail_lab
    lab.mq.put("a", "b", "c")
    lab.mq.broker.raise_memory_alarm()
    started = time.monotonic()
    lab.consume(bound=30)
    assert time.monotonic() - started < 30 and lab.claims.calls() == 3
    lab.mq.broker.clear_alarms()
    lab.mq.ends_with()
