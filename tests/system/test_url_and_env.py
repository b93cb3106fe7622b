"""The environment and the URL's grammar: SPEC section 2."""
import os
import shutil
import socket
import subprocess
import threading
import time

import pytest

from support.ports import RefusedPort
from support.proxy import Proxy
from support.vhost import Vhost
from support.waiting import wait_for

PROGRAMS = ("topology", "publish", "consumer")


def with_url(url):
    return {"EAI_AMQP_URL": url}


def arguments(lab, program):
    return {"topology": [], "publish": [lab.claim("a")], "consumer": ["--claim", lab.claims.url, "--max-seconds", "20"]}[program]


# --- errors

BAD_URLS = {
    "scheme redis": "redis://guest:guest@127.0.0.1:{port}/",
    "scheme http": "http://guest:guest@127.0.0.1:{port}/",
    "no scheme": "127.0.0.1:{port}",
    "port 99999": "amqp://guest:guest@127.0.0.1:99999/",
    "port 0": "amqp://guest:guest@127.0.0.1:0/",
    "port abc": "amqp://guest:guest@127.0.0.1:abc/",
    "user without password": "amqp://guest@127.0.0.1:{port}/",
    "heartbeat=abc": "amqp://guest:guest@127.0.0.1:{port}/?heartbeat=abc",
    "heartbeat=-1": "amqp://guest:guest@127.0.0.1:{port}/?heartbeat=-1",
    "heartbeat=0x10": "amqp://guest:guest@127.0.0.1:{port}/?heartbeat=0x10",
    "heartbeat empty": "amqp://guest:guest@127.0.0.1:{port}/?heartbeat=",
    "heartbeat=65536": "amqp://guest:guest@127.0.0.1:{port}/?heartbeat=65536",
    "heartbeat twice": "amqp://guest:guest@127.0.0.1:{port}/?heartbeat=5&heartbeat=6",
    "an unknown name": "amqp://guest:guest@127.0.0.1:{port}/?heartbeet=5",
    "connection_attempts=0": "amqp://guest:guest@127.0.0.1:{port}/?connection_attempts=0",
    "connection_attempts=1.5": "amqp://guest:guest@127.0.0.1:{port}/?connection_attempts=1.5",
    "retry_delay=nan": "amqp://guest:guest@127.0.0.1:{port}/?retry_delay=nan",
    "socket_timeout=inf": "amqp://guest:guest@127.0.0.1:{port}/?socket_timeout=inf",
    "stack_timeout=-1": "amqp://guest:guest@127.0.0.1:{port}/?stack_timeout=-1",
    "blocked_connection_timeout=x": "amqp://guest:guest@127.0.0.1:{port}/?blocked_connection_timeout=x",
    "frame_max=4095": "amqp://guest:guest@127.0.0.1:{port}/?frame_max=4095",
    "channel_max=70000": "amqp://guest:guest@127.0.0.1:{port}/?channel_max=70000",
    "verify=maybe": "amqps://guest:guest@127.0.0.1:{port}/?verify=maybe",
    "auth_mechanism=MD5": "amqp://guest:guest@127.0.0.1:{port}/?auth_mechanism=MD5",
    "a bad escape": "amqp://guest:gu%zzest@127.0.0.1:{port}/",
    "a cut escape": "amqp://guest:guest%4@127.0.0.1:{port}/",
    "no UTF-8": "amqp://guest:guest%FF@127.0.0.1:{port}/",
    "a NUL": "amqp://guest:guest@127.0.0.1:{port}/a%00b",
    "a space": "amqp://guest:guest@127.0.0.1 :{port}/",
}


@pytest.mark.case(17)
@pytest.mark.parametrize("url", BAD_URLS.values(), ids=BAD_URLS)
def test_a_bad_url_is_64_at_once(lab, url):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    done = lab.topology(env=with_url(url.format(port=proxy.port)), bound=20).ended_with(64)
    assert len(done.err_lines) == 1 and done.out == "", done
    assert proxy.connections == 0
    lab.mq.ends_with()


@pytest.mark.case(17)
@pytest.mark.parametrize("program", ["publish", "consumer"])
def test_a_bad_url_is_64_in_the_other_programs_too(lab, program):
    url = f"amqp://guest:s3cret-word@127.0.0.1:{lab.mq.broker.port}/?heartbeat=abc"
    done = lab.run(program, *arguments(lab, program), env=with_url(url), bound=20).ended_with(64, "heartbeat")
    assert "s3cret-word" not in done.err
    lab.mq.ends_with()


