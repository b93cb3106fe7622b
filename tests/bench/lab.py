"""What the benchmark runs in: a private broker, the claims systems, the helper programs, and the look at what is left
afterwards. Everything is on loopback and in one temporary folder, and ends with it."""
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request

import pika

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TICK = os.sysconf("SC_CLK_TCK")


# On a machine with other work, whoever sleeps often waits for a CPU at each waking, up to a tick of 4 ms and more: a
# program with one thread then seems slower than one with many, whose others keep the CPU for it.
RUN_AHEAD = ("chrt", "--rr", "1")


def may_run_ahead():
    return subprocess.run([*RUN_AHEAD, "true"], capture_output=True).returncode == 0


def run_ahead(*pids):
    for pid in pids:
        subprocess.run(["chrt", "--all-tasks", "--rr", "--pid", "1", str(pid)], check=True)


class Wrong(Exception):
    """A run that lost something, did something twice, or did not end: its time does not count."""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def machine_cpu_seconds():
    """Time that some process computed, of the whole machine."""
    user, nice, system = (int(one) for one in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:4])
    return (user + nice + system) / TICK


def compile_helpers(into):
    """The small C programs of this folder; returns their paths by name."""
    into.mkdir(parents=True, exist_ok=True)
    programs = {}
    for source in sorted((HERE / "c").glob("*.c")):
        programs[source.stem] = into / source.stem
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-o", programs[source.stem], source, "-lrabbitmq"], check=True)
    return programs


class Broker:
    """A RabbitMQ node of our own."""

    def __init__(self, folder):
        self.port = free_port()
        self.folder = folder
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"
        self._environment = dict(os.environ, EAI_MQ_NODE=f"claimq-bench-{os.getpid()}@localhost",
                                 EAI_MQ_PORT=str(self.port), EAI_MQ_DIR=str(folder))
        self._connection = None

    def __enter__(self):
        up = subprocess.run([ROOT / "scripts/mq-up.sh"], env=self._environment, capture_output=True, text=True)
        if up.returncode != 0:
            self.__exit__()  # it may run and just not answer
            sys.exit(f"bench: no broker: {up.stderr}")
        self.pid = int((self.folder / "broker.pid").read_text())
        return self

    def __exit__(self, *_):
        if self._connection is not None:
            with contextlib.suppress(pika.exceptions.AMQPError):
                self._connection.close()
        subprocess.run([ROOT / "scripts/mq-down.sh"], env=self._environment, capture_output=True)

    def channel(self):
        if self._connection is None or self._connection.is_closed:
            self._connection = pika.BlockingConnection(pika.URLParameters(self.url + "?heartbeat=0"))
        return self._connection.channel()

    def empty(self):
        """No queue at all: what the last run left goes with it."""
        channel = self.channel()
        for queue in ("claim.in", "claim.dead"):
            channel.queue_delete(queue)
        channel.close()

    def depth(self, queue):
        channel = self.channel()
        ready = channel.queue_declare(queue, passive=True).method.message_count
        channel.close()
        return ready

    def wait_for_depth(self, queue, wanted):
        """Settlements are not answered, so the broker may still be working on the last ones."""
        for _ in range(100):
            ready = self.depth(queue)
            if ready == wanted:
                return
            time.sleep(0.02)
        raise Wrong(f"{queue} holds {ready} messages and not {wanted}")


class Nginx:
    """A claims system that is never the bottleneck."""

    def __init__(self, folder):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._looks = 0

    def __enter__(self):
        self._folder.mkdir()
        text = (HERE / "nginx.conf.in").read_text().replace("@PORT@", str(self.port))
        (self._folder / "nginx.conf").write_text(text)
        self._process = subprocess.Popen(["nginx", "-p", self._folder, "-c", "nginx.conf", "-e", "nginx.err"],
                                         stdin=subprocess.DEVNULL)
        self.pid = self._process.pid
        for _ in range(200):
            with contextlib.suppress(OSError):
                self.accepted()
                return self
            time.sleep(0.02)
        sys.exit(f"bench: nginx does not answer: {(self._folder / 'nginx.err').read_text()}")

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()

    def accepted(self):
        with urllib.request.urlopen(self.url + "/_stats", timeout=5) as page:
            requests = int(page.read().split(b"\n")[2].split()[2])
        self._looks += 1
        return requests - self._looks  # what we ask is a request too

    def steady(self):
        return None


