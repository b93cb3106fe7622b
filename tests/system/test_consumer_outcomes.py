"""The consumer's call and what the answer means: SPEC section 6, "The call" and "What the answer means"."""
import hashlib
import os
import ssl
import threading
import time

import pytest

from support.claims import ACCEPTED, BUSY, DROPPED, REJECTED, Answer, Claims
from support.ports import RefusedPort
from support.waiting import holds_for, wait_for

FAILURES = {
    "503": BUSY,
    "500": Answer(500),
    "404": Answer(404),
    "401": Answer(401),
    "400": Answer(400),
    "409": Answer(409),
    "429": Answer(429),
    "200": Answer(200),
    "202": Answer(202),
    "204": Answer(raw=b"HTTP/1.1 204 No Content\r\n\r\n"),
    "301": Answer(301, headers=(("Location", "/elsewhere"),)),
    "303": Answer(303, headers=(("Location", "/elsewhere"),)),
    "307": Answer(307, headers=(("Location", "/elsewhere"),)),
    "401 with a challenge": Answer(401, headers=(("WWW-Authenticate", 'Basic realm="x"'),)),
    "417": Answer(417),
    "closed without an answer": DROPPED,
    "reset": Answer(raw=b"", then="reset"),
    "no HTTP": Answer(raw=b"hello\n", then="close"),
    "status 99": Answer(raw=b"HTTP/1.1 99 x\r\n\r\n", then="close"),
    "4 bytes": Answer(raw=b"HTTP", then="close"),
    "binary": Answer(raw=bytes(range(256)), then="close"),
    "a cut status line": Answer(raw=b"HTTP/1.1 20", then="close"),
    "only an interim answer": Answer(raw=b"HTTP/1.1 100 Continue\r\n\r\n", then="close"),
    "422 in a cut status line": Answer(raw=b"HTTP/1.1 42", then="close"),
}


@pytest.mark.cell("in flight", "answer cut")
@pytest.mark.cell("in flight", "answer garbage")
@pytest.mark.case(24, 33)
@pytest.mark.parametrize("answer", FAILURES.values(), ids=FAILURES)
def test_any_other_answer_is_requeued_once_and_then_dead_lettered(lab, answer):
    lab.claims.answer = lambda request: answer
    lab.mq.put("g")
    done = lab.consume()
    assert lab.claims.calls("g") == 2 == lab.claims.calls()
    assert (done.summary["requeued"], done.summary["dead_lettered"], done.summary["accepted"]) == (1, 1, 0)
    lab.mq.ends_with(dead=["g"])


@pytest.mark.cell("in flight", "claims system hangs")
@pytest.mark.cell("in flight", "claims system trickles")
@pytest.mark.case(35)
@pytest.mark.parametrize("answer", [Answer(raw=b"", then="hang"), Answer(raw=b"HTTP/1.1 2", then="hang"), Answer(trickle=0.2)],
                         ids=["silence", "half a status line", "trickle"])
def test_a_timeout_is_requeued_once_and_then_dead_lettered(lab, answer):
    lab.claims.answer = lambda request: answer
    lab.mq.put("g")
    done = lab.consume("--timeout", "1")
    assert lab.claims.calls("g") == 2
    assert (done.summary["requeued"], done.summary["dead_lettered"]) == (1, 1)
    gap = lab.claims.requests[1].started - lab.claims.requests[0].started
    assert 0.9 <= gap < 10
    keys = {request.one("Idempotency-Key") for request in lab.claims.requests}
    assert len(keys) == 1, "the same on every attempt"
    lab.mq.ends_with(dead=["g"])


@pytest.mark.case(35)
def test_work_done_after_the_timeout_is_called_again_with_the_same_key(lab):
    lab.claims.answers["g"] = [Answer(201, delay=3), ACCEPTED]
    lab.mq.put("g")
    done = lab.consume("--timeout", "1")
    assert lab.claims.calls("g") == 2 and done.summary["accepted"] == 1
    assert lab.claims.requests[0].all("Idempotency-Key") == lab.claims.requests[1].all("Idempotency-Key")
    lab.mq.ends_with()