@pytest.mark.parametrize("name, replacement", [("ssl_options", "cacertfile"), ("tcp_options", ""), ("client_properties", "")])
def test_pikas_python_literals_are_refused_by_name(lab, name, replacement):
    url = lab.mq.url(f"{name}=%7B%27a%27%3A1%7D")
    lab.topology(env=with_url(url), bound=20).ended_with(64, name, replacement)
    lab.mq.ends_with()


# --- what it takes

@pytest.mark.case(14)
def test_every_value_of_pikas_grammar_works(lab):
    query = "heartbeat=5&connection_attempts=3&retry_delay=1&socket_timeout=2&blocked_connection_timeout=3.5"
    rest = "&stack_timeout=9.5&channel_max=100&frame_max=8192&locale=en_US"
    for program in "topology", "publish":
        lab.run(program, *arguments(lab, program), env=with_url(lab.mq.url(query + rest))).ended_with(0)
    lab.consume(env=with_url(lab.mq.url(query + rest)))
    assert lab.claims.calls("a") == 1
    lab.mq.ends_with()


@pytest.mark.case(14)
@pytest.mark.parametrize("query, item, value", [("heartbeat=5", "timeout", 5), ("heartbeat=0", "timeout", 0), ("", "timeout", 30),
                                                ("frame_max=4096", "frame_max", 4096), ("channel_max=7", "channel_max", 7)])
def test_the_connection_really_has_what_the_url_asked_for(lab, query, item, value):
    running = lab.consumer(env=with_url(lab.mq.url(query)))
    wait_for(lambda: lab.mq.consumers() == 1, what="it consumes")
    [connection] = lab.mq.broker.connections(lab.mq.name)
    assert connection[item] == value, connection
    running.stop().ended_with(0)
    lab.mq.ends_with()


@pytest.mark.parametrize("body_size", [0, 1, 4087, 4088, 4089, 8176, 100_000])
def test_bodies_of_any_size_pass_with_the_smallest_frames(lab, body_size):
    body = os.urandom(body_size)
    lab.mq.put("g", body=body)
    lab.consume(env=with_url(lab.mq.url("frame_max=4096")))
    assert lab.claims.requests[0].body == body
    lab.publish(lab.claim("h", fill="x" * body_size), env=with_url(lab.mq.url("frame_max=4096"))).ended_with(0)
    [(_, _, got)] = lab.mq.ends_with(claim_in=["h"])
    assert got.count(b"x") == body_size


@pytest.mark.case(14)
def test_connection_attempts_and_retry_delay(bare):
    dead = bare.also(Proxy(bare.also(RefusedPort()).port))
    done = bare.topology(env=with_url(f"amqp://guest:guest@127.0.0.1:{dead.port}/?connection_attempts=3&retry_delay=0.5"), bound=30)
    done.ended_with(69)
    assert dead.connections == 3 and done.seconds >= 1
    bare.mq.has_no_queues()


def test_one_attempt_is_the_default(bare):
    dead = bare.also(Proxy(bare.also(RefusedPort()).port))
    bare.topology(env=with_url(f"amqp://guest:guest@127.0.0.1:{dead.port}/"), bound=30).ended_with(69)
    assert dead.connections == 1
    bare.mq.has_no_queues()


@pytest.mark.parametrize("program", ["topology", "publish"])
def test_stack_timeout_bounds_a_silent_peer(bare, program):
    silent = bare.also(socket.create_server(("127.0.0.1", 0)))
    url = f"amqp://guest:guest@127.0.0.1:{silent.getsockname()[1]}/?stack_timeout=1.5"
    done = bare.run(program, *arguments(bare, program), env=with_url(url), bound=30).ended_with(69, "127.0.0.1")
    assert 1.4 <= done.seconds < 10
    bare.mq.has_no_queues()


def test_stack_timeout_bounds_a_trickling_peer(bare):
    server = bare.also(socket.create_server(("127.0.0.1", 0)))

    def trickle():
        connection, _ = server.accept()
        try:
            for byte in b"\x01\x00\x00\x00\x00\x10\x00" + b"\x00" * 100:
                connection.send(bytes([byte]))
                time.sleep(0.2)
        except OSError:
            pass
    threading.Thread(target=trickle, daemon=True).start()
    url = f"amqp://guest:guest@127.0.0.1:{server.getsockname()[1]}/?stack_timeout=1.5"
    done = bare.topology(env=with_url(url), bound=30).ended_with(69)
    assert done.seconds < 10
    bare.mq.has_no_queues()


