"""Fixtures and options of the system tests. Run with /usr/bin/python3 -m pytest tests/system."""
import collections
import os
import signal
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from support.broker import Broker
from support.certificates import Certificates
from support.lab import Lab
from support.vhost import Vhost

ROWS = 46  # of CASES.md


def pytest_addoption(parser):
    parser.addoption("--part", default="1/1", help="K/N: run the K-th of N parts of the suite, for parallel runs")
    parser.addoption("--case-table", action="store_true", help="print which test covers which row of CASES.md")


def pytest_configure(config):
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated"))  # so that the brokers are stopped
    config.addinivalue_line("markers", "case(*rows): the rows of CASES.md that a test covers")


def pytest_collection_modifyitems(config, items):
    _fill_table(config, items)
    part, parts = map(int, config.getoption("--part").split("/"))
    if parts == 1:
        return
    # Tests that need the second broker all go to the last part: starting it costs more than they do.
    rest = [item for item in items if "frail" not in item.fixturenames]
    mine = set(items) - set(rest) if part == parts else set(rest[part - 1::parts - 1])
    config.hook.pytest_deselected(items=[item for item in items if item not in mine])
    items[:] = [item for item in items if item in mine]


def _fill_table(config, items):
    config.case_table = collections.defaultdict(dict)
    for item in items:
        for mark in item.iter_markers("case"):
            for row in mark.args:
                config.case_table[row][item.originalname] = True


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("--case-table"):
        terminalreporter.section("rows of CASES.md")
        for row in range(1, ROWS + 1):
            terminalreporter.write_line(f"{row:3} {', '.join(config.case_table.get(row) or ['-- none --'])}")


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
    frail_broker.clear_memory_alarm()


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
