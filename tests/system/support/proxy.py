"""A TCP proxy that can cut, refuse and hold back. `up` is from client to server, `down` the other way."""
import fcntl
import select
import socket
import struct
import termios
import threading
import time

from .listening import Listening, shut


class Proxy:
    def __init__(self, target_port, host="127.0.0.1", target_host="127.0.0.1"):
        self._target = (target_host, target_port)
        self._host = host
        self.connections = 0
        self.bytes = {"up": 0, "down": 0}   # passed on
        self._taken = {"up": 0, "down": 0}  # and taken for that
        self._flows = {"up": threading.Event(), "down": threading.Event()}
        self.delay = 0  # seconds that each piece is kept
        self._watched = None
        self._pairs = []
        self._listening = None
        self.port = 0
        self.resume("up", "down")
        self.accept()

    def accept(self):
        """Listen, again after refuse()."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        listener = socket.create_server((self._host, self.port), family=family, backlog=64)
        self.port = listener.getsockname()[1]
        self._listening = Listening(listener, self._serve)

    def refuse(self):
        """Refuse new connections. The open ones stay."""
        self._listening.close()

    def cut(self):
        """Reset every open connection."""
        pairs, self._pairs = self._pairs, []
        for each in [one for pair in pairs for one in pair]:
            _reset(each)

    def down(self):
        self.refuse()
        self.cut()

    def say_to_client(self, data):
        """In the server's name, while that says nothing itself."""
        for client, _ in list(self._pairs):
            client.sendall(data)

    def pause(self, *directions):
        """Hold back what goes this way: the connection stays open and silent."""
        for each in directions:
            self._flows[each].clear()

    def resume(self, *directions):
        for each in directions:
            self._flows[each].set()

    def open(self):
        """How many connections cut() would reset."""
        return len(self._pairs)

    def held(self):
        """How many bytes clients have sent that were not passed on. For a time when `up` is paused."""
        return self._taken["up"] - self.bytes["up"] + sum(_unread(client) for client, _ in list(self._pairs))

    def when_seen(self, marker, action):
        """Call action once, when a client has sent these bytes, right before they are passed on: nothing answers them before."""
        self._watched = (marker, action)

    def close(self):
        self.refuse()
        self.cut()

    def _serve(self, client):
        self.connections += 1
        try:
            server = socket.create_connection(self._target)
        except OSError:
            return _reset(client)
        for each in (client, server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pairs.append((client, server))  # from here on cut() may close them
        for direction, source, sink in (("up", client, server), ("down", server, client)):
            threading.Thread(target=self._pass, args=(direction, source, sink), daemon=True).start()

    def _pass(self, direction, source, sink):
        tail = b""
        try:
            while True:
                if not self._flows[direction].wait(0.05) or not select.select([source], [], [], 0.05)[0]:
                    _must_be_open(source)
                    continue
                data = source.recv(65536)
                self._taken[direction] += len(data)
                time.sleep(self.delay)
                while not self._flows[direction].wait(0.05):
                    _must_be_open(sink)
                if not data:
                    break
                tail = self._look(direction, tail + data)
                sink.sendall(data)
                self.bytes[direction] += len(data)
        except (OSError, ValueError):
            pass
        shut(sink)

    def _look(self, direction, seen):
        if self._watched and direction == "up" and self._watched[0] in seen:
            (_, action), self._watched = self._watched, None
            action()
        return seen[-1024:]


def _must_be_open(one):
    if one.fileno() < 0:
        raise OSError("closed")


def _unread(one):
    try:
        return struct.unpack("i", fcntl.ioctl(one, termios.FIONREAD, b"\0" * 4))[0]
    except (OSError, ValueError):
        return 0


def _reset(one):
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        pass
    one.close()
