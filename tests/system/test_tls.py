"""amqps: SPEC section 2."""
import socket
import threading

import pytest

from support.claims import Answer
from support.proxy import Proxy
from support.waiting import wait_for


def secure(bare, certificates, query="", host="localhost", port=None, ca="good", **login):
    cas = {"good": f"cacertfile={certificates.ca}", "other": f"cacertfile={certificates.other_ca}", "none": ""}
    whole = "&".join(part for part in (cas[ca], query) if part)
    return {"EAI_AMQP_URL": bare.mq.url(whole, host=host, port=port or bare.mq.broker.tls_port, scheme="amqps", **login)}


@pytest.mark.case(20)
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_the_right_ca_and_the_right_host_work(bare, certificates, host):
    bare.topology(env=secure(bare, certificates, host=host)).ended_with(0)
    bare.mq.ends_with()


@pytest.mark.case(20)
def test_all_three_programs_work_over_tls(bare, certificates):
    environment = secure(bare, certificates)
    bare.topology(env=environment).ended_with(0)
    body = '{"guid":"big","fill":"%s"}' % ("x" * 3_000_000)
    bare.publish(bare.claim("a"), bare.file("big", body), env=environment).ended_with(0)
    running = bare.consumer("--until-empty", env=environment)
    running.wait(60).ended_with(0)
    assert bare.claims.calls_by_id() == {"a": 1, "big": 1}
    bare.mq.ends_with()


@pytest.mark.case(20)
def test_a_wrong_host_is_69_with_the_reason(bare, certificates):
    elsewhere = bare.also(Proxy(bare.mq.broker.tls_port, host="127.0.0.2"))
    done = bare.topology(env=secure(bare, certificates, host="127.0.0.2", port=elsewhere.port), bound=30).ended_with(69, "127.0.0.2")
    assert "certificate" in done.err.lower() or "mismatch" in done.err.lower(), done
    assert len(done.err_lines) == 1
    bare.mq.has_no_queues()


@pytest.mark.case(20)
@pytest.mark.parametrize("ca", ["other", "none"], ids=["another CA", "the system's CAs"])
def test_an_unknown_ca_is_69_with_the_reason(bare, certificates, ca):
    done = bare.topology(env=secure(bare, certificates, ca=ca), bound=30).ended_with(69, "localhost")
    assert "certificate" in done.err.lower(), done
    assert len(done.err_lines) == 1
    bare.mq.has_no_queues()


def test_the_system_bundle_is_used_without_cacertfile(bare, certificates):
    """OpenSSL's own variable stands in for /etc/ssl/certs."""
    bare.topology(env=secure(bare, certificates, ca="none") | {"SSL_CERT_FILE": certificates.ca}).ended_with(0)
    bare.mq.ends_with()


def test_verify_none_takes_any_certificate(bare, certificates):
    bare.topology(env=secure(bare, certificates, "verify=verify_none", ca="none")).ended_with(0)
    bare.topology(env=secure(bare, certificates, "verify=verify_none", ca="other")).ended_with(0)
    bare.mq.ends_with()


def test_server_name_indication_names_the_host_to_verify(bare, certificates):
    elsewhere = bare.also(Proxy(bare.mq.broker.tls_port, host="127.0.0.2"))
    environment = secure(bare, certificates, "server_name_indication=localhost", host="127.0.0.2", port=elsewhere.port)
    bare.topology(env=environment).ended_with(0)
    wrong = secure(bare, certificates, "server_name_indication=other.example")
    bare.topology(env=wrong, bound=30).ended_with(69)
    bare.mq.ends_with()


@pytest.mark.case(20)
@pytest.mark.parametrize("program", ["topology", "publish"])
def test_amqps_to_a_plain_port_is_69_and_bounded(bare, certificates, program):
    given = [bare.claim("a")] if program == "publish" else []
    done = bare.run(program, *given, env=secure(bare, certificates, port=bare.mq.broker.port), bound=40).ended_with(69, "localhost")
    assert done.seconds < 25
    bare.mq.has_no_queues()


@pytest.mark.case(20)
def test_plain_amqp_to_a_tls_port_is_69_and_bounded(bare):
    done = bare.topology(env={"EAI_AMQP_URL": bare.mq.url(port=bare.mq.broker.tls_port)}, bound=40).ended_with(69, "127.0.0.1")
    assert done.seconds < 25
    bare.mq.has_no_queues()


def test_a_peer_that_is_silent_in_the_handshake_is_69_within_stack_timeout(bare, certificates):
    silent = bare.also(socket.create_server(("127.0.0.1", 0)))
    done = bare.topology(env=secure(bare, certificates, "stack_timeout=1.5", port=silent.getsockname()[1]), bound=30).ended_with(69)
    assert done.seconds < 10
    bare.mq.has_no_queues()


@pytest.mark.parametrize("content", [None, "no certificate", ""], ids=["missing", "garbage", "empty"])
def test_an_unusable_ca_file_is_71_and_named(bare, certificates, content):
    path = "/nonexistent/ca.pem" if content is None else bare.file("ca.pem", content)
    proxy = bare.also(Proxy(bare.mq.broker.tls_port))
    url = bare.mq.url(f"cacertfile={path}", host="localhost", port=proxy.port, scheme="amqps")
    bare.topology(env={"EAI_AMQP_URL": url}, bound=30).ended_with(71, path)
    bare.mq.has_no_queues()


def test_a_client_certificate_logs_in_with_external(bare, certificates):
    bare.mq.broker.eval('catch rabbit_auth_backend_internal:add_user(<<"partner">>, <<"unused">>, <<"test">>)')
    bare.mq.broker.permit("partner", bare.mq.name)
    query = f"certfile={certificates.client_cert}&keyfile={certificates.client_key}&auth_mechanism=EXTERNAL"
    bare.topology(env=secure(bare, certificates, query)).ended_with(0)
    bare.mq.ends_with()


def test_a_consumer_over_tls_survives_a_cut(bare, certificates):
    bare.mq.declare()
    proxy = bare.also(Proxy(bare.mq.broker.tls_port))
    gate = threading.Event()
    bare.claims.answers["g"] = [Answer(201, gate=gate)]
    bare.mq.put("g")
    running = bare.consumer(env=secure(bare, certificates, "retry_delay=0.5", port=proxy.port))
    wait_for(lambda: bare.claims.calls("g") == 1, what="g is in flight")
    proxy.cut()
    gate.set()
    wait_for(lambda: bare.mq.depth() == 0, what="acked uncalled")
    running.stop().ended_with(0)
    assert bare.claims.calls("g") == 1
    bare.mq.ends_with()
