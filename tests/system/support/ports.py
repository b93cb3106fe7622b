"""Free ports on loopback, outside the ephemeral range so that no client takes them while a server is down."""
import os
import random
import socket

_random = random.Random(os.urandom(8))


def free_port(host="127.0.0.1"):
    for _ in range(200):
        port = _random.randrange(15000, 32000)
        if port not in (25672, 15672) and _can_bind(host, port):
            return port
    raise RuntimeError(f"no free port on {host}")


def _can_bind(host, port):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


class RefusedPort:
    """A port that is taken, so nobody else gets it, but where nothing listens: connecting is refused."""

    def __init__(self):
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]

    def close(self):
        self._socket.close()
