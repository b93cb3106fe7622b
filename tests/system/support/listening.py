"""A listening socket with a thread that accepts."""
import socket
import threading

BOUND = 5


class Listening:
    def __init__(self, listener, take):
        """Call take with each connection, in a thread."""
        self._listener, self._take = listener, take
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self):
        """The listener is closed when nobody is in accept(2) any more: that call keeps a closed listener alive, and when the kernel
        restarts it, after a stop of this process for one, it accepts from whoever has the descriptor's number by then. So an earlier
        test's claims system answered a later test's call, and nobody counted it."""
        self._closing.set()
        shut(self._listener)
        self._thread.join(BOUND)
        self._listener.close()

    def _accept(self):
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                continue
            self._take(connection)


def shut(one):
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