def test_socket_timeout_bounds_a_connect_without_an_answer(bare):
    """A listener whose queue is full drops what comes: no SYN is answered."""
    full = bare.also(socket.socket())
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    waiting = []
    for _ in range(4):
        each = bare.also(socket.socket())
        each.setblocking(False)
        each.connect_ex(full.getsockname())
        waiting.append(each)
    url = f"amqp://guest:guest@127.0.0.1:{full.getsockname()[1]}/?socket_timeout=1"
    done = bare.topology(env=with_url(url), bound=30).ended_with(69, "127.0.0.1")
    assert 0.9 <= done.seconds < 9
    bare.mq.has_no_queues()


@pytest.mark.case(15)
@pytest.mark.parametrize("path, name", [("", "/"), ("/", "/"), ("/%2F", "/"), ("/%2f", "/"), ("/a%2Fb", "a/b"), ("/caf%C3%A9", "café"), ("/a+b", "a+b")])
def test_the_vhost_of_a_url(bare, path, name):
    broker = bare.mq.broker
    if name != "/" and broker.eval(f'rabbit_vhost:exists(<<{",".join(map(str, name.encode()))}>>)') == "false":
        broker.add_vhost(name)
    vhost = Vhost(broker, name)
    assert vhost.objects() == ({}, {}, [])
    bare.topology(env=with_url(f"amqp://guest:guest@127.0.0.1:{broker.port}{path}")).ended_with(0)
    assert sorted(vhost.queues()) == ["claim.dead", "claim.in"]
    vhost.ends_with()
    with vhost.channel() as channel:
        for queue in "claim.dead", "claim.in":
            channel.queue_delete(queue)
        for exchange in "eai.claim", "eai.dlx":
            channel.exchange_delete(exchange)
    bare.mq.has_no_queues()


@pytest.mark.parametrize("scheme", ["AMQP", "Amqp"])
def test_the_scheme_is_taken_in_any_case(bare, scheme):
    bare.topology(env=with_url(bare.mq.url(scheme=scheme))).ended_with(0)
    bare.mq.ends_with()


def test_a_missing_user_means_guest(bare):
    bare.topology(env=with_url(f"amqp://127.0.0.1:{bare.mq.broker.port}/{bare.mq.name}")).ended_with(0)
    bare.mq.ends_with()


@pytest.mark.case(16)
@pytest.mark.parametrize("written, password", [("p%40s%2F%23%25%3A", "p@s/#%:"), ("p:w", "p:w"), ("p+w", "p+w"), ("caf%C3%A9", "café"), ("%20x%20", " x ")])
def test_a_password_is_decoded_as_pika_does_and_never_shown(lab, written, password):
    user = f"u-{lab.mq.name}"
    lab.mq.broker.add_user(user, password)
    lab.mq.broker.permit(user, lab.mq.name)
    url = f"amqp://{user}:{written}@127.0.0.1:{lab.mq.broker.port}/{lab.mq.name}"
    said = lab.topology("-v", env=with_url(url)).ended_with(0)
    running = lab.consumer("-v", env=with_url(url))
    wait_for(lambda: lab.mq.consumers() == 1 or not running.alive(), what="it consumes")
    assert written.encode() not in running.command_line()
    heard = running.stop().ended_with(0)
    refused = lab.topology("-v", env=with_url(url.replace(":" + written, ":" + written + "0"))).ended_with(77)
    for secret in written, password:
        if len(secret) > 3 or secret in ("p:w", "p+w"):
            assert secret not in said.out + said.err + heard.out + heard.err + refused.out + refused.err
    lab.mq.ends_with()


@pytest.mark.case(16)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("url", ["amqp://guest:s3cret-word@127.0.0.1:{refused}/", "amqp://guest:s3cret-word@127.0.0.1:{refused}/?x=1",
                                 "amqp://guest:s3cret-word@127.0.0.1:99999/", "nonsense:s3cret-word@", "amqp://guest:s3cret-word@127.0.0.1:{port}/nowhere"],
                         ids=["unreachable", "unknown name", "bad port", "nonsense", "no vhost"])
