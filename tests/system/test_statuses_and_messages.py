"""Exit statuses and messages: SPEC section 3."""
import json
import os
import socket

import pytest

from support.claims import BUSY, REJECTED
from support.listening import Listening
from support.ports import RefusedPort
from support.proxy import Proxy
from support.waiting import wait_for

PROGRAMS = ("topology", "publish", "consumer")


def arguments(lab, program):
    """A plain way to call each program."""
    return {"topology": [], "publish": [lab.claim("a")], "consumer": ["--claim", lab.claims.url, "--max-seconds", "30"]}[program]


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_names_environment_and_statuses(bare, program):
    done = bare.run(program, "--help").ended_with(0)
    wanted = ["EAI_AMQP_URL", "EAI_AMQP_URL_FILE", "64", "69", "76", "77"]
    if program == "consumer":
        wanted += ["EAI_MQ_DB", "EAI_CLAIM_TOKEN", "EAI_CLAIM_TOKEN_FILE", "74"]
    assert [word for word in wanted if word not in done.out] == []
    assert done.err == ""
    bare.mq.has_no_queues()


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_names_every_option_of_the_contract(bare, program):
    done = bare.run(program, "--help").ended_with(0)
    own = {"topology": ["--check", "--queue-type"],
           "publish": ["--ndjson", "--window", "--confirm-timeout", "--json"],
           "consumer": ["--claim", "--max-seconds", "--prefetch", "--concurrency", "--timeout", "--retry-delay", "--until-empty",
                        "--accept", "--reject", "--stop-on", "--retention", "--assume-dead-letter"]}[program]
    common = ["--help", "--version", "-v", "-q", "--log-format"]
    assert [option for option in common + own if option not in done.out] == []
    bare.mq.has_no_queues()


@pytest.mark.parametrize("program", PROGRAMS)
def test_version_goes_to_standard_output(bare, program):
    done = bare.run(program, "--version").ended_with(0)
    assert any(character.isdigit() for character in done.out) and done.err == ""
    bare.mq.has_no_queues()


