// Which work requests a queue pair of which service takes, as ibv_post_send(3) has it.
#pragma once

#include <array>
#include <string_view>

#include "simverbs/model/opcodes.hpp"

namespace simverbs::oracle {

// One line an opcode, a column a service: UD UC RC XRC_INI RAW XRC_TGT. The manual has no line for
// FLUSH, ATOMIC_WRITE and DRIVER1: the first two are for acknowledged services, the last for none.
struct OpcodeLine {
    WrOpcode opcode;
    std::string_view services;
};
inline constexpr auto kOpcodeColumns =
    std::to_array<Service>({Service::kUd, Service::kUc, Service::kRc, Service::kXrcIni,
                            Service::kRawPacket, Service::kXrcTgt});
inline constexpr auto kManual = std::to_array<OpcodeLine>({
    {WrOpcode::kSend, "xxxxx."},
    {WrOpcode::kSendWithImm, "xxxx.."},
    {WrOpcode::kRdmaWrite, ".xxx.."},
    {WrOpcode::kRdmaWriteWithImm, ".xxx.."},
    {WrOpcode::kRdmaRead, "..xx.."},
    {WrOpcode::kAtomicCmpAndSwp, "..xx.."},
    {WrOpcode::kAtomicFetchAndAdd, "..xx.."},
    {WrOpcode::kLocalInv, ".xxx.."},
    {WrOpcode::kBindMw, ".xxx.."},
    {WrOpcode::kSendWithInv, ".xxx.."},
    {WrOpcode::kTso, "x...x."},
    {WrOpcode::kDriver1, "......"},
    {WrOpcode::kFlush, "..xx.."},
    {WrOpcode::kAtomicWrite, "..xx.."},
});

constexpr bool may_post(WrOpcode opcode, Service service) {
    for (const OpcodeLine& line : kManual) {
        for (std::size_t i = 0; line.opcode == opcode && i < kOpcodeColumns.size(); ++i) {
            if (kOpcodeColumns[i] == service) {
                return line.services[i] == 'x';
            }
        }
    }
    return false;
}

}  // namespace simverbs::oracle
