#!/usr/bin/python3
"""claimq beside what a user would pick instead: the same claims, the same broker, the same claims system, in alternating
rounds. scripts/bench.sh builds, and calls this."""
import argparse
import contextlib
import json
import os
import pathlib
import platform
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import cells
import lab
import report

PYTHON = "/usr/bin/python3"
PEERS = lab.HERE / "peers"
OURS = ("claimq", "before")
RUN_SECONDS = 120  # no single run takes longer
CALL_COUNTS = (400, 2_000)  # claims; the difference of the two runs is free of what a start costs


def output_of(*command):
    with contextlib.suppress(OSError):
        found = subprocess.run(command, capture_output=True, text=True)
        return (found.stdout + found.stderr).strip().split("\n")[0]
    return "missing"


def build_go(into):
    """Returns the programs that could be built, by name."""
    if shutil.which("go") is None:
        return {}
    environment = dict(os.environ, GO111MODULE="off", GOPATH="/usr/share/gocode", GOCACHE=str(into / "go-cache"))
    built = {}
    for name in ("consumer", "consumer_tuned", "publish"):
        target = into / f"go-{name}"
        made = subprocess.run(["go", "build", "-o", target, f"./{name}"], cwd=PEERS / "go", env=environment,
                              capture_output=True, text=True)
        if made.returncode == 0:
            built[name] = target
        else:
            print(f"bench: Go's {name} does not build: {made.stderr.strip()[-200:]}", file=sys.stderr)
    return built


def prepare_node(into, install):
    """Returns the Node consumer, or nothing where it or its packages are missing."""
    if shutil.which("node") is None:
        return None
    folder = into / "node"
    folder.mkdir(exist_ok=True)
    for name in ("consumer.mjs", "package.json"):
        shutil.copy(PEERS / "node" / name, folder)
    if install and not (folder / "node_modules").exists():
        # better-sqlite3 is compiled, with the headers that came with node.
        environment = dict(os.environ, npm_config_nodedir="/usr")
        subprocess.run(["npm", "install", "--no-audit", "--no-fund"], cwd=folder, env=environment, check=False)
    works = subprocess.run(["node", "-e", "import('amqplib'),import('undici'),new (require('better-sqlite3'))(':memory:')"],
                           cwd=folder, capture_output=True).returncode == 0
    return folder / "consumer.mjs" if works else None


class Contenders:
    """Who takes part, and what command each of them is."""

    def __init__(self, options, helpers, go, node, broker_port):
        self._builds = {"claimq": options.build, "before": options.before}
        self._only = options.only.split(",") if options.only else None
        self._helpers, self._go, self._node, self._port = helpers, go, node, broker_port

    def missing(self):
        absent = {}
        for name, needed in (("go", ("consumer", "publish")), ("go-tuned", ("consumer_tuned",))):
            if not self._go.keys() >= set(needed):
                absent[name] = "golang-go or its libraries (scripts/install-deps.sh bench)"
        if self._node is None:
            absent["node"] = "Node or its packages (--with-node installs them with npm)"
        if shutil.which("amqp-publish") is None:
            absent["amqp-publish"] = "amqp-tools (scripts/install-deps.sh bench)"
        return absent

    def take_part(self, names):
        absent = self.missing().keys() | {name for name, build in self._builds.items() if build is None}
        return [name for name in names
                if name.removesuffix("-ndjson") not in absent and (self._only is None or name in self._only)]

    def _ours(self, name, program):
        return self._builds[name.removesuffix("-ndjson")] / program

    def consumer(self, name, cell, url, count):
        common = ["--claim", url, "--max-seconds", str(RUN_SECONDS), "--prefetch", str(cell.prefetch)]
        idle = ["--until-idle", "0.5" if cell.target in (cells.NGINX, 0) else "1"]
        return {
            "claimq": lambda: [self._ours(name, "consumer"), *common, "--until-empty"],
            "before": lambda: [self._ours(name, "consumer"), *common, "--until-empty"],
            "pika": lambda: [PYTHON, PEERS / "pika/consumer.py", *common, *idle],
            "pika-threads": lambda: [PYTHON, PEERS / "pika/consumer_threads.py", *common, *idle],
            "go": lambda: [self._go["consumer"], *common, *idle],
            "go-tuned": lambda: [self._go["consumer_tuned"], *common, *idle],
            "node": lambda: ["node", self._node, *common, *idle],
            "ceiling": lambda: [self._helpers["drain"], str(self._port), str(cell.prefetch), str(count)],
        }[name]()

    def publisher(self, name):
        return {
            "claimq": lambda: [self._ours(name, "publish")],
            "claimq-ndjson": lambda: [self._ours(name, "publish")],
            "before": lambda: [self._ours(name, "publish")],
            "before-ndjson": lambda: [self._ours(name, "publish")],
            "go": lambda: [self._go["publish"]],
            "go-ndjson": lambda: [self._go["publish"], "-ndjson"],
            "pika": lambda: [PYTHON, PEERS / "pika/publish.py"],
            "pika-pipelined": lambda: [PYTHON, PEERS / "pika/publish_pipelined.py"],
        }[name]()

    def topology(self, name):
        return {
            "claimq": lambda: [self._ours(name, "topology")],
            "before": lambda: [self._ours(name, "topology")],
            "handshake": lambda: [self._helpers["handshake"], str(self._port)],
            "pika": lambda: [PYTHON, PEERS / "pika/topology.py"],
        }[name]()


