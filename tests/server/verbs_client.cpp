// A verbs program with two queue pairs, told over its standard streams what to do: the tests of
// this folder are the out-of-band channel between such processes. Checks every completion and every
// byte.
//
// Words on stdin, a line each, answered by a line on stdout:
//   connect LID QPN ADDRESS RKEY   the first queue pair, to a peer's line; "connected"
//   exchange                       with the peer until the other end says stop; "exchanged N"
//   stop                           while it exchanges, to either end: both finish
//   join LID QPN ADDRESS RKEY      a new second queue pair to somebody who may die; its own line
//   leave                          destroys that; "left N", N completions it had
//   bother                         writes to and reads from the peer until killed
//   write [STATUS]                 one WRITE to the peer; "status S"
//   unmap, exec, fork, orphan      as their functions say
// With a word after its name: "list" says how many devices there are and ends,
// "list-without-descriptors" does so before and after it has room for descriptors, "lend" registers
// memory and waits.
// Its first line, and the answer to join, is "LID QPN ADDRESS RKEY".
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>

#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

namespace {

constexpr std::size_t kMessage = 6000;   // two packets of 4096
constexpr std::size_t kRegion = 16'384;  // sent from, received to, written by others, read into
constexpr std::size_t kBytes = 4 * kRegion;
constexpr unsigned kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                             IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

void check(bool held, const std::string& what) {
    if (!held) {
        std::cerr << "verbs_client: failed: " << what << " (errno " << errno << ")" << std::endl;
        std::exit(EXIT_FAILURE);
    }
}

struct Peer {
    std::uint16_t lid = 0;
    std::uint32_t qpn = 0;
    std::uint64_t address = 0;
    std::uint32_t rkey = 0;
};

std::istream& operator>>(std::istream& in, Peer& peer) {
    return in >> peer.lid >> peer.qpn >> peer.address >> peer.rkey;
}

class Client {
  public:
    Client();
    void introduce(const ibv_qp* qp) const {
        std::cout << port_.lid << ' ' << qp->qp_num << ' '
                  << reinterpret_cast<std::uint64_t>(memory_) << ' ' << mr_->rkey << std::endl;
    }
    ibv_qp* qp() { return qp_; }
    void connect(ibv_qp* qp, const Peer& peer) const;
    void connect_first(const Peer& peer) {
        peer_ = peer;
        connect(qp_, peer);
        check(receive(1) == 0, "ibv_post_recv");  // before the peer is told to go
        std::cout << "connected" << std::endl;
    }
    void exchange();
    void join(const Peer& peer);
    void leave();
    void bother();
    void write_once();
    void unmap();
    void fork_a_child();
    void orphan();

  private:
    ibv_qp* make_qp(ibv_cq* cq, std::uint32_t requests) const;
    [[nodiscard]] ibv_sge range(std::size_t region, std::uint32_t length) const {
        return {reinterpret_cast<std::uint64_t>(memory_) + region * kRegion, length, mr_->lkey};
    }
    [[nodiscard]] ibv_wc wait() const;
    int post(ibv_qp* qp, ibv_wr_opcode opcode, std::uint64_t id, const ibv_sge& from,
             const Peer& to) const;
    [[nodiscard]] int receive(std::uint64_t id) const;
    void serve_the_other();
    bool exchange_once(std::uint64_t round, bool last);

