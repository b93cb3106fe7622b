"""A claims system that answers as told: it keeps every request and can misbehave in every way a server can.

A test sets `claims.answer`, a function of the request, or `claims.answers[id]`, a list of answers for the first, second …
call for that id, of which the last repeats.
"""
import collections
import socket
import struct
import threading
import time
import urllib.parse
from dataclasses import dataclass, field

from .listening import Listening, shut

GATE_BOUND = 120


@dataclass
class Answer:
    status: int = 201
    headers: tuple = ()
    body: bytes = b"{}"
    delay: float = 0            # seconds of work before the answer
    gate: object = None         # a threading.Event: the answer waits for it
    raw: bytes = None           # sent instead of an HTTP answer; b"" sends nothing
    stream: object = None       # an iterable of bytes: sent after that, one after the other, until the caller has enough
    claimed_length: int = None  # Content-Length to announce, when it is not that of body
    trickle: float = 0          # seconds between two bytes of the answer
    then: str = "keep"          # keep, close, reset, or hang: what happens to the connection afterwards


ACCEPTED = Answer()
REJECTED = Answer(422, body=b'{"error":"documents missing"}')
BUSY = Answer(503, body=b"busy")
DROPPED = Answer(raw=b"", then="close")


@dataclass
class Request:
    method: str
    path: str
    version: str
    headers: list
    body: bytes
    connection: int
    started: float
    ended: float = field(default=None)

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def one(self, name):
        values = self.all(name)
        assert len(values) == 1, f"{name} is there {len(values)} times: {self.headers}"
        return values[0]

    @property
    def id(self):
        return urllib.parse.unquote(self.one("Idempotency-Key").strip('"'))


class Claims:
    def __init__(self, serial=False, tls=None, host="127.0.0.1", port=0):
        self.answer = None
        self.answers = {}
        self.requests = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.connections = 0
        self.streamed = 0
        self._tls = tls
        self._serial = serial
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._open = set()
        self._counts = collections.Counter()
        listener = socket.create_server((host, port), backlog=512)
        self.host, self.port = listener.getsockname()[:2]
        self._listening = Listening(listener, self._take_connection)

    @property
    def url(self):
        return f"{'https' if self._tls else 'http'}://{self.host}:{self.port}"

    def calls(self, each=None):
        """How many requests came, for one id or for all."""
        with self._lock:
            return len(self.requests) if each is None else self._counts.get(each, 0)

    def calls_by_id(self):
        with self._lock:
            return dict(self._counts)

    def open_connections(self):
        with self._lock:
            return len(self._open)

    def unread(self):
        """How many bytes of answers the clients' kernels hold that the clients have not read yet."""
        with open("/proc/net/tcp") as rows:
            fields = [row.split() for row in list(rows)[1:]]
        return sum(int(each[4].split(":")[1], 16) for each in fields if int(each[2].split(":")[1], 16) == self.port)

    def close(self):
        self._closing.set()
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            shut(connection)
        self._listening.close()

    # --- one connection

    def _take_connection(self, connection):
        self.connections += 1
        arguments = (connection, self.connections)
        if self._serial:
            self._serve(*arguments)
        else:
            threading.Thread(target=self._serve, args=arguments, daemon=True).start()

    def _serve(self, connection, number):
        with self._lock:
            self._open.add(connection)
        try:
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection.makefile("rb") as stream:
                while self._one_request(connection, stream, number):
                    pass
        except OSError:
            pass
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _one_request(self, connection, stream, number):
        request = _read_request(stream, number)
        if request is None:
            return False
        answer = self._take(request)
        if answer.gate:
            answer.gate.wait(GATE_BOUND)
        self._closing.wait(answer.delay)
        with self._lock:
            self.in_flight -= 1
            request.ended = time.monotonic()
        _send(connection, answer)
        for piece in answer.stream or ():
            connection.sendall(piece)
            self.streamed += len(piece)
        return self._afterwards(connection, answer.then)

    def _take(self, request):
        with self._lock:
            self.requests.append(request)
            self._counts[request.id] += 1
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            if self.answer:
                return self.answer(request)
            listed = self.answers.get(request.id) or [ACCEPTED]
            earlier = self._counts[request.id] - 1
            return listed[min(earlier, len(listed) - 1)]

    def _afterwards(self, connection, then):
        if then == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if then == "hang":
            self._closing.wait(GATE_BOUND)
        return then == "keep"


def _read_request(stream, number):
    line = stream.readline(65536)
    if not line.endswith(b"\n"):
        return None
    started = time.monotonic()
    method, path, version = line.decode("latin-1").rstrip("\r\n").split(" ", 2)
    headers = list(iter(lambda: _read_header(stream), None))
    lengths = [value for key, value in headers if key.lower() == "content-length"]
    size = int(lengths[0]) if lengths else 0
    body = stream.read(size)
    return Request(method, path, version, headers, body, number, started) if len(body) == size else None


def _read_header(stream):
    line = stream.readline(65536).decode("latin-1").rstrip("\r\n")
    return tuple(part.strip(" ") for part in line.split(":", 1)) if line else None


def _send(connection, answer):
    data = answer.raw if answer.raw is not None else _http(answer)
    if not answer.trickle:
        connection.sendall(data)
        return
    for at in range(len(data)):
        connection.sendall(data[at:at + 1])
        time.sleep(answer.trickle)


def _http(answer):
    length = len(answer.body) if answer.claimed_length is None else answer.claimed_length
    headers = [("Content-Length", length), ("Content-Type", "application/json"), *answer.headers]
    if answer.then == "close":
        headers.append(("Connection", "close"))
    lines = [f"HTTP/1.1 {answer.status} Status", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + answer.body
