"""publish: SPEC section 5."""
import json
import os
import re
import time

import pytest

from support.proxy import Proxy
from support.waiting import wait_for

MARKER = "marker-4711"


# --- what goes on the wire

def test_one_claim_has_exactly_the_promised_properties(lab):
    body = b'{"guid":"g-1","amount":12.5}'
    lab.publish(lab.file("c.json", body)).ended_with(0)
    [(method, properties, got)] = lab.mq.ends_with(claim_in=["g-1"])
    assert (method.exchange, method.routing_key, method.redelivered) == ("eai.claim", "claim", False)
    assert got == body
    set_ones = {name: value for name, value in vars(properties).items() if value is not None}
    assert set_ones == {"delivery_mode": 2, "message_id": "g-1", "content_type": "application/json"}


@pytest.mark.case(5)
@pytest.mark.parametrize("body", [
    b'{"guid":"g","amount":1.50e3,"n":12345678901234567890123}',
    b' \t\r\n{  "n" :\t1.50e3 ,\n\n"guid"  :"g" }\n\n',
    b'{"guid":"g","text":"\\u00e9 \xc3\xa9 \xf0\x9f\x98\x80 \\/","a":[],"o":{}}',
    b'{"a":{"guid":"inner"},"guid":"g","b":[{"guid":"other"}]}',
    b'{"guid":"g","deep":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"guid":"g","deep":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
    b'{"guid":"g","GUID":1,"guid ":2,"":3}',
], ids=["numbers", "spacing", "unicode", "inner guid", "deep arrays", "deep objects", "other keys"])
def test_the_body_is_sent_unchanged_to_the_byte(lab, body):
    lab.publish(lab.file("c.json", body)).ended_with(0)
    [(_, _, got)] = lab.mq.ends_with(claim_in=["g"])
    assert got == body


@pytest.mark.parametrize("written, guid", [
    ("\\u0041b\\/c", "Ab/c"), ("€ and \\u20ac", "€ and €"), ("\\ud83d\\ude00", "😀"), ("in side", "in side"), ("a\\\"b\\\\c", 'a"b\\c'),
])
def test_message_id_is_the_decoded_guid(lab, written, guid):
    lab.publish(lab.file("c.json", '{"guid":"%s"}' % written)).ended_with(0)
    lab.mq.ends_with(claim_in=[guid])


@pytest.mark.case(4)
def test_a_guid_of_255_bytes_is_published_whole(lab):
    euros = "€" * 85
    lab.publish(lab.claim("a" * 255), lab.claim(euros)).ended_with(0)
    lab.mq.ends_with(claim_in=["a" * 255, euros])


def test_a_claim_of_12_megabytes_goes_through(lab):
    body = b'{"guid":"big","fill":"' + os.urandom(6_000_000).hex().encode() + b'"}'
    lab.publish(lab.file("big.json", body)).ended_with(0)
    [(_, _, got)] = lab.mq.ends_with(claim_in=["big"])
    assert got == body


def test_many_claims_share_one_connection_and_arrive_in_order(lab):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    ids = [f"g{n:03}" for n in range(300)]
    done = lab.publish("--window", "7", *[lab.file(f"{each}.json", json.dumps({"guid": each})) for each in ids],
                       env={"EAI_AMQP_URL": lab.mq.url(port=proxy.port)})
    done.ended_with(0)
    assert proxy.connections == 1
    assert [properties.message_id for _, properties, _ in lab.mq.ends_with(claim_in=ids)] == ids


def test_window_1_publishes_all(lab):
    lab.publish("--window", "1", lab.claim("a"), lab.claim("b"), lab.claim("c")).ended_with(0)
    lab.mq.ends_with(claim_in=["a", "b", "c"])


def test_the_same_file_twice_is_published_twice(lab):
    lab.publish(lab.claim("a"), lab.claim("a")).ended_with(0)
    lab.mq.ends_with(claim_in=["a", "a"])


def test_write_permission_alone_is_enough(lab):
    user = f"writer-{lab.mq.name}"
    lab.mq.broker.add_user(user, "pw")
    lab.mq.broker.permit(user, lab.mq.name, configure="^$", write="^eai.claim$", read="^$")
    lab.publish(lab.claim("a"), env={"EAI_AMQP_URL": lab.mq.url(user=user, password="pw")}).ended_with(0)
    lab.mq.ends_with(claim_in=["a"])


