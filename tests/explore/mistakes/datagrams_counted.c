/* A receiver puts datagrams together in the order in which they come. When one is lost, everything
 * is sent again, and the parts that were there already fill the gap. */
#include <arpa/inet.h>

#include "ends.h"

enum { kParts = 3, kPart = 64, kSlots = 16, kGrh = 40, kPatience = 1000, kAttempts = 3 };

static char file[kParts][kPart], received[kParts][kPart];
static int parts; /* received */

static void receive_parts(void) {
    struct ibv_wc wc;
    for (int polls = 0; polls < kPatience && parts < kParts; ++polls) {
        if (ibv_poll_cq(far_end.cq, 1, &wc) == 1) {
            check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
#ifdef MENDED
            const uint32_t part = ntohl(wc.imm_data);
            parts += received[part][0] == '\0';
#else
            const uint32_t part = (uint32_t)parts++;
#endif
            memcpy(received[part], far_end.memory + wc.wr_id * 128 + kGrh, kPart);
        }
    }
}

int main(void) {
    open_ends_of(IBV_QPT_UD, kPatient);
    struct ibv_ah* const to_peer = address_of(&far_end, &near_end);
    for (uint32_t i = 0; i < kSlots; ++i) {
        post_receive(&far_end, i, i * 128, kPart + kGrh);
    }
    for (int attempt = 0; attempt < kAttempts && parts < kParts; ++attempt) {
        for (uint32_t i = 0; i < kParts; ++i) {
            struct ibv_send_wr wr = datagram_to(&far_end, to_peer);
            wr.opcode = IBV_WR_SEND_WITH_IMM;
            wr.imm_data = htonl(i);
            snprintf(file[i], kPart, "part %u", i);
            memcpy(near_end.memory + i * kPart, file[i], kPart);
            post_on(near_end.qp, &near_end, &wr, i * kPart, kPart);
        }
        receive_parts();
    }
    check(parts == kParts, "all parts");
    assert(memcmp(file, received, sizeof file) == 0);
    check(ibv_destroy_ah(to_peer) == 0, "ibv_destroy_ah");
    close_ends();
    return 0;
}
