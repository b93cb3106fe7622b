"""Running the programs under test, each with a bound and with its output kept."""
import json
import os
import resource
import signal
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.abspath(os.environ.get("CLAIMQ_BIN_DIR") or os.path.join(HERE, "../../../build"))
KEPT = ("PATH", "LANG", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")
SANITIZER_WORDS = ("AddressSanitizer", "LeakSanitizer", "runtime error:", "ThreadSanitizer")
RUN_BOUND = 90
MOST_SHOWN = 20_000  # characters of an output in a failed test's story
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")  # execs: nothing we start outlives us, however we end


def binary(program):
    path = os.path.join(BIN, program)
    assert os.access(path, os.X_OK), f"no program {path}: build it, or set CLAIMQ_BIN_DIR"
    return path


def base_environment(home):
    return {name: os.environ[name] for name in KEPT if name in os.environ} | {"HOME": str(home)}


class Done:
    """A program that has ended."""

    def __init__(self, command, status, out, err, seconds):
        self.command, self.status, self.out, self.err, self.seconds = command, status, out, err, seconds

    def __repr__(self):
        return f"{' '.join(self.command)}\n-> {self.status} after {self.seconds:.2f} s\nstdout: {self.out}\nstderr: {self.err}"

    @property
    def summary(self):
        """The consumer's result: the last line of standard output."""
        return json.loads(self.out.splitlines()[-1])

    @property
    def err_lines(self):
        return [line for line in self.err.splitlines() if line.strip()]

    def ended_with(self, status, *words):
        """Check the exit status, and that standard error names these words."""
        assert self.status == status, f"status {self.status}, not {status}: {self!r}"
        missing = [word for word in words if word not in self.err]
        assert not missing, f"standard error does not say {missing}: {self!r}"
        return self


class Running:
    """A program in the background, its output going to files."""

    def __init__(self, folder, program, arguments, environment, stdin=b"", limits=(), prefix=()):
        self.command = [*prefix, binary(program), *map(str, arguments)]
        stem = os.path.join(folder, f"{program}-{time.monotonic_ns()}")
        self._out, self._err, given = stem + ".out", stem + ".err", stem + ".in"
        with open(given, "wb") as file:
            file.write(stdin)
        self._started = time.monotonic()
        with open(given, "rb") as standard_in, open(self._out, "wb") as out, open(self._err, "wb") as err:
            self._process = subprocess.Popen([*DIES_WITH_US, *self.command], env=environment, stdin=standard_in, stdout=out, stderr=err,
                                             preexec_fn=(lambda: _limit(limits)) if limits else None)
        self.pid = self._process.pid

    def alive(self):
        return self._process.poll() is None

    def err(self):
        return _text(self._err)

    def out(self):
        return _text(self._out)

    def send(self, signal_number):
        self._process.send_signal(signal_number)

    def wait(self, bound=RUN_BOUND):
        try:
            status = self._process.wait(bound)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"still running after {bound} s: {self._done(None)!r}") from None
        done = self._done(status)
        assert not any(word in done.err for word in SANITIZER_WORDS), repr(done)
        return done

    def stop(self, bound=RUN_BOUND):
        """SIGTERM, as an operator ends a consumer."""
        self.send(signal.SIGTERM)
        return self.wait(bound)

    def kill(self):
        """kill -9."""
        self._process.kill()
        self._process.wait()

    def cpu_seconds(self):
        """Processor time used so far, user and system."""
        with open(f"/proc/{self.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self):
        with open(f"/proc/{self.pid}/statm") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()

    def peak_resident_bytes(self):
        """The most it has had so far; 0 when it has ended."""
        with open(f"/proc/{self.pid}/status") as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:")), 0)

    def command_line(self):
        with open(f"/proc/{self.pid}/cmdline", "rb") as cmdline:
            return cmdline.read()

    def story(self):
        """What it has said so far, the end of it when that is long."""
        return repr(Done(self.command, self._process.poll(), self.out()[-MOST_SHOWN:], self.err()[-MOST_SHOWN:],
                         time.monotonic() - self._started))

    def _done(self, status):
        status = 128 - status if status is not None and status < 0 else status
        return Done(self.command, status, self.out(), self.err(), time.monotonic() - self._started)


def _limit(limits):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write over the limit then fails instead of killing
    for what, value in limits:
        resource.setrlimit(what, (value, resource.getrlimit(what)[1]))


def _text(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
