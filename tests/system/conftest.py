"""Fixtures and options of the system tests. Run with /usr/bin/python3 -m pytest tests/system."""
import collections
import os
import signal
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from support import faults
from support.broker import Broker
from support.certificates import Certificates
from support.lab import Lab
from support.vhost import Vhost

ROWS = 46  # of CASES.md


def pytest_addoption(parser):
    parser.addoption("--part", default="1/1", help="K/N: run the K-th of N parts of the suite, for parallel runs")
    parser.addoption("--fault-table", action="store_true",
                     help="print which test stands behind which cell of README's fault table, and fail when one has none")
    parser.addoption("--case-table", action="store_true", help="print which test covers which row of CASES.md")


def pytest_configure(config):
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated"))  # so that the brokers are stopped
    config.addinivalue_line("markers", "cell(point, fault): the cell of support.faults that a test stands behind")
    config.addinivalue_line("markers", "case(*rows): the rows of CASES.md that a test covers")


def pytest_collection_modifyitems(config, items):
    config.case_table = tests_by(items, lambda mark: mark.args, "case")
    config.cell_table = tests_by(items, lambda mark: [mark.args], "cell")
    part, parts = map(int, config.getoption("--part").split("/"))
    if parts == 1:
        return
    # Tests that need the second broker all go to the last part: starting it costs more than they do.
    rest = [item for item in items if "frail" not in item.fixturenames]
    mine = set(items) - set(rest) if part == parts else set(rest[part - 1::parts - 1])
    config.hook.pytest_deselected(items=[item for item in items if item not in mine])
    items[:] = [item for item in items if item in mine]


def tests_by(items, keys, name):
    """What the marks of this name stand for -> the names of the tests that have them, each once."""
    table = collections.defaultdict(dict)
    for item in items:
        for mark in item.iter_markers(name):
            for key in keys(mark):
                table[key][item.originalname] = True
    return table


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("--case-table"):
        terminalreporter.section("rows of CASES.md")
        for row in range(1, ROWS + 1):
            terminalreporter.write_line(f"{row:3} {', '.join(config.case_table.get(row) or ['-- none --'])}")
    if config.getoption("--fault-table"):
        terminalreporter.section("cells of the fault table")
        for cell in sorted(set(faults.cells()) | set(config.cell_table), key=faults.place):
            tests = ", ".join(config.cell_table.get(cell) or ["-- none --"])
            terminalreporter.write_line(f"{cell[1]:26} {cell[0]:11} {faults.promised(*cell):3} {tests}")


def pytest_sessionfinish(session):
    config = session.config
    if config.getoption("--fault-table") and set(faults.cells()) != set(config.cell_table):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call":
        item.passed = report.passed
        for lab in {name: one for name, one in item.funcargs.items() if isinstance(one, Lab)}.values():
            if report.failed:
                report.sections.append(("what the lab knows", lab.story()))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session")
def broker(certificates):
    """The broker of ordinary tests, which leave it as it was."""
    node = Broker(tls=certificates)
    try:
        yield node.start()
    finally:
        node.close()


@pytest.fixture(scope="session")
def frail_broker():
    node = Broker()
    try:
        yield node.start()
    finally:
        node.close()


@pytest.fixture
def frail(frail_broker):
    """The broker for tests that stop, freeze or alarm it. It is made whole again before the next test."""
    yield frail_broker
    if frail_broker.process.poll() is not None:
        frail_broker.start()
    frail_broker.thaw()
    frail_broker.clear_alarms()


@pytest.fixture
def mq(broker, request):
    yield from _vhost(broker, request)


@pytest.fixture
def frail_mq(frail, request):
    yield from _vhost(frail, request)


def _vhost(broker, request):
    vhost = Vhost(broker)
    yield vhost
    if getattr(request.node, "passed", False) and not vhost.accounted:
        pytest.fail("the test did not account for what is in the queues", pytrace=False)


@pytest.fixture
def bare(mq, tmp_path):
    """A lab in an empty vhost."""
    yield from _lab(mq, tmp_path)


@pytest.fixture
def lab(mq, tmp_path):
    """A lab whose vhost has the objects of SPEC section 1."""
    mq.declare()
    yield from _lab(mq, tmp_path)


@pytest.fixture
def frail_lab(frail_mq, tmp_path):
    frail_mq.declare()
    yield from _lab(frail_mq, tmp_path)


def _lab(mq, tmp_path):
    lab = Lab(mq, tmp_path)
    try:
        yield lab
    finally:
        lab.close()