@pytest.mark.cell("in flight", "claims system refuses")
@pytest.mark.case(34)
def test_a_claims_system_that_is_down_is_tried_twice_and_then_dead_lettered(lab):
    class Down:
        url = f"http://127.0.0.1:{lab.also(RefusedPort()).port}"
    lab.mq.put("g")
    done = lab.consume(claims=Down)
    assert (done.summary["requeued"], done.summary["dead_lettered"]) == (1, 1)
    assert lab.claims.calls() == 0
    lab.mq.ends_with(dead=["g"])


@pytest.mark.cell("in flight", "claims system unresolvable")
def test_a_claims_host_that_does_not_resolve_is_a_connection_failure(lab):
    class Nowhere:
        url = "http://no-such-host.invalid:9202"
    lab.mq.put("g")
    done = lab.consume(claims=Nowhere)
    assert (done.summary["requeued"], done.summary["dead_lettered"]) == (1, 1)
    lab.mq.ends_with(dead=["g"])


def test_201_is_recorded_and_acked(lab):
    lab.mq.put("g")
    done = lab.consume()
    assert lab.claims.calls("g") == 1 and done.summary["accepted"] == 1
    lab.mq.ends_with()


def test_422_is_dead_lettered_at_once_with_everything_it_had(lab):
    lab.claims.answer = lambda request: REJECTED
    lab.mq.put("g", headers={"trace": "t-1"}, correlation_id="c-1")
    done = lab.consume()
    assert lab.claims.calls("g") == 1 and done.summary["rejected"] == 1
    [(_, properties, body)] = lab.mq.ends_with(dead=["g"])
    assert body == b'{"guid":"g","amount":12.5}'
    assert (properties.delivery_mode, properties.correlation_id, properties.headers["trace"]) == (2, "c-1", "t-1")
    [death] = properties.headers["x-death"]
    assert (death["queue"], death["reason"], death["count"]) == ("claim.in", "rejected", 1)


def test_503_and_then_201_is_accepted_in_two_calls(lab):
    lab.claims.answers["g"] = [BUSY, ACCEPTED]
    lab.mq.put("g")
    done = lab.consume()
    assert lab.claims.calls("g") == 2
    assert (done.summary["requeued"], done.summary["accepted"], done.summary["dead_lettered"]) == (1, 1, 0)
    lab.mq.ends_with()


def test_503_and_then_422_is_rejected(lab):
    lab.claims.answers["g"] = [BUSY, REJECTED]
    lab.mq.put("g")
    done = lab.consume()
    assert (done.summary["requeued"], done.summary["rejected"]) == (1, 1)
    lab.mq.ends_with(dead=["g"])


# --- the broker's redelivered flag

def put_redelivered(mq, guid):
    """A message that another client has had and given back."""
    mq.put(guid)
    with mq.channel() as channel:
        method, _, _ = channel.basic_get("claim.in")
        channel.basic_nack(method.delivery_tag, requeue=True)
    wait_for(lambda: mq.unacked() == 0, what="it is back")


@pytest.mark.parametrize("answer, outcome, dead", [(ACCEPTED, "accepted", []), (REJECTED, "rejected", ["g"]),
                                                   (BUSY, "dead_lettered", ["g"]), (DROPPED, "dead_lettered", ["g"])],
                         ids=["201", "422", "503", "dropped"])
def test_a_redelivered_message_is_called_once_and_never_requeued(lab, answer, outcome, dead):
    put_redelivered(lab.mq, "g")
    lab.claims.answer = lambda request: answer
    done = lab.consume()
    assert lab.claims.calls("g") == 1
    assert (done.summary[outcome], done.summary["requeued"]) == (1, 0)
    lab.mq.ends_with(dead=dead)