    ibv_context* context_ = nullptr;
    ibv_pd* pd_ = nullptr;
    ibv_cq* cq_ = nullptr;
    ibv_cq* other_cq_ = nullptr;
    ibv_mr* mr_ = nullptr;
    ibv_qp* qp_ = nullptr;
    ibv_qp* other_ = nullptr;
    Peer peer_;
    Peer other_peer_;
    std::uint32_t other_posted_ = 0;
    std::uint32_t other_completed_ = 0;
    ibv_port_attr port_{};
    std::uint8_t* memory_ = nullptr;
};

Client::Client() {
    ibv_device** devices = ibv_get_device_list(nullptr);
    check(devices != nullptr && devices[0] != nullptr, "a device");
    context_ = ibv_open_device(devices[0]);
    check(context_ != nullptr, "ibv_open_device");
    ibv_free_device_list(devices);
    // Memory that others may have mapped, too, the server leaves where it is.
    const int kind = std::getenv("VERBS_CLIENT_MEMORY") == nullptr ? MAP_PRIVATE : MAP_SHARED;
    memory_ = static_cast<std::uint8_t*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0));
    pd_ = ibv_alloc_pd(context_);
    constexpr int kEntries = 256;
    cq_ = ibv_create_cq(context_, kEntries, nullptr, nullptr, 0);
    other_cq_ = ibv_create_cq(context_, kEntries, nullptr, nullptr, 0);
    mr_ = ibv_reg_mr(pd_, memory_, kBytes, kRights);
    constexpr std::uint32_t kRequests = 8192;  // more than a ring of doorbells holds
    qp_ = make_qp(cq_, kRequests);
    check(mr_ != nullptr && other_cq_ != nullptr && qp_ != nullptr, "ibv_create_qp");
    check(ibv_query_port(context_, 1, &port_) == 0, "ibv_query_port");
    introduce(qp_);
}

ibv_qp* Client::make_qp(ibv_cq* cq, std::uint32_t requests) const {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.cap = {requests, requests, 1, 1, 0};
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    return ibv_create_qp(pd_, &init);
}

// Patient: while others exchange messages, virtual time goes on before the peer is ready.
void Client::connect(ibv_qp* qp, const Peer& peer) const {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = kRights;
    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
          "to INIT");
    attr = {};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_4096;
    attr.dest_qp_num = peer.qpn;
    attr.max_dest_rd_atomic = 4;
    attr.min_rnr_timer = 12;
    attr.ah_attr.dlid = peer.lid;
    attr.ah_attr.port_num = 1;
    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
          "to RTR");
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 18;  // 1.07 s a try
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 4;
    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
          "to RTS");
}

ibv_wc Client::wait() const {
    ibv_wc wc{};
    int found = 0;
    while (found == 0) {
        found = ibv_poll_cq(cq_, 1, &wc);
    }
    check(found == 1, "ibv_poll_cq");
    return wc;
}

int Client::post(ibv_qp* qp, ibv_wr_opcode opcode, std::uint64_t id, const ibv_sge& from,
                 const Peer& to) const {
    ibv_sge sge = from;
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.opcode = opcode;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = to.address + 2 * kRegion;
    wr.wr.rdma.rkey = to.rkey;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &wr, &bad);
}

int Client::receive(std::uint64_t id) const {
    ibv_sge sge = range(1, kRegion);
    ibv_recv_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(qp_, &wr, &bad);
}

bool has_line() {
    pollfd look{STDIN_FILENO, POLLIN, 0};
    return std::cin.rdbuf()->in_avail() > 0 || poll(&look, 1, 0) > 0;
}

std::uint8_t pattern(std::uint64_t round, std::size_t at) {
    return static_cast<std::uint8_t>(round * 31 + at * 7 + (at >> 8));
}

// One message each way. The first byte says whether this round is the last; false when it was.
bool Client::exchange_once(std::uint64_t round, bool last) {
    const std::size_t length = 1 + round * 769 % kMessage;
    std::uint8_t* out = memory_;
    for (std::size_t i = 1; i < length; ++i) {
        out[i] = pattern(round, i);
    }
    out[0] = last ? 1 : 0;
    check(
        post(qp_, IBV_WR_SEND, 2 * round, range(0, static_cast<std::uint32_t>(length)), peer_) == 0,
        "ibv_post_send");
    bool sent = false;
    bool received = false;
    while (!sent || !received) {
        const ibv_wc wc = wait();
        check(wc.status == IBV_WC_SUCCESS,
              std::string("round ") + std::to_string(round) + ": " + ibv_wc_status_str(wc.status));
        bool& which = wc.opcode == IBV_WC_SEND ? sent : received;
        check(!which && wc.wr_id == 2 * round + (wc.opcode == IBV_WC_SEND ? 0 : 1), "its wr_id");
        check(wc.opcode == IBV_WC_SEND || wc.byte_len == length, "its length");
        which = true;
    }
    const std::uint8_t* in = memory_ + kRegion;
    for (std::size_t i = 1; i < length; ++i) {
        check(in[i] == pattern(round, i), "byte " + std::to_string(i));
    }
    last = last || in[0] != 0;
    // The peer may send the next message once it has this round's: so the receive comes first.
    check(receive(2 * (round + 1) + 1) == 0, "ibv_post_recv");
    return !last;
}

