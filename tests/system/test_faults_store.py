"""Faults of the store, at every point of a claim's way where it is needed: README, "Under every fault"."""
import os
import signal
import sqlite3

import pytest

from support.claims import Claims
from support.faults import at_every_point
from support.proxy import Proxy
from support.store import locked, processed, small_disk
from support.tracing import UNCHECKED
from support.waiting import holds_for, wait_for
from support.way import Way

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system, or traces")


def lock_for(way, seconds):
    """Another process holds the write lock for so long, and the claim comes to need it."""
    if way.point == "answered":
        holds_for(seconds, way.consumer.alive)
        return way.go_on()
    with locked(way.store):
        way.go_on()
        holds_for(seconds, lambda: way.consumer.alive() and way.lab.mq.unacked() > 0, "it waits, and acks nothing")


@at_every_point("store busy")
def test_the_store_is_busy_for_a_moment(lab, point):
    way = Way(lab)
    way.reach(point)
    lock_for(way, 0.3)
    assert "busy" not in way.ends("store busy").err


@at_every_point("store locked for seconds")
def test_the_store_is_locked_for_seconds(lab, point):
    way = Way(lab, heartbeat=2)
    way.reach(point)
    lock_for(way, 7)
    done = way.ends("store locked for seconds")
    assert "is busy" in done.err and "the store works again" in done.err, done
    assert way.proxy.connections == 1, "its heartbeats went on"


def test_heartbeats_go_on_while_the_store_is_locked_for_20_seconds(lab):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    lab.mq.put("warm")
    running = lab.consumer(env={"EAI_AMQP_URL": lab.mq.url("heartbeat=2", port=proxy.port)})
    wait_for(lambda: lab.mq.depth() == 0, what="it works")
    with locked(lab.store):
        lab.mq.put("a", "b")
        holds_for(20, lambda: running.alive() and lab.mq.depth() == 2, "it waits, and acks nothing")
    wait_for(lambda: lab.mq.depth() == 0, what="all is acked")
    running.stop().ended_with(0)
    assert proxy.connections == 1 and lab.claims.calls_by_id() == {"warm": 1, "a": 1, "b": 1}
    lab.mq.ends_with()


# --- it fails: 74, and whoever mends it starts the consumer again

@root_only
@at_every_point("store full")
def test_the_store_is_full(lab, point):
    with small_disk(os.path.join(lab.folder, "disk")) as disk:
        way = Way(lab, store=os.path.join(disk.path, "p.db"))
        way.reach(point)
        disk.fill()
        way.go_on()
        way.consumer.wait().ended_with(74, way.store)
        nothing_more_was_called(way)
        disk.empty()
        way.ends("store full", status=74)


@root_only
@at_every_point("store read-only")
def test_the_store_becomes_read_only(lab, point):
    """As a file system does after an error of its disk."""
    way = Way(lab, env=UNCHECKED)
    way.reach(point)
    way.trace("pwrite64:error=EROFS")
    way.go_on()
    way.consumer.wait().ended_with(74, way.store)
    nothing_more_was_called(way)
    way.ends("store read-only", status=74)


@at_every_point("store corrupt")
def test_the_store_becomes_corrupt(lab, point):
    way = Way(lab)
    way.reach(point)
    way.consumer.send(signal.SIGSTOP)
    way.unlock()
    corrupt(way.store)
    way.consumer.send(signal.SIGCONT)
    way.go_on()
    way.consumer.wait().ended_with(74, way.store)
    nothing_more_was_called(way)
    with pytest.raises(sqlite3.DatabaseError):
        sqlite3.connect(way.store).execute("SELECT * FROM processed").fetchall()
    lab.consumer(env=way.env).wait().ended_with(74, way.store)
    nothing_more_was_called(way)
    remove(way.store)
    way.ends("store corrupt", status=74)


@at_every_point("store deleted")
def test_the_store_is_deleted(lab, point):
    way = Way(lab)
    way.reach(point)
    remove(way.store)
    way.go_on()
    way.consumer.wait().ended_with(74, way.store)
    nothing_more_was_called(way)
    way.ends("store deleted", status=74)


@at_every_point("store swapped")
def test_the_store_is_swapped_for_another(lab, point):
    way = Way(lab)
    spare = os.path.join(lab.folder, "spare", "p.db")
    lab.mq.put("another")
    lab.consume(env={"EAI_MQ_DB": spare}, claims=lab.also(Claims()))
    way.reach(point)
    os.replace(spare, way.store)
    way.go_on()
    way.consumer.wait().ended_with(74, way.store)
    nothing_more_was_called(way)
    assert processed(way.store) == ["another"], "it is left as it was"
    way.ends("store swapped", status=74)


def nothing_more_was_called(way):
    """After the first failed commit no new call starts."""
    assert way.lab.claims.calls("g") == (0 if way.point == "not called" else 1)
    assert way.lab.claims.calls("first") <= 1


def remove(store):
    for suffix in ("", "-wal", "-shm", "-inflight"):
        if os.path.exists(store + suffix):
            os.remove(store + suffix)


def corrupt(store):
    """Every page but the first becomes garbage, and the checkpoint before tells its users to read again."""
    connection = sqlite3.connect(store, isolation_level=None, timeout=30)
    assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    size = os.path.getsize(store)
    with open(store, "r+b") as file:
        file.seek(page)
        file.write(b"\xa5" * (size - page))
    connection.close()