def test_a_redelivered_claim_times_out_into_claim_dead(lab):
    put_redelivered(lab.mq, "g")
    lab.claims.answer = lambda request: Answer(raw=b"", then="hang")
    lab.consume("--timeout", "0.5")
    assert lab.claims.calls("g") == 1
    lab.mq.ends_with(dead=["g"])


# --- 201 means 201, whatever follows its status line

ACCEPTED_ODDLY = {
    "body cut": Answer(201, claimed_length=1000, then="close"),
    "body reset": Answer(201, claimed_length=1000, then="reset"),
    "body never comes": Answer(201, claimed_length=1000, then="hang"),
    "no length": Answer(raw=b"HTTP/1.1 201 Created\r\n\r\n{}", then="close"),
    "HTTP/1.0": Answer(raw=b"HTTP/1.0 201 Created\r\n\r\n", then="close"),
    "no reason phrase": Answer(raw=b"HTTP/1.1 201\r\nContent-Length: 0\r\n\r\n"),
    "chunked": Answer(raw=b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
    "chunks cut": Answer(raw=b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{}", then="close"),
    "after an interim answer": Answer(raw=b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"),
    "1 MB body": Answer(201, body=b"x" * 1_000_000),
    "binary body": Answer(201, body=bytes(range(256)) * 300),
    "headers cut": Answer(raw=b"HTTP/1.1 201 Created\r\nContent-", then="close"),
    "status line alone": Answer(raw=b"HTTP/1.1 201 Created\r\n", then="close"),
    "Location": Answer(201, headers=(("Location", "/claims/1"),)),
}


@pytest.mark.cell("in flight", "reset in mid-body")
@pytest.mark.parametrize("answer", ACCEPTED_ODDLY.values(), ids=ACCEPTED_ODDLY)
def test_201_counts_although_its_rest_is_odd(lab, answer):
    lab.claims.answer = lambda request: answer
    lab.mq.put("g")
    done = lab.consume("--timeout", "2")
    assert lab.claims.calls("g") == 1 and done.summary["accepted"] == 1
    lab.mq.ends_with()


def test_an_endless_answer_ends_with_the_call(lab):
    lab.claims.answers["g"] = [Answer(503, body=b"y" * 20_000_000)]
    lab.mq.put("g", "next")
    done = lab.consume("--prefetch", "1")
    assert lab.claims.calls("g") == 2 and lab.claims.calls("next") == 1
    assert "yyyyyyyyyy" * 120 not in done.err, "at most 1 KiB is kept as the reason"
    lab.mq.ends_with(dead=["g"])


# --- the request

def test_the_request_is_what_the_contract_says(lab):
    body = b'{ "guid":"g-1", "n":1.50e3 }\r\n'
    lab.mq.put("g-1", body=body)
    lab.consume()
    [request] = lab.claims.requests
    assert (request.method, request.path, request.version) == ("POST", "/v1/claims", "HTTP/1.1")
    assert request.body == body
    assert request.one("Content-Type") == "application/json"
    assert request.one("Idempotency-Key") == '"g-1"'
    assert request.one("Content-Length") == str(len(body))
    assert request.one("Host") == f"127.0.0.1:{lab.claims.port}"
    assert request.all("Expect") == [] and request.all("Authorization") == []
    lab.mq.ends_with()


@pytest.mark.parametrize("suffix, path", [("/", "/v1/claims"), ("/base", "/base/v1/claims"), ("/base/", "/base/v1/claims"), ("/a%20b/c", "/a%20b/c/v1/claims")])
def test_the_claims_url_may_have_a_path_and_a_trailing_slash(lab, suffix, path):
    class Based:
        url = lab.claims.url + suffix
    lab.mq.put("g")
    lab.consume(claims=Based)
    assert [request.path for request in lab.claims.requests] == [path]
    lab.mq.ends_with()


KEYS = {
    "plain": ("c-1", '"c-1"'),
    "header injection": ("a\r\nX-Evil: 1", '"a%0D%0AX-Evil: 1"'),
    "quote, backslash, percent": ('a"b\\c%d', '"a%22b%5Cc%25d"'),
    "UTF-8": ("caf\u00e9 \u20ac", '"caf%C3%A9 %E2%82%AC"'),
    "control characters": ("a\x00b\x01c\x7f", '"a%00b%01c%7F"'),
    "space and tilde": (" ~ ", '" ~ "'),
    "255 bytes": ("k" * 255, '"' + "k" * 255 + '"'),
    "85 euro signs": ("\u20ac" * 85, '"' + "%E2%82%AC" * 85 + '"'),
}


@pytest.mark.case(45)
@pytest.mark.parametrize("guid, header", KEYS.values(), ids=KEYS)
def test_any_message_id_becomes_one_header(lab, guid, header):
    lab.mq.put(guid, body=b'{"guid":"other"}')
    done = lab.consume()
    [request] = lab.claims.requests
    assert request.one("Idempotency-Key") == header
    assert request.all("X-Evil") == [] and done.summary["accepted"] == 1
    lab.mq.ends_with()


@pytest.mark.parametrize("properties", [{"message_id": None}, {"message_id": ""}], ids=["none", "empty"])
def test_a_message_without_id_is_known_by_its_bodys_guid(lab, properties):
    lab.mq.put("x", body=b'{"guid":"from-body"}', **properties)
    lab.mq.put("x", body=b'{"guid":"from-body"}', **properties)
    done = lab.consume()
    assert [request.one("Idempotency-Key") for request in lab.claims.requests] == ['"from-body"']
    assert (done.summary["accepted"], done.summary["duplicate"]) == (1, 1)
    lab.mq.ends_with()


@pytest.mark.parametrize("body", [b"", b"no json", b"{}", b'{"guid":""}', b'{"guid":7}', b"[]", b"\xff\x00", b'{"guid":"a","guid":"b"}'], ids=repr)
def test_a_message_that_nothing_identifies_goes_to_claim_dead_uncalled(lab, body):
    lab.mq.put("x", body=body, message_id=None)
    done = lab.consume()
    assert lab.claims.connections == 0 and done.summary["accepted"] == 0
    lab.mq.broker.eval("ok")
    [(_, properties, got)] = lab.mq.read("claim.dead")
    assert got == body and properties.message_id is None
    lab.mq.ends_with()


def test_a_foreign_body_that_is_no_json_is_sent_as_it_is(lab):
    body = bytes(range(256)) * 10
    lab.mq.put("g", body=body, content_type="text/plain", delivery_mode=1)
    lab.consume()
    [request] = lab.claims.requests
    assert request.body == body and request.one("Content-Type") == "application/json"
    lab.mq.ends_with()


def test_an_empty_body_with_an_id_is_called(lab):
    lab.mq.put("g", body=b"")
    lab.consume()
    [request] = lab.claims.requests
    assert request.body == b"" and request.one("Content-Length") == "0"
    lab.mq.ends_with()


def test_a_claim_of_12_megabytes_is_handed_over(lab):
    body = b'{"guid":"big","fill":"' + os.urandom(6_000_000).hex().encode() + b'"}'
    lab.mq.put("big", body=body)
    lab.consume()
    [request] = lab.claims.requests
    assert hashlib.sha256(request.body).digest() == hashlib.sha256(body).digest()
    lab.mq.ends_with()


# --- one request per attempt

@pytest.mark.case(31)
def test_one_attempt_puts_one_request_on_the_wire_although_a_kept_connection_dies(lab):
    """curl by itself sends a POST again when a reused connection closes without a byte."""
    lab.claims.answers = {"first": [ACCEPTED], "second": [DROPPED]}
    lab.mq.put("first", "second")
    done = lab.consume("--prefetch", "1")
    assert lab.claims.calls_by_id() == {"first": 1, "second": 2}
    first, second, again = lab.claims.requests
    assert first.connection == second.connection, "the connection was reused, so curl was tempted"
    assert again.connection != second.connection
    assert (done.summary["accepted"], done.summary["dead_lettered"]) == (1, 1)
    lab.mq.ends_with(dead=["second"])


def test_a_redelivered_claim_goes_out_on_a_fresh_connection(lab):
    lab.claims.answers = {"a": [BUSY, ACCEPTED]}
    lab.mq.put("a")
    lab.consume()
    first, again = lab.claims.requests
    assert first.connection != again.connection
    lab.mq.ends_with()


def test_a_redelivered_claim_is_not_sent_on_a_connection_that_others_left(lab):
    lab.mq.put("a", "b")
    with lab.mq.channel() as channel:  # give "b" back, so that it comes flagged, after "a"
        tags = {properties.message_id: method.delivery_tag for method, properties, _ in (channel.basic_get("claim.in"), channel.basic_get("claim.in"))}
        channel.basic_nack(tags["b"], requeue=True)
        channel.basic_nack(tags["a"], requeue=True)
    lab.consume("--prefetch", "1")
    assert lab.claims.calls_by_id() == {"a": 1, "b": 1}
    assert lab.claims.requests[0].connection != lab.claims.requests[1].connection
    lab.mq.ends_with()


def test_an_idle_connection_is_dropped_after_2_seconds(lab):
    lab.mq.put("a")
    running = lab.consumer()
    wait_for(lambda: lab.mq.depth() == 0 and lab.claims.calls("a") == 1, what="a is handed over")
    ended = lab.claims.requests[0].ended
    wait_for(lambda: not lab.claims.open_connections(), 30, "the connection is closed")
    assert time.monotonic() - ended < 10
    assert running.alive()
    running.stop().ended_with(0)
    lab.mq.ends_with()


# --- options

@pytest.mark.parametrize("options, status, outcome, dead", [
    (["--accept", "200,201"], 200, "accepted", []), (["--accept", "200,201"], 201, "accepted", []),
    (["--reject", "400,422"], 400, "rejected", ["g"]), (["--accept", "200"], 201, "dead_lettered", ["g"]),
    (["--reject", "400"], 422, "dead_lettered", ["g"]),
])
def test_accept_and_reject_change_the_lists(lab, options, status, outcome, dead):
    lab.claims.answer = lambda request: Answer(status)
    lab.mq.put("g")
    done = lab.consume(*options)
    assert done.summary[outcome] == 1, done
    lab.mq.ends_with(dead=dead)


def test_stop_on_ends_the_run_with_69_and_requeues_the_claim(lab):
    lab.claims.answer = lambda request: Answer(401)
    lab.mq.put("a", "b", "c")
    done = lab.consumer("--stop-on", "401,403", "--prefetch", "1").wait(30).ended_with(69, "401")
    assert lab.claims.calls() == 1 and done.summary["requeued"] == 1
    lab.mq.ends_with(claim_in=["a", "b", "c"])


def test_stop_on_requeues_a_redelivered_claim_too(lab):
    put_redelivered(lab.mq, "g")
    lab.claims.answer = lambda request: Answer(403)
    lab.consumer("--stop-on", "401,403").wait(30).ended_with(69)
    assert lab.claims.calls() == 1
    lab.mq.ends_with(claim_in=["g"])


# --- token

@pytest.mark.parametrize("kind", ["variable", "file", "file with newline"])
def test_the_token_is_sent_as_bearer_and_never_shown(lab, kind):
    token = "t0ken-very-secret"
    environment = {"EAI_CLAIM_TOKEN": token}
    if kind != "variable":
        environment = {"EAI_CLAIM_TOKEN_FILE": lab.file("token", token + ("\n" if "newline" in kind else ""))}
    lab.claims.answers["b"] = [Answer(401)]
    lab.mq.put("a", "b")
    running = lab.consumer("-v", env=environment)
    wait_for(lambda: lab.mq.depth() == 0, what="all is handed over")
    assert token.encode() not in running.command_line()
    done = running.stop().ended_with(0)
    assert {request.one("Authorization") for request in lab.claims.requests} == {f"Bearer {token}"}
    assert token not in done.err + done.out
    lab.mq.ends_with(dead=["b"])


def test_an_unreadable_token_file_is_66_and_named(lab):
    lab.mq.put("a")
    lab.consumer(env={"EAI_CLAIM_TOKEN_FILE": "/nonexistent/token"}).wait(30).ended_with(66, "/nonexistent/token")
    assert lab.claims.connections == 0
    lab.mq.ends_with(claim_in=["a"])


def test_an_empty_token_counts_as_not_set(lab):
    lab.mq.put("a")
    lab.consume(env={"EAI_CLAIM_TOKEN": "", "EAI_CLAIM_TOKEN_FILE": ""})
    assert lab.claims.requests[0].all("Authorization") == []
    lab.mq.ends_with()


# --- proxies and TLS

def test_proxy_variables_are_honoured_except_for_loopback(lab):
    other = lab.also(Claims())
    proxies = {"http_proxy": other.url, "HTTP_PROXY": other.url, "all_proxy": other.url, "ALL_PROXY": other.url}
    lab.mq.put("a")
    lab.consume(env=proxies)
    assert (lab.claims.calls(), other.connections) == (1, 0)

    class Remote:
        url = "http://claims.invalid"
    lab.mq.put("b")
    lab.consume(env=proxies, claims=Remote)
    assert [request.path for request in other.requests] == ["http://claims.invalid/v1/claims"]
    lab.mq.ends_with()


def test_a_certificate_that_is_not_accepted_is_71_and_settles_nothing(lab, certificates):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server_cert, certificates.server_key)
    secure = lab.also(Claims(tls=context))
    lab.mq.put("a", "b")
    lab.consumer(claims=secure).wait(60).ended_with(71, "127.0.0.1")
    assert secure.calls() == 0
    lab.mq.ends_with(claim_in=["a", "b"])


def test_several_claims_each_get_the_answer_meant_for_them(lab):
    """Answers that come out of order must not be mixed up."""
    gates = {each: threading.Event() for each in "abc"}
    statuses = {"a": 201, "b": 422, "c": 201}
    lab.claims.answers = {each: [Answer(statuses[each], gate=gates[each])] for each in "abc"}
    lab.mq.put(*[f"w{n}" for n in range(5)])  # warm up: the adaptive bound grows
    running = lab.consumer()
    wait_for(lambda: lab.mq.depth() == 0, what="warmed up")
    lab.mq.put("a", "b", "c")
    wait_for(lambda: lab.claims.in_flight == 3, what="all three are in flight")
    for each, left in ("c", 2), ("b", 1), ("a", 0):
        gates[each].set()
        wait_for(lambda: lab.mq.depth() == left, what=f"{each} is settled")
    wait_for(lambda: lab.mq.depth() == 0, what="all settled")
    done = running.stop().ended_with(0)
    assert (done.summary["accepted"], done.summary["rejected"]) == (7, 1)
    lab.mq.ends_with(dead=["b"])


def test_the_requeue_is_immediate_without_retry_delay(lab):
    lab.claims.answers["g"] = [Answer(503, headers=(("Retry-After", "20"),)), ACCEPTED]
    lab.mq.put("g")
    lab.consume()
    first, again = lab.claims.requests
    assert again.started - first.started < 8
    lab.mq.ends_with()


def test_nothing_is_called_again_after_it_is_settled(lab):
    lab.claims.answers = {"b": [REJECTED], "c": [BUSY]}
    lab.mq.put("a", "b", "c")
    running = lab.consumer()
    wait_for(lambda: lab.mq.depth() == 0, what="all settled")
    holds_for(0.5, lambda: lab.claims.calls() == 4, "no further call")
    running.stop().ended_with(0)
    lab.mq.ends_with(dead=["b", "c"])