// The receive of the first round was posted before either end was told to begin.
void Client::exchange() {
    std::uint64_t round = 0;
    bool last = false;
    while (exchange_once(round++, last)) {
        serve_the_other();
        std::string line;
        if (!has_line() || !std::getline(std::cin, line)) {
            continue;
        }
        std::istringstream words(line);
        std::string word;
        Peer peer;
        words >> word;
        if (word == "stop") {
            last = true;
        } else if (word == "join" && words >> peer) {
            join(peer);
        } else if (word == "leave") {
            leave();
        }
    }
    std::cout << "exchanged " << round << std::endl;
}

void Client::join(const Peer& peer) {
    other_peer_ = peer;
    other_ = make_qp(other_cq_, 16);
    check(other_ != nullptr, "ibv_create_qp");
    connect(other_, peer);
    other_posted_ = other_completed_ = 0;
    introduce(other_);
}

// Keeps a few requests to the other peer under way; how they end is its own affair.
void Client::serve_the_other() {
    if (other_ == nullptr) {
        return;
    }
    ibv_wc wc{};
    while (ibv_poll_cq(other_cq_, 1, &wc) == 1) {
        ++other_completed_;
    }
    constexpr std::uint32_t kAhead = 4;
    if (other_posted_ - other_completed_ < kAhead) {
        const ibv_wr_opcode opcode = other_posted_ % 2 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
        check(post(other_, opcode, other_posted_, range(3, kMessage), other_peer_) == 0,
              "a request to the other");
        ++other_posted_;
    }
}

void Client::leave() {
    check(other_ != nullptr && ibv_destroy_qp(other_) == 0, "ibv_destroy_qp");
    other_ = nullptr;
    std::cout << "left " << other_completed_ << std::endl;
}

void Client::bother() {
    std::cout << "bothering" << std::endl;
    for (std::uint64_t id = 0;; ++id) {
        const ibv_wr_opcode opcode = id % 2 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
        if (post(qp_, opcode, id, range(0, kMessage), peer_) != 0 ||
            wait().status != IBV_WC_SUCCESS) {
            pause();  // the peer has gone first
        }
    }
}

void Client::write_once() {
    check(post(qp_, IBV_WR_RDMA_WRITE, 1, range(0, kMessage), peer_) == 0, "ibv_post_send");
    std::cout << "status " << wait().status << std::endl;
}

// Takes registered memory away.
void Client::unmap() {
    check(munmap(memory_, kBytes) == 0, "munmap");
    std::cout << "unmapped" << std::endl;
}

