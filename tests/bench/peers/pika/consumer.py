#!/usr/bin/python3
"""Peer: the shape that pika's documentation leads to. One claim after the other, one keep-alive connection, one durable
commit a claim, ack after it."""
import argparse
import http.client
import os
import socket
import sqlite3
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

store = sqlite3.connect(os.environ["EAI_MQ_DB"], isolation_level=None)
store.execute("PRAGMA journal_mode=WAL")
store.execute("PRAGMA synchronous=FULL")
store.execute("CREATE TABLE IF NOT EXISTS processed(message_id TEXT PRIMARY KEY, at REAL) WITHOUT ROWID")
connection = pika.BlockingConnection(pika.URLParameters(os.environ["EAI_AMQP_URL"]))
channel = connection.channel()
channel.basic_qos(prefetch_count=options.prefetch)

claims = None


def post(message_id, body):
    global claims
    try:
        if claims is None:
            claims = http.client.HTTPConnection(url.hostname, url.port, timeout=10)
            claims.connect()
            claims.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        headers = {"Content-Type": "application/json", "Idempotency-Key": f'"{message_id}"'}
        claims.request("POST", "/v1/claims", body, headers)
        answer = claims.getresponse()
        answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):
        claims = None
        return 0


end = time.monotonic() + options.max_seconds
count, first, last = 0, None, time.monotonic()
for method, properties, body in channel.consume("claim.in", inactivity_timeout=0.1):
    now = time.monotonic()
    if now > end or (method is None and options.until_idle and count and now - last > options.until_idle):
        break
    if method is None:
        continue
    first = first or now
    if store.execute("SELECT 1 FROM processed WHERE message_id=?", (properties.message_id,)).fetchone():
        channel.basic_ack(method.delivery_tag)
        continue
    status = post(properties.message_id, body)
    if status == 201:
        store.execute("INSERT OR IGNORE INTO processed VALUES(?,?)", (properties.message_id, time.time()))
        channel.basic_ack(method.delivery_tag)
    elif status == 422 or method.redelivered:
        channel.basic_reject(method.delivery_tag, requeue=False)
    else:
        channel.basic_nack(method.delivery_tag, requeue=True)
    count, last = count + 1, time.monotonic()
channel.cancel()
connection.close()
print(f"{count} in {last - (first or last):.6f} s")
