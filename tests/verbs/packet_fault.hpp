// Two hosts and faults of packets.
#pragma once

#include "injection.hpp"

namespace verbs_test {

class PacketFault : public Injection {
  protected:
    void SetUp() override {
        Injection::SetUp();
        watch();
    }
    // A WRITE of five packets completes whatever the fault did, and landed whole.
    void expect_recovers(const simverbs_fault& fault) {
        connect();
        const std::uint32_t id = inject(fault);
        write(1, 5);
        expect(*a, 1, IBV_WC_SUCCESS);
        EXPECT_EQ(fired(id), 1U);
        expect_written(5);
        expect_both_live();
        expect_silence();
    }
};

}  // namespace verbs_test