class ClaimsServer:
    """A claims system of a known latency, which reads what it is sent (nginx answers before it has the body)."""

    def __init__(self, program, delay_ms):
        self._command = [program, str(delay_ms)]

    def __enter__(self):
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()

    def stats(self):
        with urllib.request.urlopen(self.url + "/_stats", timeout=5) as page:
            return json.load(page)

    def accepted(self):
        return self.stats()["accepted"]

    def steady(self):
        return self.stats()["steady"]


def claim(number, size):
    """A claim of `size` bytes, the same for the same number."""
    draw = random.Random(number)
    guid = f"{draw.getrandbits(128):032x}"
    guid = "-".join((guid[:8], guid[8:12], guid[12:16], guid[16:20], guid[20:]))
    body = {"guid": guid, "claimId": f"CLM-{number:08d}", "policy": f"P-{draw.randrange(10**6):06d}",
            "amount": draw.randrange(100, 10**7) / 100, "currency": "EUR", "lossDate": "2024-03-01",
            "parties": [{"role": "insured", "name": "Müller"}, {"role": "claimant", "name": "Nowak"}],
            "docs": [{"id": f"D-{number}-{i}", "type": "invoice"} for i in range(2)], "note": ""}
    left = size - len(json.dumps(body, ensure_ascii=False).encode())
    body["note"] = ("the quick brown fox jumps over the lazy dog " * (max(left, 0) // 44 + 1))[:max(left, 0)]
    return json.dumps(body, ensure_ascii=False)


class Claims:
    """Files of claims, made once for each count and size."""

    def __init__(self, folder):
        self._folder = folder

    def lines(self, count, size):
        path = self._folder / f"{count}x{size}.ndjson"
        if not path.exists():
            with path.open("w") as file:
                file.writelines(claim(number, size) + "\n" for number in range(count))
        return path

    def files(self, count, size):
        """Names relative to the folder, which is returned too: 20,000 long ones would not fit on a command line."""
        folder = self._folder / f"{count}x{size}"
        names = [f"{number}.json" for number in range(count)]
        if not folder.exists():
            folder.mkdir()
            for number, name in enumerate(names):
                (folder / name).write_text(claim(number, size))
        return folder, names


class Meter:
    """Runs commands and says what they cost."""

    def __init__(self, measure, folder, prefix=()):
        self._measure = [*prefix, measure]
        self._report = folder / "report.json"
        self._output = folder / "output"
        self._log = folder / "log"

    def run(self, command, environment, copies=1, seconds=60, folder=None, stdin=None):
        """Returns the costs and what the command wrote to standard output. Its log goes to a file, as under cron."""
        with self._output.open("w+") as output, self._log.open("w") as log, \
                (open(stdin, "rb") if stdin else contextlib.nullcontext(subprocess.DEVNULL)) as source:
            subprocess.run([*self._measure, str(copies), str(seconds), self._report, *command], check=True, cwd=folder,
                           env={**os.environ, **environment}, stdin=source, stdout=output, stderr=log)
            output.seek(0)
            text = output.read()
        costs = json.loads(self._report.read_text())
        if costs["timed_out"]:
            raise Wrong(f"did not end within {seconds} s")
        if costs["status"] != 0:
            last_line = (self._log.read_text().splitlines() or [""])[-1]
            raise Wrong(f"ended with status {costs['status']}: {last_line[:300]}")
        return costs, text


def total_calls(trace):
    """From what strace -c wrote; its column of errors may be empty."""
    return int(re.search(r"^100\.00\s.*?(\d+)(?:\s+\d+)? total$", trace.read_text(), re.M)[1])


def processed(store):
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        return db.execute("SELECT count(*) FROM processed").fetchone()[0]


def remove_store(store):
    for suffix in ("", "-wal", "-shm", "-inflight"):
        pathlib.Path(f"{store}{suffix}").unlink(missing_ok=True)


def end_like_a_signal_wants():
    """So that `with` blocks are left, and what was started ends."""
    def stop(number, _):
        print(f"bench: ended by signal {number}", file=sys.stderr)
        sys.exit(128 + number)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)