def test_without_write_permission_it_is_77(lab):
    user = f"reader-{lab.mq.name}"
    lab.mq.broker.add_user(user, "pw")
    lab.mq.broker.permit(user, lab.mq.name, write="^$")
    done = lab.publish(lab.claim("a"), env={"EAI_AMQP_URL": lab.mq.url(user=user, password="pw")})
    done.ended_with(77, "eai.claim")
    lab.mq.ends_with()


def test_declares_nothing(bare):
    bare.publish(bare.claim("a"))
    assert bare.mq.objects() == ({}, {}, [])
    bare.mq.has_no_queues()


# --- input

BAD = {
    "a byte order mark": b'\xef\xbb\xbf{"guid":"g1"}',
    "NaN": b'{"guid":"g3","amount":NaN}',
    "Infinity": b'{"guid":"g3","amount":-Infinity}',
    "two values": b'{"guid":"g6"}{"guid":"g7"}',
    "text after it": b'{"guid":"g6"} x',
    "a number as guid": b'{"guid":9196877626998784}',
    "an empty guid": b'{"guid":""}',
    "null as guid": b'{"guid":null}',
    "an array": b"[]",
    "an array of claims": b'[{"guid":"a"}]',
    "nothing": b"",
    "only white space": b" \n",
    "a string": b'"guid"',
    "no guid": b'{"id":"a"}',
    "guid only inside": b'{"claim":{"guid":"a"}}',
    "guid twice": b'{"guid":"a","guid":"a"}',
    "guid twice, once escaped": b'{"guid":"a","\\u0067uid":"b"}',
    "a guid of 256 bytes": b'{"guid":"%s"}' % (b"a" * 256),
    "a guid of 86 euro signs": b'{"guid":"%s"}' % (b"\xe2\x82\xac" * 86),
    "a guid with U+0000": b'{"guid":"a\\u0000b"}',
    "a guid with a newline": b'{"guid":"a\\nb"}',
    "a guid with U+007F": b'{"guid":"a\\u007fb"}',
    "a guid with U+009F": b'{"guid":"a\\u009fb"}',
    "a guid with U+0085 in UTF-8": b'{"guid":"a\xc2\x85b"}',
    "a guid with a space before": b'{"guid":" a"}',
    "a guid with a space behind": b'{"guid":"a "}',
    "a lone surrogate": b'{"guid":"a\\ud800"}',
    "a NUL after the claim": b'{"guid":"a"}\x00',
    "a NUL inside": b'{"guid":"a","b":"\x00"}',
    "invalid UTF-8": b'{"guid":"a","b":"\xff"}',
    "Latin-1": b'{"guid":"caf\xe9"}',
    "UTF-16": '{"guid":"a"}'.encode("utf-16"),
    "cut off": b'{"guid":"a","b":[1,2',
    "a trailing comma": b'{"guid":"a",}',
    "a comment": b'{"guid":"a" /* x */}',
    "single quotes": b"{'guid':'a'}",
    "a raw control character": b'{"guid":"a","b":"x\ty"}',
    "a leading zero": b'{"guid":"a","n":01}',
    "endless nesting": b"[" * 300_000,
}


@pytest.mark.case(1, 2, 3, 4)
@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_what_is_no_claim_is_65_before_any_network(lab, content):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    path = lab.file("bad-claim.json", content)
    done = lab.publish(path, env={"EAI_AMQP_URL": lab.mq.url(port=proxy.port)}).ended_with(65, path)
    assert len(done.err_lines) == 1, done
    assert proxy.connections == 0
    lab.mq.ends_with()


@pytest.mark.case(1)
def test_the_byte_order_mark_is_named(lab):
    done = lab.publish(lab.file("bom.json", BAD["a byte order mark"])).ended_with(65)
    assert re.search("BOM|byte.order.mark", done.err, re.I), done
    lab.mq.ends_with()


def test_one_bad_file_does_not_stop_the_others(lab):
    bad = lab.file("bad.json", b'{"guid":7}')
    lab.publish(lab.claim("a"), bad, lab.claim("b")).ended_with(65, bad)
    lab.mq.ends_with(claim_in=["a", "b"])


@pytest.mark.parametrize("kind", ["missing", "folder"])
def test_a_file_that_cannot_be_read_is_66_and_named(lab, kind):
    path = os.path.join(lab.folder, kind)
    if kind == "folder":
        os.mkdir(path)
    done = lab.publish(lab.claim("a"), path).ended_with(66, path)
    assert len(done.err_lines) == 1, done
    lab.mq.ends_with(claim_in=["a"])