USAGE = {
    "an unknown option": lambda program, usual: [*usual, "--no-such-option"],
    "an unknown log format": lambda program, usual: [*usual, "--log-format", "xml"],
    "a URL as an option": lambda program, usual: [*usual, "--url", "amqp://guest:guest@127.0.0.1"],
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("change", USAGE.values(), ids=USAGE)
def test_wrong_usage_is_64_before_any_network(lab, program, change):
    expect_usage_error(lab, program, change(program, arguments(lab, program)))


CONSUMER_USAGE = {
    "no --claim": lambda url: [],
    "max-seconds empty": lambda url: ["--claim", url, "--max-seconds", ""],
    "max-seconds nan": lambda url: ["--claim", url, "--max-seconds", "nan"],
    "max-seconds 0x10": lambda url: ["--claim", url, "--max-seconds", "0x10"],
    "max-seconds inf": lambda url: ["--claim", url, "--max-seconds", "inf"],
    "max-seconds -1": lambda url: ["--claim", url, "--max-seconds", "-1"],
    "max-seconds 5s": lambda url: ["--claim", url, "--max-seconds", "5s"],
    "max-seconds ' 5'": lambda url: ["--claim", url, "--max-seconds", " 5"],
    "prefetch 0": lambda url: ["--claim", url, "--prefetch", "0"],
    "prefetch 10001": lambda url: ["--claim", url, "--prefetch", "10001"],
    "prefetch 2.5": lambda url: ["--claim", url, "--prefetch", "2.5"],
    "prefetch 0x5": lambda url: ["--claim", url, "--prefetch", "0x5"],
    "prefetch 99999999999999999999": lambda url: ["--claim", url, "--prefetch", "99999999999999999999"],
    "concurrency 0": lambda url: ["--claim", url, "--concurrency", "0"],
    "concurrency over prefetch": lambda url: ["--claim", url, "--prefetch", "5", "--concurrency", "6"],
    "timeout 0": lambda url: ["--claim", url, "--timeout", "0"],
    "timeout nan": lambda url: ["--claim", url, "--timeout", "nan"],
    "retry-delay empty": lambda url: ["--claim", url, "--retry-delay", ""],
    "a status that is none": lambda url: ["--claim", url, "--accept", "abc"],
    "claim ftp": lambda url: ["--claim", "ftp://127.0.0.1/"],
    "claim no scheme": lambda url: ["--claim", "127.0.0.1:9202"],
    "claim empty": lambda url: ["--claim", ""],
    "claim no host": lambda url: ["--claim", "http://"],
    "claim with userinfo": lambda url: ["--claim", url.replace("//", "//user:secret@")],
    "claim with query": lambda url: ["--claim", url + "/?a=b"],
    "claim with fragment": lambda url: ["--claim", url + "/#a"],
    "claim port 99999": lambda url: ["--claim", "http://127.0.0.1:99999"],
    "an argument": lambda url: ["--claim", url, "extra"],
}


@pytest.mark.case(46)
@pytest.mark.parametrize("make", CONSUMER_USAGE.values(), ids=CONSUMER_USAGE)
def test_a_bad_value_for_the_consumer_is_64_before_any_network(lab, make):
    done = expect_usage_error(lab, "consumer", make(lab.claims.url))
    assert "secret" not in done.err + done.out


@pytest.mark.case(46)
@pytest.mark.parametrize("given", [[], ["--window", "0", "FILE"], ["--window", "x", "FILE"], ["--confirm-timeout", "nan", "FILE"],
                                   ["--confirm-timeout", "", "FILE"]], ids=" ".join)
def test_a_bad_value_for_publish_is_64_before_any_network(lab, given):
    expect_usage_error(lab, "publish", [lab.claim("a") if each == "FILE" else each for each in given])


def expect_usage_error(lab, program, given):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    done = lab.run(program, *given, env={"EAI_AMQP_URL": lab.mq.url(port=proxy.port)}, bound=20).ended_with(64)
    assert proxy.connections == 0 and lab.claims.connections == 0
    assert done.err and done.out == "", done
    assert not os.path.exists(lab.store)
    lab.mq.ends_with()
    return done


def test_max_seconds_takes_fractions(lab):
    done = lab.run("consumer", "--claim", lab.claims.url, "--max-seconds", "0.5").ended_with(0)
    assert 0.5 <= done.seconds
    lab.mq.ends_with()


# --- the broker's side

@pytest.mark.case(19)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_wrong_password_is_77_after_one_try(lab, program):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    url = lab.mq.url(port=proxy.port, password="wr0ng-secret")
    done = lab.run(program, *arguments(lab, program), env={"EAI_AMQP_URL": url}, bound=20).ended_with(77, "ACCESS_REFUSED")
    assert proxy.connections == 1
    assert "wr0ng-secret" not in done.out + done.err
    lab.mq.ends_with()


@pytest.mark.case(19)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_missing_vhost_is_69_after_one_try(lab, program):
    proxy = lab.also(Proxy(lab.mq.broker.port))
    url = f"amqp://guest:guest@127.0.0.1:{proxy.port}/no-such-vhost"
    lab.run(program, *arguments(lab, program), env={"EAI_AMQP_URL": url}, bound=20).ended_with(69, "no-such-vhost")
    assert proxy.connections == 1
    lab.mq.ends_with()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_vhost_without_permission_is_refused_after_one_try(lab, program):
    user = f"stranger-{program}-{lab.mq.name}"
    lab.mq.broker.add_user(user, "pw")
    done = lab.run(program, *arguments(lab, program), env={"EAI_AMQP_URL": lab.mq.url(user=user, password="pw")}, bound=20)
    assert done.status in (69, 77) and lab.mq.name in done.err, done
    lab.mq.ends_with()


@pytest.mark.parametrize("program", ["topology", "publish"])
def test_an_unreachable_broker_is_69_in_one_line_that_names_it(bare, program):
    refused = bare.also(RefusedPort())
    url = f"amqp://guest:s3cret-word@127.0.0.1:{refused.port}/"
    done = bare.run(program, *arguments(bare, program), env={"EAI_AMQP_URL": url}, bound=20)
    done.ended_with(69, "127.0.0.1", str(refused.port), "refused")
    assert len(done.err_lines) == 1, done
    assert "s3cret-word" not in done.err
    bare.mq.has_no_queues()


@pytest.mark.parametrize("program", ["topology", "publish"])
def test_a_host_that_does_not_resolve_is_69_and_named(bare, program):
    url = "amqp://guest:guest@no-such-host.invalid:5999/"
    done = bare.run(program, *arguments(bare, program), env={"EAI_AMQP_URL": url}, bound=60)
    done.ended_with(69, "no-such-host.invalid")
    assert len(done.err_lines) == 1, done
    bare.mq.has_no_queues()


def test_a_consumer_without_a_broker_is_69_at_its_deadline(bare):
    refused = bare.also(RefusedPort())
    done = bare.run("consumer", "--claim", bare.claims.url, "--max-seconds", "2",
                    env={"EAI_AMQP_URL": f"amqp://guest:guest@127.0.0.1:{refused.port}/"}, bound=30)
    done.ended_with(69, "127.0.0.1", str(refused.port))
    assert 2 <= done.seconds < 15
    bare.mq.has_no_queues()


def test_a_consumer_without_a_broker_is_69_at_a_signal(bare):
    refused = bare.also(RefusedPort())
    running = bare.consumer(env={"EAI_AMQP_URL": f"amqp://guest:guest@127.0.0.1:{refused.port}/"})
    wait_for(lambda: str(refused.port) in running.err() or not running.alive(), what="it says that the broker is not there")
    assert running.alive(), running.wait()
    running.stop(20).ended_with(69)
    bare.mq.has_no_queues()


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"AMQP\x00\x00\x08\x00", b"\x01\x00\x00\xff\xff\xff\xff" + b"x" * 400],
                         ids=["closes", "HTTP", "another version", "garbage"])
