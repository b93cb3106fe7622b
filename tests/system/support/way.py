"""The claim `g` on its way through one consumer, brought to a point of support.faults.POINTS where a fault then meets it."""
import signal
import threading

from .claims import ACCEPTED, Answer
from .faults import ONCE, promised
from .proxy import Proxy
from .store import locked, processed
from .tracing import Injected
from .waiting import wait_for

ACK_SIZE = 21
QUICK = "retry_delay=0.2&stack_timeout=5"


class Way:
    """Between consumer and broker stands `proxy`. At "not called" the claim waits behind `first`, whose call is in flight."""

    def __init__(self, lab, *options, heartbeat=60, store=None, prefix=(), env=None):
        self.lab = lab
        self.store = store or lab.store
        self.point = None
        self.env = {"EAI_MQ_DB": self.store} | (env or {})
        self.proxy = lab.also(Proxy(lab.mq.broker.port))
        self.gate = threading.Event()
        self._options, self._prefix = options, prefix
        self._url = lab.mq.url(f"{QUICK}&heartbeat={heartbeat}", port=self.proxy.port)
        self._lock = self._trace = self.consumer = None

    # --- to the point

    def reach(self, point):
        self.point = point
        if point == "not called":
            return self._reach_not_called()
        self._start("g", "1")
        self.move(point)

    def move(self, point):
        """Further, from "in flight"."""
        self.point = point
        if point == "answered":
            self._reach_answered()
        elif point == "recorded":
            self._reach_recorded()
        elif point == "acked":
            self._reach_acked()

    def _reach_not_called(self):
        self._start("first", "2")
        self.lab.mq.put("g")
        wait_for(lambda: self.lab.mq.unacked() == 2, what="g is delivered, and waits for room")

    def _reach_answered(self):
        """Another process keeps the record from being made."""
        self._lock = locked(self.store)
        self._lock.__enter__()
        self._answer()

    def _reach_recorded(self):
        """The consumer stops as soon as the record is on disk."""
        self._trace = self.trace("fdatasync:signal=SIGSTOP:when=1")
        self.gate.set()
        wait_for(self._trace.has_stopped_it, what="it has stopped after its flush to disk")

    def _reach_acked(self):
        """The ack is in the proxy's hands."""
        self.proxy.pause("up")
        self.gate.set()
        wait_for(lambda: processed(self.store)[-1:] == ["g"] and self.proxy.held() >= ACK_SIZE, what="the ack is written")

    def _start(self, called, prefetch):
        then = "close" if called == "first" else "keep"  # so that g needs a connection of its own
        self.lab.claims.answers[called] = [Answer(201, gate=self.gate, then=then), ACCEPTED]
        self.lab.mq.put(called)
        env = self.env | {"EAI_AMQP_URL": self._url}
        self.consumer = self.lab.consumer("--prefetch", prefetch, *self._options, env=env, prefix=self._prefix)
        wait_for(lambda: self.lab.claims.calls(called) == 1, what=f"{called} is in flight")

    def _answer(self):
        self.gate.set()
        wait_for(lambda: self.lab.claims.in_flight == 0 and self.lab.claims.unread() == 0, what="201 is sent and read")

    # --- the fault

    def trace(self, *injections):
        return self.lab.also(Injected(self.consumer, *injections))

    def lost_its_connection(self):
        wait_for(lambda: "connection to the broker lost" in self.consumer.err(), 30, "the loss is told")

    # --- and on

    def go_on(self):
        """Take away what kept the claim at its point, and what keeps the broker's words from it."""
        self.go_on_alone()
        self.proxy.resume("up", "down")

    def go_on_alone(self):
        """The same, with the way to the broker left as it is."""
        self.gate.set()
        self.unlock()
        if self.point == "recorded" and self.consumer.alive():
            self.consumer.send(signal.SIGCONT)
            self._trace.close()

    def unlock(self):
        if self._lock:
            self._lock.__exit__()
            self._lock = None

    def recorded(self):
        """The consumer has answered calls in its store."""
        wanted = {"g"} if self.point != "not called" else {"first"}
        wait_for(lambda: wanted <= set(processed(self.store)), what="the record is made")

    def ends(self, fault, status=0):
        """What the consumer leaves is done by another one. Then everything is accounted for, against the promise.
        Gives the first consumer's end."""
        done = None
        if self.consumer.alive() and status == 0:
            wait_for(lambda: (self.lab.mq.depth() == 0 and self.lab.mq.consumers() > 0) or not self.consumer.alive(),
                     what="all is acked, and the connection is there")
            done = self.consumer.stop()
        elif self.consumer.alive() or status:
            done = self.consumer.wait()
        if done:
            done.ended_with(status)
        if self.lab.mq.depth() > 0:
            self.lab.consume("--prefetch", "1", env=self.env)
        self._calls_are_as_promised(fault)
        self.lab.mq.ends_with()
        return done

    def _calls_are_as_promised(self, fault):
        calls = self.lab.claims.calls_by_id()
        points = {"g": self.point} | ({"first": "in flight"} if self.point == "not called" else {})
        assert sorted(calls) == sorted(points), "nothing is lost"
        for each, point in points.items():
            most = 1 if promised(point, fault) == ONCE else 2
            assert calls[each] <= most, f"{each}, {point}: {calls[each]} calls, not {most}"
