"""System calls of a running program that fail, or that stop or kill it, by strace's fault injection: no hook in the program."""
import os
import subprocess
import tempfile

from .programs import DIES_WITH_US
from .waiting import wait_for


# The sanitizer's leak check traces the program itself, which fails when it ends while strace does.
UNCHECKED = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


class Injected:
    """From now on the program meets this, such as "fdatasync:signal=SIGSTOP:when=1". A signal meets it when the call has been made,
    but SIGKILL before."""

    def __init__(self, running, *injections):
        self._pid = running.pid
        calls = ",".join(each.split(":")[0] for each in injections)
        options = [word for each in injections for word in ("-e", f"inject={each}")]
        self._log = tempfile.NamedTemporaryFile("r")
        self._strace = subprocess.Popen([*DIES_WITH_US, "strace", "-f", "-qq", "-o", self._log.name, "-e", f"trace={calls}", *options,
                                         "-p", str(self._pid)], stderr=subprocess.DEVNULL)
        wait_for(self._is_attached, 30, "strace is attached")

    def has_stopped_it(self):
        """Its state alone does not tell: for strace it stops in every call."""
        self._log.seek(0)
        return "--- stopped by SIGSTOP ---" in self._log.read()

    def close(self):
        """Let the program go on without us. Once more does nothing."""
        self._strace.terminate()
        self._strace.wait(30)
        self._log.close()

    def _is_attached(self):
        assert self._strace.poll() is None, "strace has ended: may it trace here?"
        return all(_status(self._pid, task, "TracerPid") == str(self._strace.pid) for task in os.listdir(f"/proc/{self._pid}/task"))


def _status(pid, task, name):
    with open(f"/proc/{pid}/task/{task}/status") as lines:
        return next(line.split()[1] for line in lines if line.startswith(name + ":"))