class Bench:
    def __init__(self, options, folder, helpers, broker, nginx, contenders):
        self._options, self._folder, self._helpers = options, folder, helpers
        self._broker, self._nginx, self._contenders = broker, nginx, contenders
        self._claims = lab.Claims(folder)
        self._meter = lab.Meter(helpers["measure"], folder, lab.RUN_AHEAD if options.realtime else ())
        self._store = folder / "store.db"
        self._environment = {"EAI_AMQP_URL": broker.url, "EAI_MQ_DB": str(self._store)}
        self.runs = []
        self.calls = {}
        self.failures = []

    # ---- one run of each kind; all return the figures, or raise lab.Wrong

    def consume(self, cell, name, count, tracer=()):
        self._make_store(cell.known, peers=name not in OURS)
        self._declare()
        self._fill(count, cell.size)
        with self._target(cell) as target:
            before = target.accepted()
            command = [*tracer, *self._contenders.consumer(name, cell, target.url, count)]
            figures, text = self._measured(command, count, target.pid, copies=cell.copies)
            if name != "ceiling":
                self._expect("accepted by the claims system", target.accepted() - before, count)
                self._expect("records in the store", lab.processed(self._store) - cell.known, count)
            if target.steady() is not None:
                figures["steady"] = target.steady()
        self._broker.wait_for_depth("claim.in", 0)
        self._broker.wait_for_depth("claim.dead", 0)
        if name in OURS:  # charged for its start and its end, which the others are not
            took = figures["wall"]
            said = [json.loads(line) for line in text.splitlines()]
            self._expect(f"accepted by {name}", sum(one["accepted"] for one in said), count)
        else:
            said = [(int(taken), float(took)) for taken, took in re.findall(r"(\d+) in ([\d.]+) s", text)]
            took = max(took for _, took in said)
            self._expect(f"taken by {name}", sum(taken for taken, _ in said), count)
        return {**figures, "rate": count / took}

    def publish_many(self, cell, name, count, tracer=()):
        self._declare()
        folder, inputs = None, [self._claims.lines(count, cell.size)]
        if not name.endswith("-ndjson"):
            folder, inputs = self._claims.files(count, cell.size)
        figures, _ = self._measured([*tracer, *self._contenders.publisher(name), *inputs], count, None, folder=folder)
        self._broker.wait_for_depth("claim.in", count)
        return {**figures, "rate": count / figures["wall"]}

    def one_shot(self, cell, name, tracer=()):
        if cell.name == "topology":  # what is declared already, as every time but the first
            self._declare()
            figures, _ = self._measured([*tracer, *self._contenders.topology(name)], 1, None)
            self._broker.wait_for_depth("claim.dead", 0)
            self._broker.wait_for_depth("claim.in", 0)
        else:
            self._declare()
            folder, (file,) = self._claims.files(1, cells.KIB)
            if name == "amqp-publish":
                command = ["amqp-publish", "-u", self._broker.url, "-e", "eai.claim", "-r", "claim", "-p", "-C",
                           "application/json"]
                figures, _ = self._measured([*tracer, *command], 1, None, stdin=folder / file)
            else:
                figures, _ = self._measured([*tracer, *self._contenders.publisher(name), file], 1, None, folder=folder)
            self._broker.wait_for_depth("claim.in", 1)
        return {**figures, "wall_ms": figures["wall"] * 1000, "speed": 1 / figures["wall"]}

    # ---- what they share

    def _declare(self):
        self._broker.empty()
        command = [self._options.build / "topology", "--queue-type", self._options.queue_type]
        subprocess.run(command, env={**os.environ, **self._environment}, check=True, stdout=subprocess.DEVNULL)

    def _fill(self, count, size):
        lines = self._claims.lines(count, size)
        # The broker pauses publishers while it moves what does not fit into its memory to disk.
        environment = {"EAI_AMQP_URL": self._broker.url + f"?blocked_connection_timeout={RUN_SECONDS}"}
        subprocess.run([self._options.build / "publish", "-q", lines], env={**os.environ, **environment}, check=True,
                       timeout=RUN_SECONDS, stderr=subprocess.DEVNULL)
        self._broker.wait_for_depth("claim.in", count)

    def _make_store(self, known, peers):
        lab.remove_store(self._store)
        if peers:  # several of them would get in each other's way when they make it at the same time
            with contextlib.closing(sqlite3.connect(self._store)) as db:
                db.execute("PRAGMA journal_mode=WAL")
                db.execute("CREATE TABLE processed(message_id TEXT PRIMARY KEY, at REAL) WITHOUT ROWID")
        if not known:
            return
        full = self._folder / f"known-{known}.db"
        if not full.exists():
            self._declare()  # a consumer that finds its queue empty makes the store
            command = [self._options.build / "consumer", "--claim", "http://127.0.0.1:1", "--until-empty", "-q"]
            subprocess.run(command, env={**os.environ, **self._environment, "EAI_MQ_DB": str(full)}, check=True,
                           timeout=RUN_SECONDS, stdout=subprocess.DEVNULL)
            with contextlib.closing(sqlite3.connect(full)) as db:
                rows = ((f"known-{number * 2654435761 % 2**32:08x}-{number}", b"\0" * 32) for number in range(known))
                db.executemany("INSERT INTO processed VALUES(?,?,201,'2024-01-01T00:00:00Z')", rows)
                db.commit()
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(full, self._store)

    @contextlib.contextmanager
    def _target(self, cell):
        if cell.target == cells.NGINX:
            yield self._nginx
        else:
            with lab.ClaimsServer(self._helpers["claims_server"], cell.target) as server:
                if self._options.realtime:
                    lab.run_ahead(server.pid)
                yield server

    def _measured(self, command, count, target_pid, **how):
        pids = [pid for pid in (self._broker.pid, target_pid) if pid]
        spent = [lab.cpu_seconds(pid) for pid in pids]
        machine = lab.machine_cpu_seconds()
        costs, text = self._meter.run(command, self._environment, seconds=RUN_SECONDS + 30, **how)
        own = costs["user"] + costs["system"]
        spent = [lab.cpu_seconds(pid) - before for pid, before in zip(pids, spent)]
        foreign = max(0.0, lab.machine_cpu_seconds() - machine - own - sum(spent))
        figures = {
            "wall": costs["wall"],
            "cpu_us": own / count * 1e6,
            "user_us": costs["user"] / count * 1e6,
            "rss_mib": costs["rss_kib"] / 1024,
            "switches": costs["switches"] / count,
            "broker_cpu_us": spent[0] / count * 1e6,
            "foreign_cpus": foreign / costs["wall"],  # other work on this machine meanwhile, in processors
        }
        if target_pid:
            figures["claims_system_cpu_us"] = spent[1] / count * 1e6
        return figures, text

    @staticmethod
    def _expect(what, found, wanted):
        if found != wanted:
            raise lab.Wrong(f"{what}: {found} and not {wanted}")

    # ---- rounds

    def run_cell(self, cell):
        scale = 0.01 if self._options.quick else 1
        counts = cells.counts(cell)
        names = self._contenders.take_part(counts)
        if not names:
            return
        rounds = max(1, round(self._options.rounds * cell.rounds)) if not self._options.quick else 1
        for number in range(rounds):
            at = number % len(names)
            for name in names[at:] + names[:at]:  # nobody is always the first
                count = counts[name] if isinstance(cell, cells.OneShot) else max(20, int(counts[name] * scale))
                self._run(cell, name, count, number)

    def _run(self, cell, name, count, number):
        try:
            figures = self._once(cell, name, count)
        except (lab.Wrong, subprocess.SubprocessError) as wrong:
            self.failures.append(f"{cell.name}: {name}: {wrong}")
            print(f"  WRONG {cell.name:15} {name:15} {wrong}", flush=True)
            return
        self.runs.append({"cell": cell.name, "contender": name, "round": number, "count": count, **figures})
        main = f"{figures['wall_ms']:.1f} ms" if "wall_ms" in figures else f"{figures['rate']:.0f} /s"
        print(f"  {cell.name:15} {name:15} {main:>12}  {figures['cpu_us']:.0f} us cpu  {figures['rss_mib']:.1f} MiB  "
              f"broker {figures['broker_cpu_us']:.0f} us  others {figures['foreign_cpus']:.2f} cpus", flush=True)

    def _once(self, cell, name, count, tracer=()):
        if isinstance(cell, cells.OneShot):
            return self.one_shot(cell, name, tracer)
        return (self.consume if isinstance(cell, cells.Consume) else self.publish_many)(cell, name, count, tracer)

    def count_calls(self, cell):
        """System calls a claim, with strace, which slows everything: so in runs of their own."""
        trace = self._folder / "strace"
        tracer = ["strace", "-c", "-f", "-o", trace]
        for name in self._contenders.take_part(cells.counts(cell)):
            try:
                totals = []
                for count in (1,) if isinstance(cell, cells.OneShot) else CALL_COUNTS:
                    self._once(cell, name, count, tracer)
                    totals.append((count, lab.total_calls(trace)))
            except lab.Wrong as wrong:
                self.failures.append(f"{cell.name}: {name} below strace: {wrong}")
                continue
            (first, calls), (last, more) = totals[0], totals[-1]
            self.calls.setdefault(cell.name, {})[name] = calls if first == last else (more - calls) / (last - first)


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {
        "processors": os.cpu_count(), "model": model[1] if model else platform.machine(), "kernel": platform.release(),
        "rabbitmq": output_of("dpkg-query", "-W", "-f=${Version}", "rabbitmq-server"),
        "nginx": output_of("nginx", "-v").split("/")[-1], "go": output_of("go", "version"),
        "pika": output_of(PYTHON, "-c", "import pika; print(pika.__version__)"), "python": platform.python_version(),
        "node": output_of("node", "--version"),
    }


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(64, f"{self.prog}: {message} (see --help)\n")


