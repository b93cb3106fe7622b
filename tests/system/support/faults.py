"""The points of a claim's way, the faults that may meet it there, and what is promised of each pair: README's "Under every fault"."""
import pytest

POINTS = {
    "not called": "delivered, and not called yet",
    "in flight": "its call is in flight",
    "answered": "201 has come, and is not recorded yet",
    "recorded": "recorded, and not acked yet",
    "acked": "the ack is written, and whether it arrives is unknown",
}
ONCE = "1"        # exactly one call
ONCE_MORE = "+1"  # at most one more for this fault: the window that only the claims system can close
TWICE = "2"       # no answer, so the usual second try, then claim.dead
NEVER = "–"       # the pair does not exist, see why below

PROCESS_ENDS = (ONCE, ONCE_MORE, ONCE_MORE, ONCE, ONCE)
HARMLESS = (ONCE,) * 5
NO_ANSWER = (NEVER, TWICE, NEVER, NEVER, NEVER)
STATUS_CAME = (NEVER, ONCE, NEVER, NEVER, NEVER)
STORE_WAITS = (ONCE, ONCE, ONCE, NEVER, NEVER)
STORE_FAILS = (ONCE, ONCE_MORE, ONCE_MORE, NEVER, NEVER)
AT_START = (ONCE, NEVER, NEVER, NEVER, NEVER)

FAULTS = {
    "kill -9": PROCESS_ENDS,
    "SIGTERM": HARMLESS,
    "broker restarted": HARMLESS,
    "connection reset": HARMLESS,
    "broker silent": HARMLESS,
    "delivery timeout 406": HARMLESS,
    "closed by the operator": HARMLESS,
    "queue deleted": HARMLESS,
    "consumer cancelled": HARMLESS,
    "queue crashed": HARMLESS,
    "claims system refuses": NO_ANSWER,
    "claims system unresolvable": NO_ANSWER,
    "claims system hangs": NO_ANSWER,
    "claims system trickles": NO_ANSWER,
    "answer cut": NO_ANSWER,
    "answer garbage": NO_ANSWER,
    "reset in mid-body": STATUS_CAME,
    "store busy": STORE_WAITS,
    "store locked for seconds": STORE_WAITS,
    "store full": STORE_FAILS,
    "store read-only": STORE_FAILS,
    "store corrupt": STORE_FAILS,
    "store foreign": AT_START,
    "store deleted": STORE_FAILS,
    "store swapped": STORE_FAILS,
    "second consumer": HARMLESS,
    "memory alarm": HARMLESS,
    "disk alarm": HARMLESS,
    "no descriptors left": HARMLESS,
    "SIGPIPE": HARMLESS,
}

WHY_NEVER = {
    NO_ANSWER: "before its call the claims system is not asked, after its answer it has no say",
    STATUS_CAME: "before its call the claims system is not asked, after its answer it has no say",
    STORE_WAITS: "once the record is made the store is not asked again",
    STORE_FAILS: "once the record is made the store is not asked again",
    AT_START: "it is found before anything is consumed",
}


def promised(point, fault):
    return FAULTS[fault][list(POINTS).index(point)]


def cells():
    return [(point, fault) for fault in FAULTS for point in POINTS if promised(point, fault) != NEVER]


def at_every_point(fault):
    """Run a test at each point where this fault can be: it stands behind those cells."""
    points = [point for point in POINTS if promised(point, fault) != NEVER]
    return pytest.mark.parametrize("point", [pytest.param(point, marks=pytest.mark.cell(point, fault)) for point in points])


def place(cell):
    """Where a cell stands in the table, for sorting."""
    point, fault = cell
    return list(FAULTS).index(fault), list(POINTS).index(point)


def table():
    """As it stands in README."""
    rows = [["fault", *(f"{name}" for name in POINTS)], ["---", *["---"] * len(POINTS)]]
    rows += [[fault, *promises] for fault, promises in FAULTS.items()]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