def test_a_peer_that_speaks_no_amqp_is_69(bare, program, says):
    server = socket.create_server(("127.0.0.1", 0))
    bare.also(Listening(server, lambda connection: answer(connection, says)))
    url = f"amqp://guest:guest@127.0.0.1:{server.getsockname()[1]}/?stack_timeout=2"
    given = [each.replace("30", "2") if each == "30" else each for each in arguments(bare, program)]
    bare.run(program, *given, env={"EAI_AMQP_URL": url}, bound=40).ended_with(69, "127.0.0.1")
    bare.mq.has_no_queues()


def answer(connection, says):
    try:
        connection.recv(100)
        connection.sendall(says)
    except OSError:
        pass
    connection.close()


@pytest.mark.parametrize("missing", [["claim.in"], ["claim.dead"], ["eai.dlx"], ["claim.in", "claim.dead", "eai.dlx"]], ids=" ".join)
def test_a_consumer_names_every_missing_object_and_ends_with_69(lab, missing):
    with lab.mq.channel() as channel:
        for name in missing:
            channel.exchange_delete(name) if name == "eai.dlx" else channel.queue_delete(name)
    done = lab.run("consumer", "--claim", lab.claims.url, "--max-seconds", "60", bound=30).ended_with(69, *missing)
    present = {"claim.in", "claim.dead", "eai.dlx"} - set(missing)
    assert done.seconds < 25, "not only at the deadline"
    assert lab.claims.connections == 0 and lab.mq.queues().keys() == present - {"eai.dlx"}
    lab.mq.accounted = True


# --- output