def parse(arguments):
    known = [cell.name for cell in cells.CELLS]
    quick = [cell.name for cell in cells.CELLS if cell.quick]
    parser = Parser(prog="bench.sh", description=__doc__, epilog=f"Cells: {', '.join(known)}.",
                    allow_abbrev=False)
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="tiny counts: does it all work? Its times mean nothing")
    parser.add_argument("--cells", help="some of the cells, with commas between (default: all; --quick: one of each kind)")
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds (default 5)")
    parser.add_argument("--queue-type", choices=("classic", "quorum"), default="classic")
    parser.add_argument("--with-node", action="store_true", help="have npm install the Node peer's packages")
    parser.add_argument("--realtime", action="store_true",
                        help="run all that is measured, the broker and the claims systems too, ahead of other work on the"
                             " machine (SCHED_RR, as root): for a machine that is not idle")
    parser.add_argument("--before", type=pathlib.Path, help="the folder of another build of claimq, to be compared with")
    parser.add_argument("--only", help="some of the contenders, with commas between")
    parser.add_argument("--no-calls", action="store_true", help="do not count system calls")
    parser.add_argument("--out", type=pathlib.Path, help="folder for results.json, .md and .svg (default: BUILD/results)")
    options = parser.parse_args(arguments)
    chosen = options.cells.split(",") if options.cells else quick if options.quick else known
    if options.realtime and not lab.may_run_ahead():
        parser.error("--realtime: not permitted here")
    if unknown := set(chosen) - set(known):
        parser.error(f"no such cell: {', '.join(sorted(unknown))}")
    options.build = options.build.resolve()
    options.before = options.before and options.before.resolve()
    options.out = (options.out or options.build / "results").resolve()
    options.chosen = [cell for cell in cells.CELLS if cell.name in chosen]
    return options


