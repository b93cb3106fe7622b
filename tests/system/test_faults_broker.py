"""Faults of the broker and of the way to it, at every point of a claim's way: README, "Under every fault"."""
import struct

import pytest

from support.faults import at_every_point
from support.waiting import wait_for
from support.way import Way


@at_every_point("connection reset")
def test_the_connection_is_reset(lab, point):
    way = Way(lab)
    way.reach(point)
    way.proxy.cut()
    way.go_on()
    way.lost_its_connection()
    way.ends("connection reset")


@pytest.mark.cell("acked", "connection reset")
def test_the_connection_is_reset_while_the_ack_arrives(lab):
    way = Way(lab)
    way.reach("acked")
    way.proxy.resume("up")
    wait_for(lambda: lab.mq.depth() == 0, what="the ack has arrived")
    way.proxy.cut()
    way.lost_its_connection()
    way.ends("connection reset")


@at_every_point("broker silent")
def test_the_broker_is_silent_until_the_heartbeat_runs_out(lab, point):
    """Nothing comes through in either direction any more, an ack neither."""
    way = Way(lab, heartbeat=2)
    way.reach(point)
    way.proxy.pause("up", "down")
    way.go_on_alone()
    way.lost_its_connection()
    way.proxy.cut()
    way.go_on()
    way.ends("broker silent")


@at_every_point("delivery timeout 406")
def test_the_delivery_is_unacked_for_too_long(lab, point):
    with lab.mq.broker.delivery_timeout(1000):
        way = Way(lab)
        way.reach(point)
        wait_for(lambda: way.proxy.connections > 1 or lab.mq.consumers() == 0, what="the broker has closed the channel")
    way.go_on()
    way.lost_its_connection()
    assert "PRECONDITION_FAILED" in way.consumer.err()
    way.ends("delivery timeout 406")


@at_every_point("closed by the operator")
def test_the_operator_closes_the_connection(lab, point):
    way = Way(lab)
    way.reach(point)
    lab.mq.broker.close_connections(lab.mq.name, "maintenance window")
    way.go_on()
    way.lost_its_connection()
    assert "CONNECTION_FORCED - maintenance window" in way.consumer.err()
    way.ends("closed by the operator")


@at_every_point("queue deleted")
def test_the_queue_is_deleted_and_made_and_filled_again(lab, point):
    way = Way(lab)
    way.reach(point)
    with lab.mq.channel() as channel:
        channel.queue_delete("claim.in")
    way.go_on()
    way.lost_its_connection()
    lab.mq.declare()
    lab.mq.put(*(["first", "g"] if point == "not called" else ["g"]))
    way.ends("queue deleted")


@at_every_point("consumer cancelled")
def test_the_consumer_is_cancelled_by_the_broker(lab, point):
    """The proxy says so in the broker's name: RabbitMQ itself does when a mirrored queue changes its leader."""
    way = Way(lab)
    way.reach(point)
    way.proxy.say_to_client(basic_cancel("claimq"))
    way.go_on()
    way.lost_its_connection()
    assert "cancelled" in way.consumer.err()
    way.ends("consumer cancelled")


def basic_cancel(consumer_tag):
    method = struct.pack(">HHB", 60, 30, len(consumer_tag)) + consumer_tag.encode() + b"\x01"
    return struct.pack(">BHI", 1, 1, len(method)) + method + b"\xce"


@at_every_point("queue crashed")
def test_the_queue_crashes_and_delivers_again(lab, point):
    """RabbitMQ starts it again and subscribes the same channel: the claim comes a second time while the first is in hand."""
    way = Way(lab)
    way.reach(point)
    lab.mq.broker.crash_queue(lab.mq.name, "claim.in")
    wait_for(lambda: lab.mq.consumers() == 1, what="it is there again, and subscribed")
    way.go_on()
    assert way.ends("queue crashed").summary["duplicate"] >= 1
    assert way.proxy.connections == 1


# --- a broker that stops, or blocks whoever publishes

@at_every_point("broker restarted")
def test_the_broker_is_restarted(frail_lab, point):
    way = Way(frail_lab)
    way.reach(point)
    frail_lab.mq.broker.stop()
    way.go_on()
    way.lost_its_connection()
    way.recorded()
    frail_lab.mq.broker.start()
    way.ends("broker restarted")


@at_every_point("memory alarm")
def test_a_memory_alarm_is_raised(frail_lab, point):
    way = Way(frail_lab)
    way.reach(point)
    frail_lab.mq.broker.raise_memory_alarm()
    way.go_on()
    wait_for(lambda: frail_lab.mq.depth() == 0, what="all is acked, alarm or not")
    frail_lab.mq.broker.clear_alarms()
    assert way.ends("memory alarm").summary["accepted"] >= 1
    assert way.proxy.connections == 1


@at_every_point("disk alarm")
def test_a_disk_alarm_is_raised(frail_lab, point):
    way = Way(frail_lab)
    way.reach(point)
    frail_lab.mq.broker.raise_disk_alarm()
    way.go_on()
    wait_for(lambda: frail_lab.mq.depth() == 0, what="all is acked, alarm or not")
    frail_lab.mq.broker.clear_alarms()
    assert way.ends("disk alarm").summary["accepted"] >= 1
    assert way.proxy.connections == 1
