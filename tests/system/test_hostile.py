"""A claims system, a body or a broker that means ill: bounded memory, bounded time, settled as SPEC section 6 says."""
import gzip
import itertools
import os
import resource
import socket
import struct
import threading
import time

import pika
import pytest

from support.claims import ACCEPTED, Answer
from support.listening import Listening
from support.fake_broker import ACK, BODY, CONFIRM_SELECT, CONSUME, QOS_OK, FakeBroker, deliver, frame, method
from support.store import everything_in
from support.waiting import wait_for

MB = 1 << 20
SMALL_STACK = ((resource.RLIMIT_STACK, MB),)
DEEP = 1_000_000  # levels of JSON
BOUND = 60        # seconds that a call of 3 seconds, made twice, never needs


def without_quarantine():
    """What was freed would be kept by the sanitizer, and counted as used."""
    return f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb=1".lstrip(":")


def start(lab, *options, query=""):
    """A consumer that has begun to consume, and the memory it has used for that."""
    env = {"EAI_AMQP_URL": lab.mq.url(query), "ASAN_OPTIONS": without_quarantine()}
    running = lab.consumer("--timeout", "3", *options, env=env)
    wait_for(lambda: lab.mq.consumers() == 1, what="it consumes")
    return running, running.peak_resident_bytes()


def consume(lab):
    """Hand over the claim g; the consumer's end. Its memory stays bounded while it works."""
    running, at_begin = start(lab)
    lab.mq.put("g")
    wait_for(lambda: lab.mq.depth() == 0, BOUND, "g is settled")
    grown = running.peak_resident_bytes() - at_begin
    done = running.stop().ended_with(0)
    assert grown < 16 * MB, f"grew by {grown} bytes"
    return done


# --- the claims system's answer

def head(status, *lines):
    return "\r\n".join([f"HTTP/1.1 {status} Status", *lines, "", ""]).encode()


def slowly(pieces):
    for piece in pieces:
        time.sleep(0.05)
        yield piece


HEADER = b"X-Header: " + b"x" * 500 + b"\r\n"
PIECE = b"x" * MB
CHUNK = b"100000\r\n" + PIECE + b"\r\n"
# Packs a thousandfold, and is itself longer than what is read of an answer.
BOMB = gzip.compress(bytes(128 * MB))

# name -> status -> what is sent at once, and what is then sent for as long as it is taken
ENDLESS = {
    "headers": lambda status: (head(status)[:-2], itertools.repeat(HEADER * 100)),
    "a header line": lambda status: (head(status)[:-2] + b"X: ", itertools.repeat(PIECE)),
    "a declared body of 1 GB": lambda status: (head(status, f"Content-Length: {1024 * MB}"), itertools.repeat(PIECE, 1024)),
    "a body of 1 GB up to the end": lambda status: (head(status), itertools.repeat(PIECE, 1024)),
    "chunks": lambda status: (head(status, "Transfer-Encoding: chunked"), itertools.repeat(CHUNK)),
    "one chunk": lambda status: (head(status, "Transfer-Encoding: chunked") + b"7fffffffffffffff\r\n", itertools.repeat(PIECE)),
    "a chunk's size": lambda status: (head(status, "Transfer-Encoding: chunked"), itertools.repeat(b"0" * MB)),
    "a chunk's extension": lambda status: (head(status, "Transfer-Encoding: chunked") + b"1;", itertools.repeat(PIECE)),
    "trailers": lambda status: (head(status, "Transfer-Encoding: chunked") + b"0\r\n", itertools.repeat(HEADER * 100)),
    "a packed body": lambda status: (head(status, "Content-Encoding: gzip", f"Content-Length: {len(BOMB)}"), [BOMB]),
    "packed chunks": lambda status: (head(status, "Transfer-Encoding: gzip, chunked"), [b"%x\r\n" % len(BOMB) + BOMB + b"\r\n0\r\n\r\n"]),
    "slow headers": lambda status: (head(status)[:-2], slowly(itertools.repeat(b"X: y\r\n"))),
    "a slow header line": lambda status: (head(status)[:-2], slowly(itertools.repeat(b"x"))),
    "a slow body": lambda status: (head(status, "Content-Length: 1000000"), slowly(itertools.repeat(b"x"))),
    "slow chunks": lambda status: (head(status, "Transfer-Encoding: chunked"), slowly(itertools.repeat(b"1\r\nx\r\n"))),
}


