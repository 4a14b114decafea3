// enum ibv_rate in multiples of 2.5 Gb/s and in Mb/s, and back. Rates that are no whole multiple
// have none: -1. An amount that is no rate gives IBV_RATE_MAX, which means "no limit". Equal to
// rdma-core's answers for every input; the Mb/s of FDR and later are its roundings, not ours.
#include <array>

#include "simverbs/abi/entry_points.hpp"

namespace {

struct Rate {
    ibv_rate rate;
    int multiple;  // of 2.5 Gb/s
    int mbps;
};

constexpr int kNone = -1;

constexpr auto kRates = std::to_array<Rate>({
    {IBV_RATE_2_5_GBPS, 1, 2'500},        {IBV_RATE_5_GBPS, 2, 5'000},
    {IBV_RATE_10_GBPS, 4, 10'000},        {IBV_RATE_14_GBPS, kNone, 14'062},
    {IBV_RATE_20_GBPS, 8, 20'000},        {IBV_RATE_25_GBPS, kNone, 25'781},
    {IBV_RATE_28_GBPS, 11, 28'125},       {IBV_RATE_30_GBPS, 12, 30'000},
    {IBV_RATE_40_GBPS, 16, 40'000},       {IBV_RATE_50_GBPS, 20, 53'125},
    {IBV_RATE_56_GBPS, kNone, 56'250},    {IBV_RATE_60_GBPS, 24, 60'000},
    {IBV_RATE_80_GBPS, 32, 80'000},       {IBV_RATE_100_GBPS, kNone, 103'125},
    {IBV_RATE_112_GBPS, kNone, 112'500},  {IBV_RATE_120_GBPS, 48, 120'000},
    {IBV_RATE_168_GBPS, kNone, 168'750},  {IBV_RATE_200_GBPS, kNone, 206'250},
    {IBV_RATE_300_GBPS, kNone, 309'375},  {IBV_RATE_400_GBPS, 160, 425'000},
    {IBV_RATE_600_GBPS, 240, 637'500},    {IBV_RATE_800_GBPS, 320, 850'000},
    {IBV_RATE_1200_GBPS, 480, 1'275'000},
});

const Rate* find(ibv_rate rate) {
    for (const Rate& row : kRates) {
        if (row.rate == rate) {
            return &row;
        }
    }
    return nullptr;
}

ibv_rate rate_with(int Rate::*unit, int amount) {
    for (const Rate& row : kRates) {
        if (amount != kNone && row.*unit == amount) {
            return row.rate;
        }
    }
    return IBV_RATE_MAX;
}

}  // namespace

int simverbs_abi_ibv_rate_to_mult(ibv_rate rate) {
    const Rate* row = find(rate);
    return row != nullptr ? row->multiple : kNone;
}

int simverbs_abi_ibv_rate_to_mbps(ibv_rate rate) {
    const Rate* row = find(rate);
    return row != nullptr ? row->mbps : kNone;
}

ibv_rate simverbs_abi_mult_to_ibv_rate(int mult) {
    return rate_with(&Rate::multiple, mult);
}

ibv_rate simverbs_abi_mbps_to_ibv_rate(int mbps) {
    return rate_with(&Rate::mbps, mbps);
}
