"""README's table of faults: what it promises is what the tests check, and a test stands behind every cell."""
import os
import subprocess
import sys

from support import faults

HERE = os.path.dirname(os.path.abspath(__file__))


def test_the_readme_has_this_table():
    with open(os.path.join(HERE, "../../README.md"), encoding="utf-8") as readme:
        assert faults.table() in readme.read(), f"README.md, \"Under every fault\", should have:\n{faults.table()}"


def test_a_test_stands_behind_every_cell():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", "--fault-table", HERE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "-- none --" not in done.stdout, done.stdout[-5000:] + done.stderr


def test_every_pair_that_cannot_be_has_its_reason():
    never = {promises for promises in faults.FAULTS.values() if faults.NEVER in promises}
    assert never == set(faults.WHY_NEVER)
