"""The store as a file: how it is made, full, foreign, swapped, and cleaned up: SPEC section 6, "Never lost" and `--retention`."""
import datetime
import os
import re
import resource
import shutil
import sqlite3
import stat
import threading
import time

import pytest

from support.claims import Answer
from support.store import processed, small_disk
from support.waiting import holds_for, wait_for


@pytest.mark.case(38)
def test_the_store_is_made_with_its_folders_for_its_owner_alone(lab):
    store = os.path.join(lab.folder, "one", "two", "three.db")
    lab.mq.put("g")
    lab.consume(env={"EAI_MQ_DB": store}, prefix=("sh", "-c", 'umask 000; exec "$@"', "sh"))
    for folder in "one", "one/two":
        assert stat.S_IMODE(os.stat(os.path.join(lab.folder, folder)).st_mode) == 0o700
    for name in os.listdir(os.path.dirname(store)):
        assert stat.S_IMODE(os.stat(os.path.join(os.path.dirname(store), name)).st_mode) == 0o600, name
    assert processed(store) == ["g"]
    lab.mq.ends_with()


@pytest.mark.parametrize("value", [None, ""], ids=["unset", "empty"])
def test_the_store_is_in_home_by_default(lab, value):
    home = os.path.join(lab.folder, "home")
    os.mkdir(home)
    lab.mq.put("g")
    lab.consume(env={"EAI_MQ_DB": value, "HOME": home})
    assert processed(os.path.join(home, "eaimw/mq/processed.db")) == ["g"]
    lab.mq.ends_with()


def test_a_name_with_odd_characters_is_a_file_and_no_sqlite_uri(lab):
    store = os.path.join(lab.folder, "file:odd ?mode=memory#%41.db")
    lab.mq.put("g")
    lab.consume(env={"EAI_MQ_DB": store})
    assert os.path.exists(store)
    lab.mq.put("g")
    assert lab.consume(env={"EAI_MQ_DB": store}).summary["duplicate"] == 1
    lab.mq.ends_with()


def test_a_store_behind_a_symbolic_link_is_one_store(lab):
    lab.mq.put("a")
    lab.consume()
    link = os.path.join(lab.folder, "link.db")
    os.symlink(lab.store, link)
    gate = threading.Event()
    lab.claims.answers["g"] = [Answer(201, gate=gate)]
    lab.mq.put("g", "g", "a")
    both = [lab.consumer("--prefetch", "3"), lab.consumer("--prefetch", "3", env={"EAI_MQ_DB": link})]
    wait_for(lambda: lab.claims.calls("g") == 1 and lab.mq.unacked() == 2, what="one is called, one waits, a is acked")
    holds_for(0.5, lambda: lab.claims.calls("g") == 1, "the other waits")
    gate.set()
    wait_for(lambda: lab.mq.depth() == 0, what="all are acked")
    for running in both:
        running.stop().ended_with(0)
    assert lab.claims.calls_by_id() == {"a": 1, "g": 1}
    lab.mq.ends_with()


def foreign_text(path):
    with open(path, "w") as file:
        file.write("these are my notes, not a database\n" * 50)


def foreign_database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE processed (message_id TEXT PRIMARY KEY, mine INT)")
        connection.execute("INSERT INTO processed VALUES ('x', 1)")
    connection.close()


def half_a_page(path):
    with open(path, "wb") as file:
        file.write(b"SQLite format 3\x00" + b"\x10\x00" * 30)


@pytest.mark.cell("not called", "store foreign")
@pytest.mark.parametrize("make", [foreign_text, foreign_database, half_a_page])
def test_a_file_that_is_no_store_of_ours_is_refused_and_left_as_it_is(lab, make):
    path = os.path.join(lab.folder, "mine.db")
    make(path)
    with open(path, "rb") as file:
        before = file.read()
    lab.mq.put("g")
    lab.consumer(env={"EAI_MQ_DB": path}).wait(30).ended_with(74, path)
    with open(path, "rb") as file:
        assert file.read() == before
    assert lab.claims.connections == 0
    lab.mq.ends_with(claim_in=["g"])


