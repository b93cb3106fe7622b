"""A private RabbitMQ node: own name, ports, cookie and folder, all on loopback.

Commands go through erl_call, which takes some 20 ms where rabbitmqctl takes a second.
"""
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import uuid

from .ports import free_port
from .programs import DIES_WITH_US
from .waiting import wait_for

SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"
RABBITMQCTL = "/usr/lib/rabbitmq/bin/rabbitmqctl"
START_BOUND = 120
_numbers = itertools.count()  # erl_call needs a name that the broker has not seen lately

CONFIG = """\
listeners.tcp.1 = 127.0.0.1:{port}
vm_memory_high_watermark.absolute = 512MiB
disk_free_limit.absolute = 1MB
auth_mechanisms.1 = PLAIN
auth_mechanisms.2 = EXTERNAL
collect_statistics_interval = 2000
"""

TLS_CONFIG = """\
listeners.ssl.1 = 127.0.0.1:{tls_port}
ssl_options.cacertfile = {tls.ca}
ssl_options.certfile = {tls.server_cert}
ssl_options.keyfile = {tls.server_key}
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = false
ssl_cert_login_from = common_name
"""


class Broker:
    def __init__(self, tls=None):
        self.tls = tls
        self.process = None
        self.folder = tempfile.mkdtemp(prefix="claimq-mq-")
        self.name = f"claimq-{os.getpid()}-{uuid.uuid4().hex[:8]}@localhost"
        self.port = free_port()
        self.tls_port = free_port() if tls else None
        self.dist_port = free_port()
        self.cookie = uuid.uuid4().hex
        self._write_files()

    # --- life

    def start(self):
        log = open(os.path.join(self.folder, "server.out"), "ab")
        self.process = subprocess.Popen([*DIES_WITH_US, SERVER], env=self._environment(), cwd=self.folder, stdin=subprocess.DEVNULL,
                                        stdout=log, stderr=log, start_new_session=True)
        log.close()
        wait_for(self._is_ready, START_BOUND, f"broker {self.name} is ready (see {self.folder})")
        self.eval("application:set_env(rabbit, quorum_tick_interval, 200)")  # else a quorum queue's counts are 5 s old
        return self

    def stop(self):
        """Stop in good order, as SIGTERM does: clients get a connection.close 320."""
        self._end(signal.SIGTERM)

    def kill(self):
        self._end(signal.SIGKILL)

    def restart(self):
        self.stop()
        self.start()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        if self.process and self.process.poll() is None:
            self.thaw()
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, signal_number):
        self.process.send_signal(signal_number)
        self.process.wait(60)

    def _is_ready(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"broker {self.name} ended with {self.process.returncode}:\n{self._log_end()}")
        return self._call("rabbit:is_running() andalso not rabbit:is_booting()") == "{ok, true}"

    def _log_end(self):
        with open(os.path.join(self.folder, "server.out"), errors="replace") as log:
            return log.read()[-3000:]

    # --- objects

    def add_vhost(self, name):
        self.eval(f'rabbit_vhost:add({quoted(name)}, <<"test">>)')
        self.permit("guest", name)

    def add_user(self, name, password):
        self.eval(f'rabbit_auth_backend_internal:add_user({quoted(name)}, {quoted(password)}, <<"test">>)')

    def permit(self, user, vhost, configure=".*", write=".*", read=".*"):
        rights = ", ".join(quoted(each) for each in (user, vhost, configure, write, read))
        self.eval(f'rabbit_auth_backend_internal:set_permissions({rights}, <<"test">>)')

    def set_policy(self, vhost, name, pattern, definition, apply_to="queues"):
        rest = ", ".join(quoted(each) for each in (vhost, name, pattern, json.dumps(definition)))
        self.eval(f'rabbit_policy:parse_set({rest}, 0, {quoted(apply_to)}, <<"test">>)')

    def clear_policy(self, vhost, name):
        self.eval(f'rabbit_policy:delete({quoted(vhost)}, {quoted(name)}, <<"test">>)')

    def queues(self, vhost):
        """name -> (ready, unacked, consumers), asked of the queues themselves: no statistics, no delay."""
        items = "[name, messages_ready, messages_unacknowledged, consumers]"
        rows = self.json(f"[[N, R, U, C] || [{{name, {{resource, _, queue, N}}}}, {{_, R}}, {{_, U}}, {{_, C}}] "
                         f"<- rabbit_amqqueue:info_all({quoted(vhost)}, {items})]")
        return {name: (ready, unacked, consumers) for name, ready, unacked, consumers in rows}

    def connections(self, vhost):
        """One dict per open connection to vhost."""
        names = "[vhost, user, timeout, frame_max, channel_max, peer_port, ssl]"
        rows = self.json(f"[maps:from_list(C) || C <- rabbit_networking:connection_info_all({names}), "
                         f"proplists:get_value(vhost, C) =:= {quoted(vhost)}]")
        return rows

    def close_connections(self, vhost, reason):
        self.eval(f'[rabbit_networking:close_connection(P, "{reason}") || '
                  f"[{{pid, P}}, {{vhost, V}}] <- rabbit_networking:connection_info_all([pid, vhost]), V =:= {quoted(vhost)}]")

    def raise_memory_alarm(self):
        self.eval('vm_memory_monitor:set_vm_memory_high_watermark({absolute, "1MiB"})')
        self._wait_for_alarm("true")

    def raise_disk_alarm(self):
        self.eval('rabbit_disk_monitor:set_disk_free_limit("100000GB")')
        self._wait_for_alarm("true")

    def clear_alarms(self):
        self.eval('vm_memory_monitor:set_vm_memory_high_watermark({absolute, "512MiB"}), rabbit_disk_monitor:set_disk_free_limit("1MB")')
        self._wait_for_alarm("false")

    def _wait_for_alarm(self, wanted):
        wait_for(lambda: self.eval("rabbit_alarm:get_alarms() =/= []") == wanted, 30, f"alarm is {wanted}")

    def crash_queue(self, vhost, name):
        """Kill the queue's process: its consumers are cancelled, and it starts again with what is on disk."""
        self.eval(f"{{ok, Q}} = rabbit_amqqueue:lookup(rabbit_misc:r({quoted(vhost)}, queue, {quoted(name)})), "
                  "exit(amqqueue:get_pid(Q), kill)")

    @contextlib.contextmanager
    def delivery_timeout(self, milliseconds):
        """Channels opened within this meet RabbitMQ's consumer_timeout; they look for it every 0.2 s."""
        self.eval(f"application:set_env(rabbit, channel_tick_interval, 200), application:set_env(rabbit, consumer_timeout, {milliseconds})")
        try:
            yield
        finally:
            self.eval("application:set_env(rabbit, channel_tick_interval, 60000), application:set_env(rabbit, consumer_timeout, 1800000)")

    # --- commands

    def eval(self, expression, timeout=30):
        """Evaluate an Erlang expression in the broker; gives the term as Erlang writes it."""
        out = self._call(expression, timeout)
        if not out.startswith("{ok, "):
            raise RuntimeError(f"{expression}: {out}")
        return out[len("{ok, "):-1]

    def json(self, expression):
        """Evaluate an expression whose term has a JSON form: binaries, numbers, lists, maps."""
        out = self._call(f"io:put_chars(rabbit_json:encode({expression}))", 30, "-fetch_stdout", "-no_result_term")
        return json.loads(out)

    def ctl(self, *args):
        """rabbitmqctl itself, for what has no quick way: about a second a call."""
        done = subprocess.run([RABBITMQCTL, "-n", self.name, "-q", *args], env=self._environment(), cwd=self.folder,
                              capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise RuntimeError(f"rabbitmqctl {args}: {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def _call(self, expression, timeout=30, *options):
        """erl_call's answer. It is tried again when the connection was not made: nothing was evaluated then."""
        for _ in range(5):
            command = ["erl_call", "-address", f"127.0.0.1:{self.dist_port}", "-c", self.cookie, "-h", f"claimq{os.getpid()}x{next(_numbers)}",
                       "-timeout", str(timeout), *options, "-e"]
            done = subprocess.run(command, input=expression + ".\n", env=self._environment(), cwd=self.folder,
                                  capture_output=True, text=True, timeout=timeout + 10)
            out = done.stdout.strip() + done.stderr.strip()
            if "failed to connect" not in out or self.process.poll() is not None:
                break
        return out

    def _environment(self):
        at = lambda *names: os.path.join(self.folder, *names)
        keep = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        return keep | {
            "HOME": self.folder,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_DIST_PORT": str(self.dist_port),
            "RABBITMQ_CONFIG_FILE": at("rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": at("none.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": at("enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": at("mnesia"),
            "RABBITMQ_LOG_BASE": at("log"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RUNNING_UNDER_SYSTEMD": "true",  # the script then execs erl: the pid we have is the broker's
        }

    def _write_files(self):
        self._write("rabbitmq.conf", CONFIG.format(port=self.port) + (TLS_CONFIG.format(tls_port=self.tls_port, tls=self.tls) if self.tls else ""))
        self._write("enabled_plugins", "[rabbitmq_auth_mechanism_ssl].\n")
        self._write(".erlang.cookie", self.cookie)
        os.chmod(os.path.join(self.folder, ".erlang.cookie"), 0o400)

    def _write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)


def quoted(text):
    """text as an Erlang binary."""
    return "<<" + ",".join(str(byte) for byte in text.encode()) + ">>"