def test_no_connection_is_made_when_no_file_can_be_read(lab):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    lab.publish("/nonexistent/claim.json", env={"EAI_AMQP_URL": lab.mq.url(port=proxy.port)}).ended_with(66)
    assert proxy.connections == 0
    lab.mq.ends_with()


def test_dash_is_standard_input(lab):
    lab.publish("-", stdin=b'{"guid":"from-stdin"}\n').ended_with(0)
    [(_, _, body)] = lab.mq.ends_with(claim_in=["from-stdin"])
    assert body == b'{"guid":"from-stdin"}\n'


LINES = b'{"guid":"a"}\r\n\r\n{"guid":"b" }\n\n{"guid":"c"}'


@pytest.mark.parametrize("name, options", [("x.ndjson", ()), ("x.jsonl", ()), ("x.txt", ("--ndjson",))])
def test_ndjson_is_one_claim_a_line(lab, name, options):
    lab.publish(*options, lab.file(name, LINES)).ended_with(0)
    messages = lab.mq.ends_with(claim_in=["a", "b", "c"])
    assert [body for _, _, body in messages] == [b'{"guid":"a"}', b'{"guid":"b" }', b'{"guid":"c"}']


def test_ndjson_comes_from_standard_input_too(lab):
    lab.publish("--ndjson", "-", stdin=LINES).ended_with(0)
    lab.mq.ends_with(claim_in=["a", "b", "c"])


def test_a_bad_line_is_named_with_its_number_and_the_others_are_sent(lab):
    path = lab.file("x.ndjson", b'{"guid":"a"}\n\n{"guid":null}\n{"guid":"b"}\n')
    done = lab.publish(path).ended_with(65, path)
    assert re.search(r"\b3\b", done.err.replace(path, "")), done
    lab.mq.ends_with(claim_in=["a", "b"])


def test_an_ndjson_file_without_a_claim_is_no_success_in_silence(lab):
    done = lab.publish(lab.file("x.ndjson", b"\n\r\n"))
    assert done.status in (0, 65), done
    lab.mq.ends_with()


def test_ndjson_with_many_lines_fills_the_window_and_arrives_in_order(lab):
    ids = [f"n{n}" for n in range(2000)]
    lab.publish(lab.file("x.ndjson", "\n".join(json.dumps({"guid": each}) for each in ids))).ended_with(0)
    assert [properties.message_id for _, properties, _ in lab.mq.ends_with(claim_in=ids)] == ids


# --- refusals

@pytest.mark.case(8)
def test_unroutable_is_1_and_says_so(lab):
    with lab.mq.channel() as channel:
        channel.queue_unbind("claim.in", "eai.claim", "claim")
    path = lab.claim("a")
    done = lab.publish(path).ended_with(1, path, "unroutable")
    assert len(done.err_lines) == 1, done
    lab.mq.ends_with()


@pytest.mark.case(7)
def test_a_missing_exchange_is_69_and_named(lab):
    with lab.mq.channel() as channel:
        channel.exchange_delete("eai.claim")
    lab.publish(lab.claim("a"), bound=30).ended_with(69, "no exchange 'eai.claim'")
    lab.mq.ends_with()


@pytest.mark.case(9)
def test_a_nack_from_a_full_queue_is_1(lab):
    lab.mq.broker.set_policy(lab.mq.name, "full", "^claim.in$", {"max-length": 1, "overflow": "reject-publish"})
    lab.publish(lab.claim("a")).ended_with(0)
    done = lab.publish(lab.claim("b")).ended_with(1, "refused")
    assert len(done.err_lines) == 1, done
    lab.mq.ends_with(claim_in=["a"])


def test_each_refused_claim_of_a_run_is_told_apart(lab):
    """Confirms come out of order and multiple: only those that fitted count as published."""
    lab.mq.broker.set_policy(lab.mq.name, "full", "^claim.in$", {"max-length": 5, "overflow": "reject-publish"})
    ids = [f"g{n}" for n in range(20)]
    paths = {each: lab.file(f"{each}.json", json.dumps({"guid": each})) for each in ids}
    done = lab.publish("--json", *paths.values()).ended_with(1)
    receipts = [json.loads(line) for line in done.out.splitlines()]
    left = [properties.message_id for _, properties, _ in lab.mq.read("claim.in")]
    in_time = [receipt["guid"] for receipt in receipts if paths[receipt["guid"]] not in done.err]
    assert sorted(left) == sorted(in_time) and len(left) >= 5
    lab.mq.ends_with()