@pytest.mark.case(38)
@pytest.mark.parametrize("kind", ["a folder", "under a file", "nowhere to make folders"])
def test_a_path_that_cannot_be_a_store_is_74_before_consuming(lab, kind):
    path = {"a folder": lab.folder, "under a file": lab.file("f", "x") + "/p.db", "nowhere to make folders": "/proc/claimq/p.db"}[kind]
    lab.mq.put("g")
    lab.consumer(env={"EAI_MQ_DB": path}).wait(30).ended_with(74, path)
    assert lab.claims.connections == 0
    messages = lab.mq.ends_with(claim_in=["g"])
    assert not messages[0][0].redelivered, "it was never delivered"


root_only = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")


@root_only
@pytest.mark.case(38)
def test_a_read_only_folder_is_74_before_consuming(lab):
    lab.mq.put("g")
    with small_disk(os.path.join(lab.folder, "disk")) as disk:
        disk.read_only()
        path = os.path.join(disk.path, "p.db")
        lab.consumer(env={"EAI_MQ_DB": path}).wait(30).ended_with(74, path)
    assert lab.claims.connections == 0
    lab.mq.ends_with(claim_in=["g"])


@root_only
@pytest.mark.case(38)
def test_an_existing_store_that_became_read_only_is_74_before_consuming(lab):
    with small_disk(os.path.join(lab.folder, "disk")) as disk:
        path = os.path.join(disk.path, "p.db")
        lab.mq.put("a")
        lab.consume(env={"EAI_MQ_DB": path})
        disk.read_only()
        lab.mq.put("g")
        lab.consumer(env={"EAI_MQ_DB": path}).wait(30).ended_with(74, path)
    assert lab.claims.calls("g") == 0
    lab.mq.ends_with(claim_in=["g"])


@root_only
@pytest.mark.case(37)
def test_a_store_that_is_full_before_the_call_is_74_without_a_call(lab):
    lab.mq.put("g")
    with small_disk(os.path.join(lab.folder, "disk")) as disk:
        disk.fill()
        path = os.path.join(disk.path, "p.db")
        lab.consumer(env={"EAI_MQ_DB": path}).wait(30).ended_with(74, path)
    assert lab.claims.connections == 0
    lab.mq.ends_with(claim_in=["g"])


@root_only
@pytest.mark.case(37)
def test_an_existing_store_that_is_full_before_the_call_is_74_without_a_call(lab):
    with small_disk(os.path.join(lab.folder, "disk")) as disk:
        path = os.path.join(disk.path, "p.db")
        lab.mq.put("a")
        lab.consume(env={"EAI_MQ_DB": path})
        lab.mq.put("g")
        disk.fill()
        lab.consumer(env={"EAI_MQ_DB": path}).wait(30).ended_with(74, path)
    assert lab.claims.calls("g") == 0
    lab.mq.ends_with(claim_in=["g"])


@pytest.mark.cell("in flight", "store full")
@root_only
@pytest.mark.case(37)
def test_a_store_that_is_full_after_the_201_is_74_without_an_ack(lab):
    gate = threading.Event()
    lab.claims.answers = {f"g{n}": [Answer(201, gate=gate)] for n in range(3)}
    lab.mq.put("g0", "g1", "g2", body=b"x" * 200_000)
    with small_disk(os.path.join(lab.folder, "disk")) as disk:
        path = os.path.join(disk.path, "p.db")
        running = lab.consumer(env={"EAI_MQ_DB": path})
        wait_for(lambda: lab.claims.calls() == 1, what="the first is in flight")
        disk.fill()
        gate.set()
        done = running.wait(60).ended_with(74, path)
    assert done.summary["accepted"] == 0 and lab.claims.calls() == 1, "after the first failed commit no new call starts"
    lab.mq.ends_with(claim_in=["g0", "g1", "g2"])