def test_no_message_shows_the_password(lab, program, url):
    given = [{"20": "0.5"}.get(each, each) for each in arguments(lab, program)]
    address = url.format(refused=lab.also(RefusedPort()).port, port=lab.mq.broker.port)
    for options in [], ["-v"], ["--log-format", "json"]:
        done = lab.run(program, *given, *options, env=with_url(address), bound=20)
        assert done.status in (64, 69, 77), done
        assert "s3cret-word" not in done.out + done.err
    lab.mq.ends_with()


# --- localhost and IPv6

@pytest.mark.case(18)
def test_localhost_works_with_a_broker_on_127_0_0_1_only(bare):
    bare.topology(env=with_url(bare.mq.url(host="localhost"))).ended_with(0)
    bare.mq.ends_with()


def can(*command):
    return shutil.which(command[0]) and subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.case(18)
@pytest.mark.skipif(not can("unshare", "-m", "true"), reason="may not make a mount namespace")
def test_localhost_works_when_it_means_the_ipv6_address_first(bare):
    hosts = bare.file("hosts", "::1 localhost\n127.0.0.1 localhost\n")
    prefix = ("unshare", "-m", "sh", "-c", f'mount --bind {hosts} /etc/hosts && exec "$@"', "sh")
    bare.topology(env=with_url(bare.mq.url(host="localhost")), prefix=prefix).ended_with(0)
    bare.mq.ends_with()


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        return True
    except OSError:
        return False


@pytest.mark.case(18)
@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on loopback")
@pytest.mark.parametrize("program", PROGRAMS)
def test_an_ipv6_address_stands_in_brackets(lab, program):
    proxy = lab.also(Proxy(lab.mq.broker.port, host="::1"))
    given = arguments(lab, program) + (["--until-empty"] if program == "consumer" else [])
    lab.run(program, *given, env=with_url(lab.mq.url(host="[::1]", port=proxy.port))).ended_with(0)
    assert proxy.connections == 1
    lab.mq.ends_with(claim_in=["a"] if program == "publish" else [])


# --- variables

@pytest.mark.skipif(not can("unshare", "-n", "true"), reason="may not make a network namespace")
@pytest.mark.parametrize("value", [None, ""], ids=["unset", "empty"])
def test_the_default_url_is_guest_at_127_0_0_1_5672(bare, value):
    environment = {"EAI_AMQP_URL": value, "EAI_AMQP_URL_FILE": value}
    done = bare.topology(env=environment, prefix=("unshare", "-n"), bound=30)
    done.ended_with(69, "127.0.0.1", "5672")
    bare.mq.has_no_queues()


@pytest.mark.parametrize("newline", ["", "\n"], ids=["no newline", "newline"])
@pytest.mark.parametrize("url", [None, ""], ids=["unset", "empty"])
def test_the_url_may_come_from_a_file(bare, newline, url):
    path = bare.file("url", bare.mq.url() + newline)
    bare.topology(env={"EAI_AMQP_URL": url, "EAI_AMQP_URL_FILE": path}).ended_with(0)
    bare.mq.ends_with()


def test_the_variable_goes_before_the_file(bare):
    path = bare.file("url", "redis://nonsense")
    bare.topology(env={"EAI_AMQP_URL_FILE": path}).ended_with(0)
    bare.topology(env={"EAI_AMQP_URL_FILE": "/nonexistent"}).ended_with(0)
    bare.mq.ends_with()


def test_only_one_newline_of_the_file_is_dropped(bare):
    path = bare.file("url", bare.mq.url() + "\n\n")
    bare.topology(env={"EAI_AMQP_URL": None, "EAI_AMQP_URL_FILE": path}).ended_with(64)
    bare.mq.has_no_queues()


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_unreadable_url_file_is_66_and_named(bare, program):
    done = bare.run(program, *arguments(bare, program), env={"EAI_AMQP_URL": None, "EAI_AMQP_URL_FILE": "/nonexistent/url"}, bound=20)
    done.ended_with(66, "/nonexistent/url")
    bare.mq.has_no_queues()


def test_a_url_file_with_a_bad_url_does_not_show_its_password(bare):
    path = bare.file("url", "amqp://guest:s3cret-word@127.0.0.1:99999/")
    done = bare.topology("-v", env={"EAI_AMQP_URL": None, "EAI_AMQP_URL_FILE": path}).ended_with(64)
    assert "s3cret-word" not in done.err + done.out
    bare.mq.has_no_queues()