def main():
    options = parse(sys.argv[1:])
    lab.end_like_a_signal_wants()
    for name in ("EAI_AMQP_URL_FILE", "EAI_CLAIM_TOKEN", "EAI_CLAIM_TOKEN_FILE"):
        os.environ.pop(name, None)
    tools = options.build / "bench"
    helpers = lab.compile_helpers(tools)
    go, node = build_go(tools), prepare_node(tools, options.with_node)
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="claimq-bench.")))
        broker = stack.enter_context(lab.Broker(folder / "mq"))
        nginx = stack.enter_context(lab.Nginx(folder / "nginx"))
        if options.realtime:
            lab.run_ahead(broker.pid, nginx.pid)
        contenders = Contenders(options, helpers, go, node, broker.port)
        bench = Bench(options, folder, helpers, broker, nginx, contenders)
        for name, needs in contenders.missing().items():
            print(f"bench: {name} is left out: it needs {needs}", flush=True)
        for cell in options.chosen:
            print(f"{cell.title}", flush=True)
            bench.run_cell(cell)
        if shutil.which("strace") and not options.no_calls:
            for cell in options.chosen:
                if cell.counts_calls and not options.quick:
                    print(f"system calls: {cell.title}", flush=True)
                    bench.count_calls(cell)
        results = {"machine": machine(), "quick": options.quick, "rounds": options.rounds,
                   "queue_type": options.queue_type, "realtime": options.realtime, "seconds": round(time.monotonic() - begin),
                   "missing": contenders.missing(), "failures": bench.failures, "calls": bench.calls, "runs": bench.runs}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    text = report.markdown(results)
    (options.out / "results.md").write_text(text)
    (options.out / "results.svg").write_text(report.chart(results))
    print(f"\n{text}\nbench: results.json, results.md and results.svg are in {options.out}")
    for failure in bench.failures:
        print(f"bench: WRONG: {failure}", file=sys.stderr)
    sys.exit(1 if bench.failures or not bench.runs else 0)


if __name__ == "__main__":
    main()
