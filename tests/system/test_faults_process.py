"""Faults of the consumer itself, at every point of a claim's way: README, "Under every fault"."""
import contextlib
import os
import resource
import signal

import pytest

from support.faults import at_every_point
from support.store import processed
from support.tracing import UNCHECKED
from support.waiting import wait_for
from support.way import Way


@at_every_point("kill -9")
def test_killed(lab, point):
    way = Way(lab)
    way.reach(point)
    way.consumer.kill()
    way.proxy.cut()
    way.go_on()
    way.ends("kill -9", status=137)


@pytest.mark.cell("acked", "kill -9")
def test_killed_while_its_ack_arrives(lab):
    way = Way(lab)
    way.reach("acked")
    way.consumer.kill()
    way.proxy.resume("up")
    wait_for(lambda: lab.mq.depth() == 0, what="the ack has arrived")
    way.ends("kill -9", status=137)


@at_every_point("SIGTERM")
def test_terminated(lab, point):
    way = Way(lab, "--timeout", "30")
    way.reach(point)
    way.consumer.send(signal.SIGTERM)
    if point in ("not called", "in flight", "answered"):
        wait_for(lambda: lab.mq.consumers() == 0, what="basic.cancel is sent")
    way.go_on()
    way.consumer.wait(20).ended_with(0)
    way.ends("SIGTERM")


# One with as many deliveries as it may have, the other gets the same claim a second time.

@at_every_point("second consumer")
def test_a_second_consumer_gets_the_same_id(lab, point):
    way = Way(lab)
    way.reach("not called" if point == "not called" else "in flight")
    other = lab.consumer("--prefetch", "1")
    wait_for(lambda: lab.mq.consumers() == 2, what="both consume")
    calls, unacked = lab.claims.calls(), lab.mq.unacked()
    way.move(point)
    lab.mq.put("g")
    if point == "acked":
        wait_for(lambda: lab.mq.depth() == 1, what="it is acked by the record, the first ack still being on its way")
    else:
        wait_for(lambda: lab.mq.unacked() == unacked + 1, what="the other has it")
    assert lab.claims.calls() == calls
    way.go_on()
    wait_for(lambda: lab.mq.depth() == 0, what="both are acked")
    done = other.stop().ended_with(0)
    assert done.summary["accepted"] + done.summary["duplicate"] == 1
    way.ends("second consumer")


@at_every_point("no descriptors left")
def test_no_descriptors_are_left(lab, point):
    """The claim that is not called needs a connection. What became of the others needs no descriptor."""
    way = Way(lab, env=UNCHECKED)
    way.reach(point)
    if point == "not called":
        way.trace("socket:error=EMFILE")
        way.go_on()
        done = way.ends("no descriptors left", status=71)
        assert "Too many open files" in done.err and done.summary["accepted"] == 1, done
        return
    with no_descriptor_for(way.consumer):
        way.go_on()
        wait_for(lambda: lab.mq.depth() == 0, what="it is acked")
    way.ends("no descriptors left")


@contextlib.contextmanager
def no_descriptor_for(running):
    """The sanitizers need some, too, so only for a time."""
    usual, most = resource.prlimit(running.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (3, most))
    yield
    resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (usual, most))


@at_every_point("SIGPIPE")
def test_nobody_reads_what_it_says(lab, point):
    """Its standard error is a pipe whose reader goes away; and the signal itself is sent for good measure."""
    fifo = os.path.join(lab.folder, "said")
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    way = Way(lab, prefix=("sh", "-c", 'exec "$@" 2>"$0"', fifo))
    way.reach(point)
    os.close(reader)
    way.consumer.send(signal.SIGPIPE)
    way.go_on()
    wait_for(lambda: "g" in processed(lab.store), what="g is recorded")
    assert way.ends("SIGPIPE").summary["accepted"] == (2 if point == "not called" else 1)
