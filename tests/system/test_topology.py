"""topology: SPEC sections 1 and 4."""
import pytest

IN_ARGUMENTS = {"x-dead-letter-exchange": "eai.dlx", "x-dead-letter-routing-key": "claim.dead"}
QUORUM_IN = IN_ARGUMENTS | {"x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
EXCHANGES = {"eai.claim": ["direct", True, False, False, {}], "eai.dlx": ["direct", True, False, False, {}]}
BINDINGS = [("eai.claim", "claim", "claim.in"), ("eai.dlx", "claim.dead", "claim.dead")]
NAMES = ("eai.claim", "eai.dlx", "claim.in", "claim.dead")


def declared(claim_in, dead):
    return EXCHANGES, {"claim.in": [True, False, claim_in], "claim.dead": [True, False, dead]}, BINDINGS


def test_declares_exactly_section_1_and_the_same_again(bare):
    for _ in range(2):
        bare.topology().ended_with(0)
        assert bare.mq.objects() == declared(IN_ARGUMENTS, {})
    bare.mq.ends_with()


def test_running_again_leaves_messages_alone(lab):
    lab.mq.put("a", "b")
    lab.topology().ended_with(0)
    lab.mq.ends_with(claim_in=["a", "b"])


def test_prints_one_line_per_object_on_standard_output(bare):
    done = bare.topology().ended_with(0)
    lines = done.out.splitlines()
    for name in NAMES:
        assert any(name in line for line in lines), done
    assert len(lines) == 6, "two exchanges, two queues, two bindings"
    bare.mq.ends_with()


def test_quorum_queues_have_the_arguments_of_section_1(bare):
    for _ in range(2):
        bare.topology("--queue-type", "quorum").ended_with(0)
        assert bare.mq.objects() == declared(QUORUM_IN, {"x-queue-type": "quorum"})
    bare.mq.ends_with()


@pytest.mark.case(13)
def test_claim_in_without_dead_lettering_is_76_and_keeps_its_messages(bare):
    with bare.mq.channel() as channel:
        channel.queue_declare("claim.in", durable=True)
    bare.mq.put("a", "b")
    done = bare.topology().ended_with(76, "claim.in", "x-dead-letter-exchange")
    assert len([line for line in done.err_lines if "claim.in" in line]) == 1
    assert bare.mq.queues()["claim.in"] == [True, False, {}]
    with bare.mq.channel() as channel:
        channel.queue_declare("claim.dead", durable=True)
    bare.mq.ends_with(claim_in=["a", "b"])


DIFFERENT = {
    "claim.in's routing key": ("claim.in", "x-dead-letter-routing-key",
                               lambda ch: ch.queue_declare("claim.in", durable=True, arguments=IN_ARGUMENTS | {"x-dead-letter-routing-key": "other"})),
    "claim.in's extra argument": ("claim.in", "x-max-length",
                                  lambda ch: ch.queue_declare("claim.in", durable=True, arguments=IN_ARGUMENTS | {"x-max-length": 5})),
    "claim.in transient": ("claim.in", "durable", lambda ch: ch.queue_declare("claim.in", arguments=IN_ARGUMENTS)),
    "claim.dead's argument": ("claim.dead", "x-message-ttl",
                              lambda ch: ch.queue_declare("claim.dead", durable=True, arguments={"x-message-ttl": 9})),
    "eai.claim's type": ("eai.claim", "type", lambda ch: ch.exchange_declare("eai.claim", "fanout", durable=True)),
    "eai.dlx transient": ("eai.dlx", "durable", lambda ch: ch.exchange_declare("eai.dlx", "direct")),
}


@pytest.mark.parametrize("name, argument, declare", DIFFERENT.values(), ids=DIFFERENT)
@pytest.mark.parametrize("options", [(), ("--check",)], ids=["declare", "check"])
def test_another_property_is_76_naming_object_and_argument(bare, name, argument, declare, options):
    with bare.mq.channel() as channel:
        declare(channel)
    before = [each.get(name) for each in bare.mq.objects()[:2]]
    done = bare.topology(*options)
    assert done.status == 76, done
    assert name in done.out + done.err and argument in done.out + done.err, done
    assert [each.get(name) for each in bare.mq.objects()[:2]] == before
    assert all(count == (0, 0, 0) for count in bare.mq.broker.queues(bare.mq.name).values())
    bare.mq.accounted = True


def test_classic_over_quorum_is_76(bare):
    bare.topology("--queue-type", "quorum").ended_with(0)
    bare.topology().ended_with(76, "claim.in")
    assert bare.mq.objects() == declared(QUORUM_IN, {"x-queue-type": "quorum"})
    bare.mq.ends_with()


def test_an_unknown_queue_type_is_64(bare):
    bare.topology("--queue-type", "stream").ended_with(64)
    bare.mq.has_no_queues()


def test_check_finds_everything_missing_and_makes_nothing(bare):
    done = bare.topology("--check")
    assert done.status == 69, done
    for name in NAMES:
        assert any(name in line and "missing" in line for line in done.out.splitlines()), done
    assert bare.mq.objects() == ({}, {}, [])
    bare.mq.has_no_queues()


def test_check_of_the_right_objects_is_0_and_says_bindings_are_unchecked(lab):
    done = lab.topology("--check").ended_with(0)
    for name in NAMES:
        assert any(name in line and "ok" in line for line in done.out.splitlines()), done
    assert "unchecked" in done.out
    lab.mq.ends_with()


def test_check_names_the_one_missing_object(lab):
    with lab.mq.channel() as channel:
        channel.exchange_delete("eai.dlx")
    done = lab.topology("--check")
    assert done.status == 69, done
    missing = [line for line in done.out.splitlines() if "missing" in line]
    assert len(missing) == 1 and "eai.dlx" in missing[0], done
    assert "eai.dlx" not in lab.mq.exchanges()
    lab.mq.ends_with()


def test_check_says_different_on_the_object_that_differs(bare):
    bare.mq.declare(claim_in={})
    done = bare.topology("--check")
    assert done.status == 76, done
    different = [line for line in done.out.splitlines() if "different" in line]
    assert len(different) == 1 and "claim.in" in different[0], done
    bare.mq.ends_with()


def test_check_works_without_permission_to_configure(lab):
    user = f"looker-{lab.mq.name}"
    lab.mq.broker.add_user(user, "pw")
    lab.mq.broker.permit(user, lab.mq.name, configure="^$")
    lab.topology("--check", env={"EAI_AMQP_URL": lab.mq.url(user=user, password="pw")}).ended_with(0)
    lab.mq.ends_with()


def test_declaring_without_permission_is_77(bare):
    user = f"reader-{bare.mq.name}"
    bare.mq.broker.add_user(user, "pw")
    bare.mq.broker.permit(user, bare.mq.name, configure="^$")
    done = bare.topology(env={"EAI_AMQP_URL": bare.mq.url(user=user, password="pw")}).ended_with(77, "eai.claim")
    assert "refused" in done.err.lower(), "quotes the broker's reason"
    bare.mq.has_no_queues()


def test_takes_no_arguments_besides_options(bare):
    bare.topology("extra").ended_with(64)
    bare.mq.has_no_queues()