@pytest.mark.case(6)
def test_a_claim_over_the_brokers_size_is_refused_and_the_others_are_published(lab):
    broker = lab.mq.broker
    broker.eval("application:set_env(rabbit, max_message_size, 100000)")
    try:
        big = lab.file("big.json", '{"guid":"big","fill":"%s"}' % ("x" * 200_000))
        done = lab.publish(lab.claim("a"), lab.claim("b"), big, lab.claim("c"), lab.claim("d"), bound=30)
    finally:
        broker.eval("application:set_env(rabbit, max_message_size, 134217728)")
    done.ended_with(1, big, "larger than")
    left = {properties.message_id for _, properties, _ in lab.mq.read("claim.in")}
    assert left == {"a", "b", "c", "d"}
    lab.mq.ends_with()


def test_receipts_are_one_json_line_per_claim(lab):
    path, lines = lab.claim("a"), lab.file("x.ndjson", b'{"guid":"b"}\n\n{"guid":"c"}\n')
    done = lab.publish("--json", path, lines).ended_with(0)
    receipts = [json.loads(line) for line in done.out.splitlines()]
    assert [(each["guid"], each["file"]) for each in receipts] == [("a", path), ("b", lines), ("c", lines)]
    assert [each["line"] for each in receipts[1:]] == [1, 3]
    assert len({each["result"] for each in receipts}) == 1 and all(each["ms"] >= 0 for each in receipts)
    lab.mq.ends_with(claim_in=["a", "b", "c"])


def test_receipts_tell_an_unroutable_claim_from_a_published_one(lab):
    published = json.loads(lab.publish("--json", lab.claim("a")).ended_with(0).out)["result"]
    with lab.mq.channel() as channel:
        channel.queue_unbind("claim.in", "eai.claim", "claim")
    done = lab.publish("--json", lab.claim("b")).ended_with(1)
    assert json.loads(done.out)["result"] not in (published, None)
    lab.mq.ends_with(claim_in=["a"])


# --- several failures: the gravest, in the order 75, 77, 76, 69, 1, 65, 66

def test_65_is_graver_than_66(lab):
    lab.publish("/nonexistent", lab.file("bad", b"x"), lab.claim("a")).ended_with(65)
    lab.mq.ends_with(claim_in=["a"])


def test_1_is_graver_than_65(lab):
    with lab.mq.channel() as channel:
        channel.queue_unbind("claim.in", "eai.claim", "claim")
    done = lab.publish("/nonexistent", lab.file("bad", b"x"), lab.claim("a")).ended_with(1)
    assert len(done.err_lines) == 3, "each failure is one line"
    lab.mq.ends_with()


def test_69_is_graver_than_65(lab):
    with lab.mq.channel() as channel:
        channel.exchange_delete("eai.claim")
    lab.publish(lab.file("bad", b"x"), lab.claim("a")).ended_with(69)
    lab.mq.ends_with()


# --- a connection that fails

def through(lab, proxy, query=""):
    return {"EAI_AMQP_URL": lab.mq.url(query, port=proxy.port)}


def test_a_connection_lost_before_the_confirm_is_made_again_and_the_claim_sent_again(lab):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    proxy.when_seen(MARKER.encode(), lambda: proxy.pause("down"))
    running = lab.start("publish", lab.claim(MARKER), env=through(lab, proxy, "retry_delay=1"))
    wait_for(lambda: lab.mq.depth() == 1, what="the claim is in the queue, its confirm held back")
    proxy.cut()
    proxy.resume("down")
    running.wait().ended_with(0)
    assert proxy.connections == 2
    lab.mq.ends_with(claim_in=[MARKER, MARKER])


def test_a_connection_closed_by_the_operator_is_made_again(lab):
    ids = [f"g{n}" for n in range(50)]
    proxy = lab.also(Proxy(lab.mq.broker.port))
    proxy.when_seen(b'"g49"', lambda: proxy.pause("down"))
    paths = [lab.file(f"{each}.json", json.dumps({"guid": each})) for each in ids]
    running = lab.start("publish", *paths, env=through(lab, proxy, "retry_delay=1"))
    wait_for(lambda: lab.mq.depth() == 50, what="all claims are in the queue")
    lab.mq.broker.close_connections(lab.mq.name, "maintenance")
    proxy.resume("down")
    running.wait().ended_with(0)
    left = {properties.message_id for _, properties, _ in lab.mq.read("claim.in")}
    assert left == set(ids)
    lab.mq.ends_with()