def endless(make, status):
    """Each call gets a stream of its own."""
    def answer(request):
        raw, stream = make(status)
        return Answer(raw=raw, stream=stream, then="hang")
    return answer


@pytest.mark.parametrize("status", [201, 503])
@pytest.mark.parametrize("make", ENDLESS.values(), ids=ENDLESS)
def test_an_answer_without_an_end_is_its_status(lab, make, status):
    lab.claims.answer = endless(make, status)
    done = consume(lab)
    calls, dead = (1, []) if status == 201 else (2, ["g"])
    assert lab.claims.calls("g") == calls
    assert (done.summary["accepted"], done.summary["dead_lettered"]) == (2 - calls, calls - 1)
    lab.mq.ends_with(dead=dead)


@pytest.mark.parametrize("name", ["headers", "a header line", "a declared body of 1 GB", "a body of 1 GB up to the end", "chunks",
                                  "one chunk", "a chunk's extension", "trailers"])
def test_an_answer_without_an_end_is_not_read_on(lab, name):
    """What is in the sockets' buffers is sent, not much more: the connection is ended long before the time is up."""
    lab.claims.answer = endless(ENDLESS[name], 201)
    consume(lab)
    assert lab.claims.streamed < 64 * MB
    lab.mq.ends_with()


NO_ANSWER = {
    "100 Continue": lambda: (b"", itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)),
    "103 with headers": lambda: (b"HTTP/1.1 103 Early Hints\r\n", itertools.repeat(HEADER * 100)),
    "a status line": lambda: (b"HTTP/1.1 201 ", itertools.repeat(PIECE)),
    "no HTTP": lambda: (b"hello\n", itertools.repeat(b"hello\n" * 10_000)),
    "zeros": lambda: (b"", itertools.repeat(bytes(MB))),
    "slow 100 Continue": lambda: (b"", slowly(itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n"))),
    "a slow status line": lambda: (b"HTTP/1.1 201 ", slowly(itertools.repeat(b"x"))),
}


@pytest.mark.parametrize("make", NO_ANSWER.values(), ids=NO_ANSWER)
def test_what_never_becomes_an_answer_is_requeued_once_and_then_dead_lettered(lab, make):
    def answer(_):
        raw, stream = make()
        return Answer(raw=raw, stream=stream, then="hang")
    lab.claims.answer = answer
    done = consume(lab)
    assert lab.claims.calls("g") == 2
    assert (done.summary["accepted"], done.summary["requeued"], done.summary["dead_lettered"]) == (0, 1, 1)
    lab.mq.ends_with(dead=["g"])


def test_one_kib_of_an_endless_answer_is_kept(lab):
    lab.claims.answer = endless(ENDLESS["chunks"], 422)
    consume(lab)
    kept = [value for value in everything_in(lab.store) if isinstance(value, bytes) and b"xxx" in value]
    assert kept == [b"x" * 1024]
    lab.mq.ends_with(dead=["g"])


def test_twenty_calls_that_are_sent_bytes_without_an_end_hold_up_no_others(lab):
    """Nor the heartbeats: reading all that comes would keep the loop from everything else."""
    bad, good = [f"bad{n}" for n in range(20)], [f"good{n}" for n in range(40)]
    chunk = head(503, "Transfer-Encoding: chunked") + b"1;"
    lab.claims.answers = {each: [Answer(raw=chunk, stream=itertools.repeat(PIECE)), ACCEPTED] for each in bad}
    running, at_begin = start(lab, "--prefetch", "60", query="heartbeat=4")
    lab.mq.put(*good, *bad)
    wait_for(lambda: lab.mq.depth() == 0, 2 * BOUND, "all is settled")
    grown = running.peak_resident_bytes() - at_begin
    done = running.stop().ended_with(0)
    assert grown < 64 * MB, f"grew by {grown} bytes"
    assert done.summary["accepted"] == 60
    assert "lost" not in done.err
    lab.mq.ends_with()


# --- the claim's body

DEEP_BODIES = {
    "arrays": lambda guid: b'{"a":' + b"[" * DEEP + b"]" * DEEP + b',"guid":"%s"}' % guid,
    "objects": lambda guid: b'{"a":' + b'{"guid":' * DEEP + b"1" + b"}" * DEEP + b',"guid":"%s"}' % guid,
}


@pytest.mark.parametrize("make", DEEP_BODIES.values(), ids=DEEP_BODIES)
def test_depth_costs_no_stack(lab, make):
    """A million levels, on a stack of 1 MiB, read by publish, and by a consumer that has to look for the guid itself."""
    path = lab.file("deep.json", make(b"published"))
    lab.publish(path, limits=SMALL_STACK).ended_with(0)
    lab.mq.put("x", body=make(b"foreign"), message_id=None)
    done = lab.consume(limits=SMALL_STACK)
    assert lab.claims.calls_by_id() == {"published": 1, "foreign": 1}
    assert done.summary["accepted"] == 2
    lab.mq.ends_with()


def test_depth_without_an_end_is_no_claim(lab):
    body = b'{"guid":"g","a":' + b"[" * DEEP
    lab.publish(lab.file("deep.json", body), limits=SMALL_STACK).ended_with(65, "deep.json", "no JSON")
    lab.mq.put("x", body=body, message_id=None)
    lab.consume(limits=SMALL_STACK)
    assert lab.claims.connections == 0
    [(_, properties, got)] = lab.mq.read("claim.dead")
    assert got == body and properties.message_id is None
    lab.mq.ends_with()


def test_a_large_claim_leaves_no_memory_behind(lab):
    """What the library has read it into is given back: a second one and all that comes later costs no more."""
    body = b'{"guid":"large","fill":"' + b"x" * (48 * MB) + b'"}'
    running, at_begin = start(lab)
    lab.mq.put("large", body=body)
    wait_for(lambda: lab.mq.depth() == 0, BOUND, "it is handed over")
    wait_for(lambda: running.resident_bytes() - at_begin < 24 * MB, 10, "its memory is given back")
    running.stop().ended_with(0)
    assert len(lab.claims.requests[0].body) == len(body)
    lab.mq.ends_with()


# --- what foreign publishers put on the broker

class NestedHeaders(pika.BasicProperties):
    """A message_id, and a header of arrays in arrays, as deep as a frame of 128 KiB allows. pika's own encoder recurses."""

    def encode(self):
        levels = 26_000
        arrays = b"".join(b"A" + struct.pack(">I", 5 * rest) for rest in reversed(range(levels)))
        table = b"\x01n" + arrays
        headers, delivery_mode, message_id = 1 << 13, 1 << 12, 1 << 7
        return [struct.pack(">HI", headers | delivery_mode | message_id, len(table)), table, b"\x02", b"\x01g"]


def test_deeply_nested_headers_do_not_end_the_consumer(lab):
    with lab.mq.channel() as channel:
        channel.basic_publish("", "claim.in", b"{}", NestedHeaders())
    wait_for(lambda: lab.mq.depth() == 1, what="it is on the queue")
    lab.consume()
    assert lab.claims.calls_by_id() == {"g": 1}
    lab.mq.ends_with()


# --- what answers on the broker's port

class Flood:
    """Takes connections and sends each of them the same bytes for as long as they are taken."""

    def __init__(self, first, piece):
        self._first, self._piece = first, piece
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self._listening = Listening(listener, self._take_connection)

    def close(self):
        self._listening.close()

    def _take_connection(self, connection):
        threading.Thread(target=self._send, args=(connection,), daemon=True).start()

    def _send(self, connection):
        with connection:
            try:
                connection.sendall(self._first)
                while True:
                    connection.sendall(self._piece)
            except OSError:
                pass


FLOODS = {
    "zeros": (b"", bytes(MB)),
    "heartbeats": (b"", frame(8, 0, b"") * 10_000),
    "a frame of 2 GB": (struct.pack(">BHI", 1, 0, 0x7FFFFFF0), bytes(MB)),
    "frames of many channels": (b"", b"".join(frame(1, channel, struct.pack(">HH", 60, 80) + bytes(9)) for channel in range(1, 10_000))),
    "HTTP": (b"HTTP/1.1 400 Bad Request\r\n\r\n", PIECE),
}


@pytest.mark.parametrize("program", ["publish", "topology", "consumer"])
@pytest.mark.parametrize("first, piece", FLOODS.values(), ids=FLOODS)
def test_a_flood_in_place_of_a_broker_is_69_in_bounded_time_and_memory(lab, program, first, piece):
    flood = lab.also(Flood(first, piece))
    options = {"publish": [lab.claim("g")], "topology": [], "consumer": ["--claim", lab.claims.url, "--max-seconds", "5"]}[program]
    env = {"EAI_AMQP_URL": lab.mq.url("stack_timeout=4&retry_delay=1", port=flood.port), "ASAN_OPTIONS": without_quarantine()}
    running = lab.start(program, *options, env=env)
    peaks = []
    wait_for(lambda: peaks.append(running.peak_resident_bytes()) or not running.alive(), BOUND, "it ends")
    running.wait().ended_with(69)
    assert max(peaks) < 128 * MB, "a sanitizer's own share included"
    lab.mq.ends_with()


# name -> what is sent at once, and what is then sent for as long as it is taken
LOGGED_IN = {
    "answers to nothing": (b"", method(1, QOS_OK) * 10_000),
    "body frames without a byte": (deliver(5), frame(BODY, 1, b"") * 10_000),
    "alarms in the middle of a message": (deliver(5), method(0, (10, 60), b"\x03low") * 10_000),
    "channels": (b"", b"".join(method(channel, ACK, bytes(9)) for channel in range(1, 30_000))),
    "confirms of nothing": (b"", method(1, ACK, struct.pack(">QB", 1 << 40, 0)) * 10_000),
}


@pytest.mark.parametrize("first, piece", LOGGED_IN.values(), ids=LOGGED_IN)
def test_a_broker_that_floods_a_consumer_does_not_keep_it(lab, first, piece):
    broker = lab.also(FakeBroker(CONSUME, first, piece))
    env = {"EAI_AMQP_URL": broker.url, "ASAN_OPTIONS": without_quarantine()}
    running = lab.consumer("--max-seconds", "2", "--timeout", "3", env=env)
    peaks = []
    wait_for(lambda: peaks.append(running.peak_resident_bytes()) or not running.alive(), BOUND, "it ends")
    done = running.wait()
    assert done.status in (0, 69, 71) and broker.flooded > 0
    assert max(peaks) < 128 * MB
    lab.mq.ends_with()


@pytest.mark.parametrize("name", ["answers to nothing", "channels", "confirms of nothing"])
def test_a_broker_that_floods_publish_does_not_keep_it(lab, name):
    broker = lab.also(FakeBroker(CONFIRM_SELECT, *LOGGED_IN[name]))
    env = {"EAI_AMQP_URL": broker.url, "ASAN_OPTIONS": without_quarantine()}
    running = lab.start("publish", "--confirm-timeout", "2", lab.claim("g"), env=env)
    peaks = []
    wait_for(lambda: peaks.append(running.peak_resident_bytes()) or not running.alive(), BOUND, "it ends")
    running.wait().ended_with(75)
    assert max(peaks) < 128 * MB and broker.flooded > 0
    lab.mq.ends_with()