// A child's inherited objects answer EIO; the parent's go on.
void Client::fork_a_child() {
    const pid_t child = fork();
    if (child == 0) {
        ibv_wc wc{};
        ibv_port_attr port{};
        const bool refused = ibv_query_port(context_, 1, &port) == EIO && receive(0) == EIO &&
                             post(qp_, IBV_WR_SEND, 0, range(0, 8), peer_) == EIO &&
                             ibv_poll_cq(cq_, 1, &wc) < 0 && ibv_destroy_qp(qp_) == EIO;
        _exit(refused ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    std::cout << "child " << (WIFEXITED(status) ? WEXITSTATUS(status) : -1) << std::endl;
}

// The server is gone: nothing hangs, commands say EIO.
void Client::orphan() {
    ibv_wc wc{};
    ibv_port_attr port{};
    check(ibv_query_port(context_, 1, &port) == EIO, "query_port says EIO");
    errno = 0;
    check(ibv_alloc_pd(context_) == nullptr && errno == EIO, "alloc_pd says EIO");
    ibv_async_event event{};
    check(ibv_get_async_event(context_, &event) == 0 && event.event_type == IBV_EVENT_DEVICE_FATAL,
          "DEVICE_FATAL");
    errno = 0;
    check(ibv_get_async_event(context_, &event) == -1 && errno == EIO, "no event, EIO");
    constexpr int kPolls = 5000;
    for (int i = 0; i < kPolls; ++i) {
        errno = 0;
        check(ibv_poll_cq(cq_, 1, &wc) == -1 && errno == EIO, "nothing is completed, EIO");
    }
    constexpr int kPosts = 6000;  // more than the doorbells that nobody takes any more
    for (int i = 0; i < kPosts; ++i) {
        const int error = receive(0);
        check(error == 0 || error == EIO, "ibv_post_recv");
    }
    std::cout << "orphaned" << std::endl;
}

void obey(Client& client, const std::string& line) {
    std::istringstream words(line);
    std::string word;
    Peer peer;
    words >> word;
    if (word == "connect" && words >> peer) {
        client.connect_first(peer);
    } else if (word == "exchange") {
        client.exchange();
    } else if (word == "bother") {
        client.bother();
    } else if (word == "write") {
        client.write_once();
    } else if (word == "unmap") {
        client.unmap();
    } else if (word == "exec") {
        std::cout << "another program" << std::endl;
        execlp("cat", "cat", nullptr);
    } else if (word == "fork") {
        client.fork_a_child();
    } else if (word == "orphan") {
        client.orphan();
    } else {
        check(false, "'" + line + "' means nothing");
    }
}

// How many devices there are; "none" where the list is not even empty.
void list_devices() {
    int count = -1;
    errno = 0;
    ibv_device** devices = ibv_get_device_list(&count);
    const int error = errno;
    if (devices == nullptr) {
        std::cout << "none, errno " << error << std::endl;
        return;
    }
    std::cout << count << " devices" << std::endl;
    ibv_free_device_list(devices);
}

void list_without_descriptors() {
    rlimit usual{};
    getrlimit(RLIMIT_NOFILE, &usual);
    const rlimit none{STDERR_FILENO + 1, usual.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    list_devices();
    setrlimit(RLIMIT_NOFILE, &usual);
    list_devices();
}

// Registers memory, some of it to be read only, and has some that it registers not.
void lend() {
    static std::uint64_t s_secret = 0x5EC2'E700;
    static std::uint8_t s_lent[2][4096];
    ibv_device** devices = ibv_get_device_list(nullptr);
    check(devices != nullptr && devices[0] != nullptr, "a device");
    ibv_context* context = ibv_open_device(devices[0]);
    ibv_pd* pd = context == nullptr ? nullptr : ibv_alloc_pd(context);
    check(pd != nullptr, "ibv_alloc_pd");
    ibv_mr* mr = ibv_reg_mr(pd, s_lent[0], sizeof s_lent[0], kRights);
    ibv_mr* read_only = ibv_reg_mr(pd, s_lent[1], sizeof s_lent[1], IBV_ACCESS_REMOTE_READ);
    check(mr != nullptr && read_only != nullptr, "ibv_reg_mr");
    std::cout << reinterpret_cast<std::uint64_t>(&s_secret) << ' '
              << reinterpret_cast<std::uint64_t>(s_lent[0]) << ' '
              << reinterpret_cast<std::uint64_t>(s_lent[1]) << ' ' << sizeof s_lent[0] << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        if (line == "deregister") {
            check(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
            std::cout << "deregistered " << unsigned{s_lent[0][0]} << std::endl;
        } else {
            std::cout << (s_secret == 0x5EC2'E700 ? "secret untouched" : "secret lost")
                      << std::endl;
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1) {
        const std::string word = argv[1];
        word == "list" ? list_devices() : word == "lend" ? lend() : list_without_descriptors();
        return EXIT_SUCCESS;
    }
    std::ios::sync_with_stdio(false);  // so that one can ask for buffered lines
    Client client;
    for (std::string line; std::getline(std::cin, line);) {
        obey(client, line);
    }
    return EXIT_SUCCESS;
}