def test_a_connection_lost_for_good_with_a_claim_unconfirmed_is_75(lab):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    proxy.when_seen(MARKER.encode(), lambda: (proxy.pause("down"), proxy.refuse()))
    running = lab.start("publish", lab.claim(MARKER), env=through(lab, proxy, "retry_delay=0.2"))
    wait_for(lambda: lab.mq.depth() == 1, what="the claim is in the queue, its confirm held back")
    proxy.cut()
    running.wait(60).ended_with(75)
    lab.mq.ends_with(claim_in=[MARKER])


def test_a_confirm_that_does_not_come_in_time_is_75(lab):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    proxy.when_seen(MARKER.encode(), lambda: proxy.pause("down"))
    path = lab.claim(MARKER)
    done = lab.publish("--confirm-timeout", "2", path, env=through(lab, proxy), bound=30).ended_with(75, path)
    assert 2 <= done.seconds < 15
    lab.mq.ends_with(claim_in=[MARKER])


@pytest.mark.case(10)
@pytest.mark.parametrize("size", [1000, 12_000_000], ids=["1 KB", "12 MB"])
def test_a_memory_alarm_is_75_with_the_brokers_reason(frail_lab, size):
    frail_lab.mq.broker.raise_memory_alarm()
    path = frail_lab.claim("a", fill="x" * size)
    running = frail_lab.start("publish", path, env={"EAI_AMQP_URL": frail_lab.mq.url("blocked_connection_timeout=2")})
    wait_for(lambda: "low on memory" in running.err(), what="the broker's reason is told at once")
    told = time.monotonic()
    running.wait(40).ended_with(75, path)
    assert time.monotonic() - told < 15
    frail_lab.mq.broker.clear_alarms()
    assert len(frail_lab.mq.read("claim.in")) <= 1
    frail_lab.mq.ends_with()


@pytest.mark.case(10)
def test_a_claim_held_up_by_an_alarm_is_published_when_it_clears(frail_lab):
    broker = frail_lab.mq.broker
    broker.raise_memory_alarm()
    running = frail_lab.start("publish", frail_lab.claim("a"))
    wait_for(lambda: "low on memory" in running.err(), what="the broker's reason is told at once")
    assert running.alive()
    broker.clear_alarms()
    running.wait().ended_with(0)
    frail_lab.mq.ends_with(claim_in=["a"])


@pytest.mark.case(10)
def test_topology_is_bounded_under_a_memory_alarm(frail_lab):
    frail_lab.mq.broker.raise_memory_alarm()
    done = frail_lab.topology(bound=40)
    assert done.status in (0, 75), done
    frail_lab.mq.broker.clear_alarms()
    frail_lab.mq.ends_with()


@pytest.mark.case(11)
def test_a_broker_frozen_after_the_body_is_75_and_a_rerun_gives_one_call(frail_lab):
    broker = frail_lab.mq.broker
    proxy = frail_lab.also(Proxy(broker.port))
    proxy.when_seen(MARKER.encode(), broker.freeze)
    path = frail_lab.claim(MARKER)
    done = frail_lab.publish("--confirm-timeout", "3", path, env=through(frail_lab, proxy), bound=40)
    broker.thaw()
    done.ended_with(75, path)
    assert done.seconds < 20
    frail_lab.publish(path).ended_with(0)
    frail_lab.consume()
    assert frail_lab.claims.calls(MARKER) == 1
    frail_lab.mq.ends_with()


@pytest.mark.case(12)
def test_published_claims_survive_a_restart_of_the_broker(frail_lab):
    frail_lab.publish(*[frail_lab.claim(each) for each in "abc"]).ended_with(0)
    frail_lab.mq.broker.kill()
    frail_lab.mq.broker.start()
    for _, properties, _ in frail_lab.mq.ends_with(claim_in=["a", "b", "c"]):
        assert (properties.delivery_mode, properties.content_type) == (2, "application/json")


def test_a_peer_that_stops_reading_does_not_hang_it(lab):
    """Connected and logged in, then nothing is read any more: a body larger than every buffer."""
    proxy = lab.also(Proxy(lab.mq.broker.port))
    proxy.when_seen(b"basic-marker", lambda: proxy.pause("up", "down"))
    path = lab.file("big.json", '{"guid":"g","m":"basic-marker","fill":"%s"}' % ("x" * 30_000_000))
    done = lab.publish("--confirm-timeout", "3", path, env=through(lab, proxy, "heartbeat=2"), bound=80)
    assert done.status == 75, done
    proxy.cut()
    lab.mq.ends_with()
