#!/usr/bin/python3
"""Peer: the shape that pika's documentation leads to. Confirms with a BlockingConnection, one round trip a claim.
Files, one claim each, or with --ndjson one claim a line."""
import json
import os
import sys

import pika

ndjson = sys.argv[1:2] == ["--ndjson"]
connection = pika.BlockingConnection(pika.URLParameters(os.environ["EAI_AMQP_URL"]))
channel = connection.channel()
channel.confirm_delivery()
status = 0


def bodies():
    for path in sys.argv[2 if ndjson else 1:]:
        with open(path, "rb") as file:
            if not ndjson:
                yield file.read()
                continue
            for line in file:
                yield line.rstrip(b"\r\n")


for body in bodies():
    properties = pika.BasicProperties(delivery_mode=2, message_id=json.loads(body)["guid"], content_type="application/json")
    try:
        channel.basic_publish("eai.claim", "claim", body, properties, mandatory=True)
    except (pika.exceptions.UnroutableError, pika.exceptions.NackError) as error:
        print(error, file=sys.stderr)
        status = 1
connection.close()
sys.exit(status)