def test_the_consumers_result_is_one_json_line_on_standard_output(lab):
    lab.claims.answers = {"b": [REJECTED], "c": [BUSY]}
    lab.mq.put("a", "b", "c")
    done = lab.consume()
    assert len(done.out.splitlines()) == 1
    summary = done.summary
    assert summary.keys() == {"accepted", "duplicate", "rejected", "requeued", "dead_lettered", "conflicts", "seconds"}
    counts = {name: value for name, value in summary.items() if name != "seconds"}
    assert counts == {"accepted": 1, "duplicate": 0, "rejected": 1, "requeued": 1, "dead_lettered": 1, "conflicts": 0}
    assert 0 <= summary["seconds"] <= done.seconds
    lab.mq.ends_with(dead=["b", "c"])


def test_one_log_line_per_settled_delivery_and_never_a_body(lab):
    lab.claims.answers = {"id-b": [REJECTED], "id-c": [BUSY]}
    lab.mq.put("id-a", "id-b", "id-c", body=b'{"guid":"x","secret":"Jane-Doe-1970"}')
    done = lab.consume("-v")
    count = {each: len([line for line in done.err_lines if each in line]) for each in ("id-a", "id-b", "id-c")}
    assert count["id-a"] >= 1 and count["id-b"] >= 1 and count["id-c"] >= 2, done
    assert "Jane-Doe" not in done.err + done.out
    lab.mq.ends_with(dead=["id-b", "id-c"])


def test_without_v_there_is_exactly_one_line_per_settled_delivery(lab):
    lab.claims.answers = {"id-b": [REJECTED], "id-c": [BUSY]}
    lab.mq.put("id-a", "id-b", "id-c")
    done = lab.consume()
    count = [len([line for line in done.err_lines if each in line]) for each in ("id-a", "id-b", "id-c")]
    assert count == [1, 1, 2], done
    lab.mq.ends_with(dead=["id-b", "id-c"])


def test_json_log_lines_parse_and_tell_what_was_settled(lab):
    odd = 'odd "id" \\ \n\x01 é'
    lab.mq.put("id-a", odd)
    done = lab.consume("--log-format", "json")
    lines = [json.loads(line) for line in done.err_lines]
    assert lines and all(isinstance(line, dict) for line in lines)
    settled = [line for line in lines if "id-a" in line.values()]
    assert len(settled) == 1
    assert 201 in settled[0].values() and {"redelivered", "ms"} <= settled[0].keys(), settled
    assert len([line for line in lines if odd in line.values()]) == 1
    lab.mq.ends_with()


@pytest.mark.parametrize("program", PROGRAMS)
def test_failures_are_json_too_with_log_format_json(bare, program):
    refused = bare.also(RefusedPort())
    given = arguments(bare, program)
    if program == "consumer":
        given = ["--claim", bare.claims.url, "--max-seconds", "0.5"]
    url = f"amqp://guest:guest@127.0.0.1:{refused.port}/"
    done = bare.run(program, *given, "--log-format", "json", env={"EAI_AMQP_URL": url}, bound=30).ended_with(69)
    assert all(isinstance(json.loads(line), dict) for line in done.err_lines), done
    bare.mq.has_no_queues()


def test_a_message_id_cannot_forge_a_log_line(lab):
    lab.mq.put("evil\nFORGED line\x1b[31m")
    done = lab.consume()
    assert not any(line.startswith("FORGED") for line in done.err_lines), done
    assert "\x1b" not in done.err
    lab.mq.ends_with()


def test_quiet_says_nothing_but_the_result(lab):
    lab.mq.put("a")
    done = lab.consume("-q")
    assert done.err == "" and done.summary["accepted"] == 1
    lab.mq.ends_with()


def test_quiet_still_tells_a_failure(bare):
    refused = bare.also(RefusedPort())
    url = f"amqp://guest:guest@127.0.0.1:{refused.port}/"
    done = bare.topology("-q", env={"EAI_AMQP_URL": url}).ended_with(69)
    assert len(done.err_lines) == 1
    bare.mq.has_no_queues()
