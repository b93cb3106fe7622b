"""A broker that lets clients in, says yes to all they ask, and after a chosen method sends the same bytes for as long as they are taken."""
import itertools
import socket
import struct
import threading

from .listening import Listening

METHOD, HEADER, BODY = 1, 2, 3
DELIVER, QOS_OK, ACK, CONSUME, CONFIRM_SELECT = (60, 60), (60, 11), (60, 80), (60, 20), (85, 10)
ANY_TABLE = struct.pack(">I", 0)

# What a client asks -> what it is told.
ANSWERS = {
    (10, 11): ((10, 30), struct.pack(">HIH", 0, 131072, 0)),      # start-ok -> tune: no heartbeats, their absence is no end
    (10, 40): ((10, 41), b"\0"),                                  # open
    (10, 50): ((10, 51), b""),                                    # close
    (20, 10): ((20, 11), struct.pack(">I", 0)),                   # channel.open
    (40, 10): ((40, 11), b""),                                    # exchange.declare
    (50, 10): ((50, 11), b"\x08claim.in" + struct.pack(">II", 0, 0)),  # queue.declare
    (50, 20): ((50, 21), b""),                                    # queue.bind
    (60, 10): (QOS_OK, b""),
    CONSUME: ((60, 21), b"\x06claimq"),
    CONFIRM_SELECT: ((85, 11), b""),
}


def frame(kind, channel, payload):
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def method(channel, number, arguments=b""):
    return frame(METHOD, channel, struct.pack(">HH", *number) + arguments)


def deliver(body_size):
    """A delivery up to its body."""
    start = b"\x01c" + struct.pack(">QB", 1, 0) + b"\0" + b"\x05claim"
    return method(1, DELIVER, start) + frame(HEADER, 1, struct.pack(">HHQH", 60, 0, body_size, 1 << 7) + b"\x01g")


class FakeBroker:
    def __init__(self, after, first, piece):
        """After the method `after`: `first`, then `piece` again and again."""
        self._after, self._first, self._piece = after, first, piece
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self.flooded = 0
        self._listening = Listening(listener, self._take_connection)

    @property
    def url(self):
        return f"amqp://guest:guest@127.0.0.1:{self.port}/?stack_timeout=4&retry_delay=1"

    def close(self):
        self._listening.close()

    def _take_connection(self, connection):
        threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as stream:
            try:
                stream.read(8)
                connection.sendall(method(0, (10, 10), b"\0\x09" + ANY_TABLE + struct.pack(">I", 5) + b"PLAIN" + struct.pack(">I", 5) + b"en_US"))
                while self._answer(connection, stream):
                    pass
                connection.sendall(self._first)
                for _ in itertools.repeat(None):
                    connection.sendall(self._piece)
                    self.flooded += 1
            except (OSError, struct.error):
                pass

    def _answer(self, connection, stream):
        """False when that was the method to flood after."""
        kind, channel, size = struct.unpack(">BHI", stream.read(7))
        payload = stream.read(size + 1)
        if kind != METHOD:
            return True
        number = struct.unpack(">HH", payload[:4])
        if number in ANSWERS:
            connection.sendall(method(channel, *ANSWERS[number]))
        return number != self._after
