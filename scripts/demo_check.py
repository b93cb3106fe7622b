#!/usr/bin/python3
"""Compares what the demo did with what SPEC promises; prints a table, and exits 1 where they differ.

demo_check.py FIRST-STATS SECOND-STATS CLAIM-FILE…

The stats are the claims double's, after all files were published and consumed once, and after a second time. The queue
is read with pika and the store with sqlite3, so none of the programs under test is asked.
"""
import collections
import json
import os
import sqlite3
import sys

import pika

ROW = "   {:<36}  {:<17}  {:>6}  {:>6}  {:<24}  {}"


def bodies_of(path):
    with open(path, "rb") as file:
        content = file.read()
    return content.splitlines() if path.endswith(".ndjson") else [content]


def expected_calls(claim):
    """(calls in the first round, calls after the second, copies in claim.dead after the second)"""
    if not claim["docs"]:
        return 1, 2, 2  # 422: dead-lettered at once, each time
    if claim["claimId"].startswith("BUSY"):
        return 2, 4, 2  # 503: requeued once, then dead-lettered, each time
    return 1, 1, 0  # 201: never called again


def drain(channel, queue):
    """Every message of the queue, acked: the broker is the demo's own."""
    messages = []
    while True:
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return messages
        messages.append((properties, body))


def end_of(in_store, dead):
    ends = []
    if in_store:
        ends.append("accepted, in the store")
    if dead:
        ends.append(f"claim.dead ({dead} copies)")
    return " and ".join(ends) or "nowhere"


def main():
    with open(sys.argv[1]) as first, open(sys.argv[2]) as second:
        calls = json.load(first)["by_guid"], json.load(second)["by_guid"]
    bodies = [body for path in sys.argv[3:] for body in bodies_of(path)]
    claims = {}
    for body in bodies:
        claims.setdefault(json.loads(body)["guid"], json.loads(body))

    connection = pika.BlockingConnection(pika.URLParameters(os.environ["EAI_AMQP_URL"]))
    channel = connection.channel()
    left, dead = drain(channel, "claim.in"), drain(channel, "claim.dead")
    connection.close()
    store = sqlite3.connect(os.environ["EAI_MQ_DB"])
    processed = {row[0] for row in store.execute("SELECT message_id FROM processed")}
    copies = collections.Counter(properties.message_id for properties, _ in dead)

    faults = []
    print("   calls: after the first round, and after both\n")
    print(ROW.format("guid", "claimId", "first", "both", "where it ended", ""))
    for guid, claim in claims.items():
        once, twice = (round.get(claim["claimId"], 0) for round in calls)
        seen = once, twice, copies[guid]
        right = seen == expected_calls(claim) and (guid in processed) == (expected_calls(claim)[2] == 0)
        print(ROW.format(guid, claim["claimId"], once, twice, end_of(guid in processed, copies[guid]),
                         "ok" if right else "WRONG"))
        if not right:
            faults.append(f"{guid}: calls, calls, copies in claim.dead should be {expected_calls(claim)}, are {seen}; "
                          f"{'in' if guid in processed else 'not in'} the store")
    if left:
        faults.append(f"claim.in still holds {len(left)} messages")
    if strangers := copies.keys() - claims.keys():
        faults.append(f"claim.dead holds ids that were not published: {strangers}")
    if processed - claims.keys():
        faults.append(f"the store holds ids that were not published: {processed - claims.keys()}")
    if strangers := calls[1].keys() - {claim["claimId"] for claim in claims.values()}:
        faults.append(f"the claims system was called for unknown claims: {strangers}")
    for properties, body in dead:
        if body not in bodies:
            faults.append(f"{properties.message_id}: the body in claim.dead is not the file's bytes")
        if properties.delivery_mode != 2 or properties.content_type != "application/json":
            faults.append(f"{properties.message_id}: not persistent JSON: {properties}")

    print(f"\n   {len(bodies)} claims in {len(sys.argv) - 3} files, {len(claims)} different ones, published twice:")
    for fault in faults:
        print(f"   WRONG: {fault}")
    if not faults:
        print("   all as promised: each accepted one called once, the others in claim.dead, nothing lost")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
