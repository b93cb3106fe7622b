#!/usr/bin/python3
"""What a claim costs, counted: instructions below callgrind and system calls below strace, of consumer and publish at
work on a real broker. Counts, unlike times, mean the same on a busy machine.

  count_cost.py BUILD-DIR             fails (1) where a count is more than 30 % above counted.json
  count_cost.py BUILD-DIR --record    writes counted.json anew

Each figure is the difference of two runs divided by the difference of their claims, so a start costs nothing here. How
many claims share a turn depends on the machine's load, hence prefetch 1 beside 50, and the least of several pairs."""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

import lab

RECORDED = lab.HERE / "counted.json"
MOST_RISE = 1.3
COUNTS = {"instructions": (100, 500), "system calls": (300, 2000)}  # claims: callgrind takes its time
PAIRS = 3
BODY = 1024


class Counter:
    def __init__(self, build, folder, broker, server, helpers):
        self._build, self._broker, self._server = build, broker, server
        self._store = folder / "store.db"
        self._environment = {"EAI_AMQP_URL": broker.url, "EAI_MQ_DB": str(self._store)}
        self._meter = lab.Meter(helpers["measure"], folder)
        self._claims = lab.Claims(folder)
        self._report = folder / "count"

    def least(self, tracer, work):
        """The least of some pairs of runs: load only adds."""
        return round(min(self._difference(tracer, work) for _ in range(PAIRS)), 2)

    def _difference(self, tracer, work):
        few, many = COUNTS[tracer]
        return (work(many, tracer) - work(few, tracer)) / (many - few)

    def consumer(self, prefetch):
        def work(count, tracer):
            self._empty_queue()
            self._run([self._build / "publish", "-q", self._claims.lines(count, BODY)])
            lab.remove_store(self._store)
            command = [self._build / "consumer", "--claim", self._server.url, "--until-empty", "--prefetch",
                       str(prefetch)]
            counted = self._run(command, tracer)
            self._broker.wait_for_depth("claim.in", 0)
            if lab.processed(self._store) != count:
                raise lab.Wrong("not every claim was processed")
            return counted
        return work

    def publish(self, ndjson):
        def work(count, tracer):
            self._empty_queue()
            folder, inputs = None, [self._claims.lines(count, BODY)]
            if not ndjson:
                folder, inputs = self._claims.files(count, BODY)
            counted = self._run([self._build / "publish", *inputs], tracer, folder)
            self._broker.wait_for_depth("claim.in", count)
            return counted
        return work

    def _empty_queue(self):
        self._broker.empty()
        self._run([self._build / "topology"])

    def _run(self, command, tracer=None, folder=None):
        tracers = {
            None: [],
            "instructions": ["valgrind", "--tool=callgrind", f"--callgrind-out-file={self._report}"],
            "system calls": ["strace", "-c", "-f", "-o", self._report],
        }
        self._meter.run([*tracers[tracer], *command], self._environment, seconds=120, folder=folder)
        if tracer == "instructions":
            return int(re.search(r"^(?:totals|summary): (\d+)", self._report.read_text(), re.M)[1])
        if tracer == "system calls":
            return lab.total_calls(self._report)
        return None


def count_all(counter):
    works = {"consumer, prefetch 1": counter.consumer(1), "consumer, prefetch 50": counter.consumer(50),
             "publish, files": counter.publish(False), "publish, NDJSON": counter.publish(True)}
    counted = {}
    for name, work in works.items():
        for kind in ("instructions", "system calls"):
            counted[f"{name}: {kind}"] = counter.least(kind, work)
    return counted


def compare(counted, recorded):
    """Prints them side by side; returns those that rose too much."""
    risen = []
    for name, now in counted.items():
        before = recorded.get(name)
        change = f"{100 * (now / before - 1):+.0f} %" if before else "new"
        too_much = before and now > before * MOST_RISE
        print(f"{name:40} {now:>12,.2f} a claim, recorded {before or '–':>12}  {change}{'  TOO MUCH' if too_much else ''}")
        if too_much:
            risen.append(name)
    return risen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    for tool in ("valgrind", "strace"):
        if shutil.which(tool) is None:
            sys.exit(f"count_cost: no {tool}: scripts/install-deps.sh bench")
    lab.end_like_a_signal_wants()
    for name in ("EAI_AMQP_URL_FILE", "EAI_CLAIM_TOKEN", "EAI_CLAIM_TOKEN_FILE"):
        os.environ.pop(name, None)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="claimq-cost.")))
        helpers = lab.compile_helpers(folder / "bin")
        broker = stack.enter_context(lab.Broker(folder / "mq"))
        server = stack.enter_context(lab.ClaimsServer(helpers["claims_server"], 0))
        counted = count_all(Counter(options.build.resolve(), folder, broker, server, helpers))
    if options.record:
        RECORDED.write_text(json.dumps(counted, indent=1) + "\n")
    recorded = json.loads(RECORDED.read_text())
    sys.exit(1 if compare(counted, recorded) else 0)


if __name__ == "__main__":
    main()
