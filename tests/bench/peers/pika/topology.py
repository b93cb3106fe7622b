#!/usr/bin/python3
"""Peer: topology in pika."""
import os

import pika

connection = pika.BlockingConnection(pika.URLParameters(os.environ["EAI_AMQP_URL"]))
channel = connection.channel()
channel.exchange_declare("eai.claim", "direct", durable=True)
channel.exchange_declare("eai.dlx", "direct", durable=True)
channel.queue_declare("claim.in", durable=True, arguments={"x-dead-letter-exchange": "eai.dlx",
                                                           "x-dead-letter-routing-key": "claim.dead"})
channel.queue_declare("claim.dead", durable=True)
channel.queue_bind("claim.in", "eai.claim", "claim")
channel.queue_bind("claim.dead", "eai.dlx", "claim.dead")
connection.close()
