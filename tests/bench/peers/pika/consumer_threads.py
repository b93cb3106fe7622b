#!/usr/bin/python3
"""Peer: an expert's pika consumer. As many threads as the prefetch call the claims system, each on a keep-alive
connection of its own; the connection's thread commits what has finished in one transaction, then acks."""
import argparse
import collections
import http.client
import os
import queue
import socket
import sqlite3
import threading
import time
import urllib.parse

import pika

arguments = argparse.ArgumentParser()
arguments.add_argument("--claim", required=True)
arguments.add_argument("--max-seconds", type=float, required=True)
arguments.add_argument("--prefetch", type=int, default=5)
arguments.add_argument("--until-idle", type=float, default=0)
options = arguments.parse_args()
url = urllib.parse.urlsplit(options.claim)

store = sqlite3.connect(os.environ["EAI_MQ_DB"], isolation_level=None, timeout=10)
store.execute("PRAGMA journal_mode=WAL")
store.execute("PRAGMA synchronous=FULL")
store.execute("CREATE TABLE IF NOT EXISTS processed(message_id TEXT PRIMARY KEY, at REAL) WITHOUT ROWID")
connection = pika.BlockingConnection(pika.URLParameters(os.environ["EAI_AMQP_URL"]))
channel = connection.channel()
channel.basic_qos(prefetch_count=options.prefetch)

work = queue.SimpleQueue()
finished = collections.deque()  # (method, message_id, status)
count, first, last = 0, None, time.monotonic()


def post(claims, message_id, body):
    headers = {"Content-Type": "application/json", "Idempotency-Key": f'"{message_id}"'}
    claims.request("POST", "/v1/claims", body, headers)
    answer = claims.getresponse()
    answer.read()
    return answer.status


def call_claims_system():
    claims = None
    while True:
        method, message_id, body = work.get()
        try:
            if claims is None:
                claims = http.client.HTTPConnection(url.hostname, url.port, timeout=10)
                claims.connect()
                claims.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            status = post(claims, message_id, body)
        except (OSError, http.client.HTTPException):
            claims, status = None, 0
        finished.append((method, message_id, status))
        if len(finished) == 1:  # else the first one's wake-up takes this one along
            connection.add_callback_threadsafe(settle_finished)


def settle_finished():
    global count, last
    batch = []
    while finished:
        batch.append(finished.popleft())
    if not batch:
        return
    store.execute("BEGIN IMMEDIATE")
    now = time.time()
    accepted = [(message_id, now) for _, message_id, status in batch if status == 201]
    store.executemany("INSERT OR IGNORE INTO processed VALUES(?,?)", accepted)
    store.execute("COMMIT")
    for method, _, status in batch:
        if status == 201:
            channel.basic_ack(method.delivery_tag)
        elif status == 422 or method.redelivered:
            channel.basic_reject(method.delivery_tag, requeue=False)
        else:
            channel.basic_nack(method.delivery_tag, requeue=True)
    count, last = count + len(batch), time.monotonic()


def on_message(_, method, properties, body):
    global first
    first = first or time.monotonic()
    if store.execute("SELECT 1 FROM processed WHERE message_id=?", (properties.message_id,)).fetchone():
        channel.basic_ack(method.delivery_tag)
    else:
        work.put((method, properties.message_id, body))


for _ in range(options.prefetch):
    threading.Thread(target=call_claims_system, daemon=True).start()
channel.basic_consume("claim.in", on_message)
end = time.monotonic() + options.max_seconds
while time.monotonic() < end:
    connection.process_data_events(0.1)
    settle_finished()
    if options.until_idle and count and time.monotonic() - last > options.until_idle:
        break
channel.cancel()
connection.close()
print(f"{count} in {last - (first or last):.6f} s")
