"""What one test works with: a vhost, a claims system, a folder, and the three programs."""
import json
import os

from .claims import Claims
from .programs import Running, base_environment
from .waiting import wait_for


class Lab:
    def __init__(self, mq, folder):
        self.mq = mq
        self.folder = str(folder)
        self.claims = Claims()
        self.store = os.path.join(self.folder, "store", "processed.db")
        self.env = base_environment(folder) | {"EAI_AMQP_URL": mq.url(), "EAI_MQ_DB": self.store}
        self._started = []
        self._closing = [self.claims]

    def start(self, program, *arguments, env=None, stdin=b"", limits=(), prefix=()):
        """Run in the background. A variable given as None is taken out of the environment."""
        environment = {name: value for name, value in (self.env | (env or {})).items() if value is not None}
        running = Running(self.folder, program, arguments, environment, stdin, limits, prefix)
        self._started.append(running)
        return running

    def run(self, program, *arguments, bound=90, **options):
        return self.start(program, *arguments, **options).wait(bound)

    def topology(self, *arguments, **options):
        return self.run("topology", *arguments, **options)

    def publish(self, *arguments, **options):
        return self.run("publish", *arguments, **options)

    def consumer(self, *arguments, claims=None, **options):
        return self.start("consumer", "--claim", (claims or self.claims).url, *arguments, **options)

    def consume(self, *arguments, until=None, bound=90, **options):
        """Run a consumer until claim.in is empty (or `until` holds), then end it with SIGTERM; it must end with 0."""
        running = self.consumer(*arguments, **options)
        wait_for(lambda: self.mq.consumers() > 0 or not running.alive(), bound, "it consumes")
        until = until or (lambda: self.mq.depth() == 0)
        wait_for(lambda: until() or not running.alive(), bound, "the consumer has done its work")
        return running.stop().ended_with(0)

    def file(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def claim(self, guid, **more):
        """A claim file."""
        return self.file(f"{abs(hash(guid))}.json", json.dumps({"guid": guid} | more))

    def also(self, closable):
        """Close this too when the test ends."""
        self._closing.append(closable)
        return closable

    def story(self):
        """All that helps to understand a failed test: each program's words, the calls, what is left in the queues."""
        parts = [running.story() for running in self._started]
        parts.append(f"calls: {self.claims.calls_by_id()}")
        try:
            parts.append(f"queues [ready, unacked, consumers]: {self.mq.broker.queues(self.mq.name)}")
        except Exception as error:  # the broker may be what the test took away
            parts.append(f"queues: {error!r}")
        return "\n".join(parts)

    def close(self):
        for running in self._started:
            if running.alive():
                running.kill()
        for each in self._closing:
            each.close()