@pytest.mark.case(37)
def test_a_store_that_may_not_grow_is_74_without_a_call(lab):
    lab.mq.put("g")
    lab.consumer(limits=[(resource.RLIMIT_FSIZE, 4096)]).wait(30).ended_with(74, lab.store)
    assert lab.claims.connections == 0
    lab.mq.ends_with(claim_in=["g"])


@pytest.mark.parametrize("swap", [False, True], ids=["deleted", "swapped"])
def test_a_store_deleted_or_swapped_while_running_is_74(lab, swap):
    lab.mq.put("a")
    running = lab.consumer()
    wait_for(lambda: lab.mq.depth() == 0, what="a is processed")
    spare = os.path.join(lab.folder, "spare.db")
    shutil.copy(lab.store, spare)
    os.remove(lab.store)
    if swap:
        os.rename(spare, lab.store)
    lab.mq.put("b", "c")
    running.wait(60).ended_with(74, lab.store)
    assert lab.claims.calls() <= 3 and max(lab.claims.calls_by_id().values()) == 1
    left = {properties.message_id for _, properties, _ in lab.mq.read("claim.in")}
    assert {"b", "c"} >= left and left, "what was not recorded in the real store is still queued"
    lab.mq.ends_with()


# --- retention

def make_older(store, days, *ids):
    """Make these records look older, in whatever column and form the time is kept."""
    with sqlite3.connect(store) as connection:
        for name in [row[1] for row in connection.execute("PRAGMA table_info(processed)")]:
            for each in ids:
                (value,) = connection.execute(f'SELECT "{name}" FROM processed WHERE message_id = ?', (each,)).fetchone()
                if (older := earlier(value, days)) is not None:
                    connection.execute(f'UPDATE processed SET "{name}" = ? WHERE message_id = ?', (older, each))
        assert connection.total_changes == len(ids), "one column holds the time"


def earlier(value, days):
    """A time of today, made days earlier: seconds or fractions of them since 1970, or text that starts with the date. Else None."""
    if isinstance(value, str) and re.match(r"20\d\d-\d\d-\d\d[T ]", value):
        return (datetime.date.fromisoformat(value[:10]) - datetime.timedelta(days)).isoformat() + value[10:]
    for unit in (1, 1000, 1_000_000, 1_000_000_000):
        if isinstance(value, (int, float)) and abs(value / unit - time.time()) < 1_000_000:
            return value - int(days * 86400 * unit)
    return None


def test_retention_removes_older_records_and_no_others(lab):
    lab.mq.put("old", "new")
    lab.consume()
    make_older(lab.store, 10, "old")
    lab.consume("--retention", "5", until=lambda: processed(lab.store) == ["new"])
    lab.mq.put("old", "new")
    lab.consume("--retention", "5")
    assert lab.claims.calls_by_id() == {"old": 2, "new": 1}
    lab.mq.ends_with()


def test_without_retention_records_are_kept_for_ever(lab):
    lab.mq.put("old", "new")
    lab.consume()
    make_older(lab.store, 4000, "old", "new")
    lab.mq.put("old", "new")
    lab.consume()
    assert lab.claims.calls_by_id() == {"old": 1, "new": 1}
    lab.mq.ends_with()


def test_retention_is_refused_when_even_the_newest_record_is_older(lab):
    """A wrong clock must not forget everything."""
    lab.mq.put("a", "b")
    lab.consume()
    make_older(lab.store, 10, "a", "b")
    lab.mq.put("a", "b")
    running = lab.consumer("--retention", "5")
    wait_for(lambda: lab.mq.depth() == 0 or not running.alive(), what="it has ended, or goes on without removing")
    if running.alive():
        running.stop()
    assert processed(lab.store) == ["a", "b"]
    assert lab.claims.calls_by_id() == {"a": 1, "b": 1}
    assert lab.mq.depth("claim.dead") == 0
    lab.mq.accounted = True
