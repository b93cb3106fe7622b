#!/usr/bin/python3
"""Peer: an expert's pika publish. A SelectConnection with a window of unconfirmed claims.
Files, one claim each, or with --ndjson one claim a line."""
import json
import os
import sys

import pika

WINDOW = 256
ndjson = sys.argv[1:2] == ["--ndjson"]
failed = 0
sent = confirmed = 0
exhausted = False


def bodies():
    for path in sys.argv[2 if ndjson else 1:]:
        with open(path, "rb") as file:
            if not ndjson:
                yield file.read()
                continue
            for line in file:
                yield line.rstrip(b"\r\n")


claims = bodies()


def fill_window():
    global sent, exhausted
    while not exhausted and sent - confirmed < WINDOW:
        body = next(claims, None)
        if body is None:
            exhausted = True
            break
        properties = pika.BasicProperties(delivery_mode=2, message_id=json.loads(body)["guid"],
                                          content_type="application/json")
        channel.basic_publish("eai.claim", "claim", body, properties, mandatory=True)
        sent += 1
    if exhausted and sent == confirmed:
        connection.close()


def on_confirm(frame):
    global confirmed, failed
    tag = frame.method.delivery_tag
    number = tag - on_confirm.last if frame.method.multiple else 1
    on_confirm.last = max(on_confirm.last, tag)
    confirmed += number
    if isinstance(frame.method, pika.spec.Basic.Nack):
        failed += number
    fill_window()


on_confirm.last = 0


def on_return(*_):
    global failed
    failed += 1


def on_channel(opened):
    global channel
    channel = opened
    channel.add_on_return_callback(on_return)
    channel.confirm_delivery(on_confirm, callback=lambda _: fill_window())


connection = pika.SelectConnection(pika.URLParameters(os.environ["EAI_AMQP_URL"]),
                                   on_open_callback=lambda one: one.channel(on_open_callback=on_channel),
                                   on_close_callback=lambda one, _: one.ioloop.stop(),
                                   on_open_error_callback=lambda one, _: one.ioloop.stop())
connection.ioloop.start()
sys.exit(0 if exhausted and sent == confirmed and not failed else 1)
