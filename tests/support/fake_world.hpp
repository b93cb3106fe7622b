// All that is outside of a consumer, and one consumer's ways to it.
#pragma once
#include "consume/consume_loop.hpp"
#include "fake_broker.hpp"
#include "fake_claims.hpp"
#include "fake_clock.hpp"
#include "fake_delivery_channel.hpp"
#include "fake_inbox.hpp"
#include "fake_stop.hpp"
#include "fake_store.hpp"
#include "witness.hpp"

namespace claimq::fake {

struct World {
    FakeClock clock;
    Witness witness;
    Descriptors descriptors;
    FakeBroker broker{clock, witness};
    FakeClaimsSystem claims{clock, witness};
    FakeStore store;
};

// Dies with its process, and then gives up what a process holds: its connection and its locks.
struct Seams {
    Seams(World& world, const Process& process, const consume::Options& options)
        : channel(world.clock, world.broker, world.witness, world.descriptors, process, options.prefetch),
          inbox(world.clock, world.store, world.witness, process),
          api(world.clock, world.claims, world.witness, world.descriptors, process, options.timeout),
          stop(world.descriptors) {}

    FakeDeliveryChannel channel;
    FakeInbox inbox;
    FakeClaimsApi api;
    FakeStop stop;
};

}  // namespace claimq::fake
