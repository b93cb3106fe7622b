#!/usr/bin/python3
"""The claims double: a claims system as small as it can be, for the demo and the tests. Loopback, standard library.

POST /v1/claims   201, or 422 where `docs` is present and empty, 503 where claimId starts with BUSY, 400 for no claim
GET  /_stats      {"total", "by_status", "by_guid", "idempotency_keys", "repeated_keys"}
GET  /healthz     200 as soon as it listens

by_guid holds the calls per claimId (per guid, where a claim has no claimId): calls are counted when they arrive, whatever
is answered and whether or not the caller still waits for it.
"""
import argparse
import collections
import http.server
import json
import signal
import sys
import threading
import time

MAX_BODY = 128 * 1024 * 1024  # what the broker lets through by default


class Tally:
    """What was asked for; one lock, because every connection has its own thread."""

    def __init__(self):
        self._lock = threading.Lock()
        self._by_claim = collections.Counter()
        self._by_status = collections.Counter()
        self._by_key = collections.Counter()

    def count(self, claim_id, key, status):
        with self._lock:
            self._by_status[str(status)] += 1
            if claim_id is not None:
                self._by_claim[claim_id] += 1
            if key is not None:
                self._by_key[key] += 1

    def as_json(self):
        with self._lock:
            return {
                "total": self._by_status.total(),
                "by_status": dict(self._by_status),
                "by_guid": dict(self._by_claim),
                "idempotency_keys": len(self._by_key),
                "repeated_keys": sum(calls > 1 for calls in self._by_key.values()),
            }


def judge(body):
    """(claim id or None, status, reason) for the bytes of a claim."""
    try:
        claim = json.loads(body)
    except (ValueError, RecursionError) as error:
        return None, 400, f"not JSON: {error}"
    if not isinstance(claim, dict):
        return None, 400, "not a JSON object"
    claim_id = claim.get("claimId") or claim.get("guid")
    claim_id = None if claim_id is None else str(claim_id)
    if "docs" in claim and not claim["docs"]:
        return claim_id, 422, "a claim needs at least one document"
    if claim_id and claim_id.startswith("BUSY"):
        return claim_id, 503, "the claims system is busy"
    return claim_id, 201, "accepted"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # status line, headers and body leave in one write
    tally = Tally()
    delay = 0.0

    def do_GET(self):
        if self.path == "/_stats":
            self.answer(200, self.tally.as_json())
        elif self.path == "/healthz":
            self.answer(200, {"status": "ok"})
        else:
            self.answer(404, {"reason": "no such path"})

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY:
            # The body stays unread, so the connection can't be used again.
            self.close_connection = True
            self.answer(413 if length.isdecimal() else 411, {"reason": "Content-Length missing or too large"})
            return
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.close_connection = True  # the caller went away in the middle: that is no call
        elif self.path != "/v1/claims":
            self.answer(404, {"reason": "no such path"})
        else:
            claim_id, status, reason = judge(body)
            self.tally.count(claim_id, self.headers.get("Idempotency-Key"), status)
            time.sleep(self.delay)
            self.answer(status, {"claimId": claim_id, "reason": reason})

    def handle_expect_100(self):
        going_on = super().handle_expect_100()
        self.wfile.flush()  # else a large body waits a second for its "100 Continue"
        return going_on

    def answer(self, status, content):
        body = json.dumps(content).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format, *args):
        pass  # GET /_stats is the record


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True  # a call in its delay doesn't hold up the end

    def handle_error(self, request, client_address):
        # A caller that hangs up is everyday here; anything else is a fault of ours and is shown.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def seconds(text):
    value = float(text)
    if not 0 <= value <= 3600:
        raise argparse.ArgumentTypeError("must be between 0 and 3600 seconds")
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    claim = commands.add_parser("claim", help="take claims", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    claim.add_argument("--host", default="127.0.0.1", help="(default: %(default)s)")
    claim.add_argument("--port", type=int, default=9202, help="0 picks a free one (default: %(default)s)")
    claim.add_argument("--delay", type=seconds, default=0.0, metavar="S", help="answer after S seconds")
    arguments = parser.parse_args()

    Handler.delay = arguments.delay
    try:
        server = Server((arguments.host, arguments.port), Handler)
    except (OSError, OverflowError) as error:
        print(f"partner.py: cannot listen on {arguments.host}:{arguments.port}: {error}", file=sys.stderr)
        return 69
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"claims double listens on http://{arguments.host}:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
