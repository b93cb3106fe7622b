"""A throw-away virtual host, looked at through pika and the broker's own counts."""
import contextlib
import itertools
import urllib.parse

import pika

from .broker import quoted
from .waiting import wait_for

IN_ARGUMENTS = {"x-dead-letter-exchange": "eai.dlx", "x-dead-letter-routing-key": "claim.dead"}
_numbers = itertools.count(1)


class Vhost:
    def __init__(self, broker, name=None):
        self.broker = broker
        self.name = name or f"v{next(_numbers)}"
        self.accounted = False  # ends_with() has looked at every message
        if name is None:
            broker.add_vhost(self.name)

    def url(self, query="", user="guest", password="guest", host="127.0.0.1", port=None, scheme="amqp"):
        login = f"{urllib.parse.quote(user, safe='')}:{urllib.parse.quote(password, safe='')}"
        place = f"{host}:{port or self.broker.port}/{urllib.parse.quote(self.name, safe='')}"
        return f"{scheme}://{login}@{place}" + (f"?{query}" if query else "")

    @contextlib.contextmanager
    def channel(self):
        connection = pika.BlockingConnection(pika.URLParameters(self.url("heartbeat=0")))
        try:
            yield connection.channel()
        finally:
            if connection.is_open:
                connection.close()

    def declare(self, claim_in=IN_ARGUMENTS, bind_dead=True):
        """SPEC section 1's objects, made without the program under test."""
        with self.channel() as channel:
            channel.exchange_declare("eai.claim", "direct", durable=True)
            channel.exchange_declare("eai.dlx", "direct", durable=True)
            channel.queue_declare("claim.in", durable=True, arguments=claim_in)
            channel.queue_declare("claim.dead", durable=True)
            channel.queue_bind("claim.in", "eai.claim", "claim")
            if bind_dead:
                channel.queue_bind("claim.dead", "eai.dlx", "claim.dead")

    def put(self, *ids, body=None, **properties):
        """Put one message per id on claim.in, as publish does. On return they are on the broker's disk."""
        with self.channel() as channel:
            channel.tx_select()
            for each in ids:
                values = {"message_id": each, "delivery_mode": 2, "content_type": "application/json"} | properties
                content = claim_body(each) if body is None else body
                channel.basic_publish("", "claim.in", content, pika.BasicProperties(**values))
            channel.tx_commit()

    def exchanges(self):
        """name -> [type, durable, auto-delete, internal, arguments], without what every vhost has."""
        rows = self._info("rabbit_exchange:info_all", "exchange", "type", "durable", "auto_delete", "internal", "arguments")
        return {name: rest for name, *rest in rows if name and not name.startswith("amq.")}

    def queues(self):
        """name -> [durable, auto-delete, arguments]."""
        rows = self._info("rabbit_amqqueue:info_all", "queue", "durable", "auto_delete", "arguments")
        return {name: rest for name, *rest in rows}

    def bindings(self):
        """(exchange, key, destination) of each, without the default exchange's."""
        rows = self.broker.json(f"[[S, K, D] || {{binding, {{resource, _, exchange, S}}, K, {{resource, _, _, D}}, _}} "
                                f"<- rabbit_binding:list({quoted(self.name)}), S =/= <<>>]")
        return sorted(map(tuple, rows))

    def objects(self):
        return self.exchanges(), self.queues(), self.bindings()

    def _info(self, call, kind, *items):
        pairs = ", ".join(f"{{_, V{at}}}" for at in range(len(items)))
        values = ", ".join(f"V{at}" for at in range(len(items) - 1))
        last = f"maps:from_list([{{K, V}} || {{K, _, V}} <- V{len(items) - 1}])"
        return self.broker.json(f"[[N, {values}, {last}] || [{{name, {{resource, _, {kind}, N}}}}, {pairs}] "
                                f"<- {call}({quoted(self.name)}, [name, {', '.join(items)}])]")

    def depth(self, queue="claim.in"):
        """Messages in the queue, ready or unacked."""
        return sum(self.broker.queues(self.name)[queue][:2])

    def unacked(self, queue="claim.in"):
        return self.broker.queues(self.name)[queue][1]

    def consumers(self, queue="claim.in"):
        return self.broker.queues(self.name)[queue][2]

    def read(self, queue):
        """Take everything out of a queue in which nothing is unacked: a list of (method, properties, body)."""
        wait_for(lambda: self.unacked(queue) == 0, 30, f"nothing in {queue} is unacked")
        count = self.depth(queue)
        with self.channel() as channel:
            messages = [channel.basic_get(queue, auto_ack=True) for _ in range(count)]
            assert channel.basic_get(queue, auto_ack=True)[0] is None, f"more than the counted {count} in {queue}"
        return messages

    def ends_with(self, claim_in=(), dead=()):
        """Account for every message: exactly these ids are left in the two queues, and no other queue exists."""
        wanted = {"claim.in": sorted(claim_in), "claim.dead": sorted(dead)}
        counts = {queue: len(ids) for queue, ids in wanted.items()}
        try:
            wait_for(lambda: self._counts() == counts, 20, "the queues' depths")
        except AssertionError:
            pass  # the comparison below says more
        found = {queue: self.read(queue) for queue in self._counts()}
        assert {queue: sorted(ids_of(messages)) for queue, messages in found.items()} == wanted
        self.accounted = True
        return found["claim.in"] + found["claim.dead"]

    def has_no_queues(self):
        assert self.broker.queues(self.name) == {}
        self.accounted = True

    def _counts(self):
        return {name: ready + unacked for name, (ready, unacked, _) in self.broker.queues(self.name).items()}


def claim_body(guid):
    return b'{"guid":"%s","amount":12.5}' % guid.encode()


def ids_of(messages):
    return [properties.message_id for _, properties, _ in messages]
