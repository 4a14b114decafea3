// A random walk over verbs: objects of two hosts are made, changed, used and destroyed in any
// order, with arguments that are valid or not (a pointer always is: a stale one is undefined in C),
// and after each step what must hold holds. Knows nothing but verbs.h and simverbs.h.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "tests/walk/arena.hpp"
#include "tests/walk/failure.hpp"
#include "tests/walk/ledger.hpp"
#include "tests/walk/random.hpp"

namespace walk {

// Each counts who uses it: it must be destroyed exactly when nobody does.
struct Domain {
    ibv_pd* pd;
    int uses = 0;
};
struct XrcDomain {
    ibv_xrcd* xrcd;
    int uses = 0;
};
struct DeviceMemory {
    ibv_dm* dm;
    std::size_t length;
    int uses = 0;
};
struct Region {
    ibv_mr* mr;
    Domain* domain;
    std::uint64_t base;  // address of its first byte, as requests name it
    std::uint32_t length;
    std::uint32_t slot;  // of the arena
    int access;
    DeviceMemory* memory = nullptr;  // where it lies, if not in the arena
};
struct Channel {
    ibv_comp_channel* channel;
    int uses = 0;
};
struct Completions {
    ibv_cq* cq;
    Channel* channel;
    ibv_cq_ex* extended = nullptr;
    int uses = 0;
    bool dead = false;  // overrun
};
struct Shared {
    ibv_srq* srq;
    Domain* domain;
    Queue* queue;
    std::uint32_t max_segments;
    XrcDomain* xrcd = nullptr;  // with the queue below: of an XRC queue
    Completions* completions = nullptr;
    int uses = 0;
};
struct Pair {
    ibv_qp* qp;
    Domain* domain;  // null, like the next two: of an XRC target
    Completions* send_cq;
    Completions* receive_cq;  // null: also of an XRC initiator
    Shared* shared;           // or null
    Queue* sends;
    Queue* receives;
    ibv_qp_cap cap;
    bool signals_all;
    XrcDomain* xrcd = nullptr;  // of an XRC target
    bool extended = false;      // takes ibv_wr_*()
    std::set<std::uint32_t> groups;
    std::uint32_t peer_qpn = 0;  // as last connected

    [[nodiscard]] bool is_target() const { return qp->qp_type == IBV_QPT_XRC_RECV; }
};
struct Address {
    ibv_ah* ah;
    Domain* domain;
    bool leads_to_group;
};
struct Window {
    ibv_mw* mw;
    Domain* domain;
};

template <typename Object>
using List = std::vector<std::unique_ptr<Object>>;

ibv_qp_state state_of(const Pair& pair);

inline constexpr std::uint32_t kQkey = 0x1111;  // of all datagram queue pairs

// Multicast groups, and their LID where they have one.
inline constexpr std::uint32_t kGroups = 3;
ibv_gid group(std::uint32_t number);

// One host as one walk sees it: a context of its own.
struct Host {
    ibv_context* context = nullptr;
    ibv_port_attr port{};
    ibv_gid gid{};
    List<Domain> domains;
    List<Region> regions;
    List<Channel> channels;
    List<Completions> completions;
    List<Shared> shared;
    List<Pair> pairs;
    List<Address> addresses;
    List<Window> windows;
    List<XrcDomain> xrc_domains;
    List<DeviceMemory> memories;
};

std::uint16_t group_lid(const Host& host, std::uint32_t number);

class Walk {
  public:
    explicit Walk(std::uint64_t seed);
    ~Walk();
    Walk(const Walk&) = delete;
    Walk& operator=(const Walk&) = delete;

    void step();
    // Takes every queue pair to ERR, lets all completions come, destroys everything.
    void finish();
    [[nodiscard]] const Ledger& ledger() const { return ledger_; }

  private:
    // walk_objects.cpp
    void make_domain(Host& host);
    void make_region(Host& host);
    void make_channel(Host& host);
    void make_completions(Host& host);
    void make_shared(Host& host);
    void make_pair(Host& host);
    void make_absurd(ibv_qp_init_attr_ex& init);
    void make_address(Host& host);
    void make_window(Host& host);
    void make_xrc_domain(Host& host);
    void make_memory(Host& host);
    void make_memory_region(Host& host);
    void make_something(Host& host);
    void destroy_something(Host& host);
    void destroy_domain(Host& host, std::size_t at);
    void destroy_region(Host& host, std::size_t at);
    void destroy_channel(Host& host, std::size_t at);
    void destroy_completions(Host& host, std::size_t at);
    void destroy_shared(Host& host, std::size_t at);
    void destroy_pair(Host& host, std::size_t at);
    void destroy_address(Host& host, std::size_t at);
    void destroy_window(Host& host, std::size_t at);
    void destroy_xrc_domain(Host& host, std::size_t at);
    void destroy_memory(Host& host, std::size_t at);
    void bury_dead(Host& host);
    void destroy_everything(Host& host);
    ibv_ah_attr some_path(const Host& from);

    // walk_states.cpp
    void modify_at_random(Host& host);
    void modify_shared(Host& host);
    void resize_completions(Host& host);
    void connect();
    bool bring_up(Host& host, Pair& pair, const Host& peer_host, const Pair& peer,
                  std::uint32_t send_psn, std::uint32_t receive_psn);
    bool move(Pair& pair, ibv_qp_attr& attr, int mask);
    void fail_or_reset(Host& host);

    // walk_memory.cpp
    void reregister(Host& host);
    void copy_memory(Host& host);

    // walk_traffic.cpp
    void post_sends(Host& host);
    void post_receives(Host& host);
    void bind(Host& host);
    int post_extended(Pair& pair, const std::vector<ibv_send_wr>& list);
    void change_membership(Host& host);
    void poll(Host& host, Completions& completions, int most);
    void take_events(Host& host);
    void disturb();
    Pair* some_pair(const Host& host);
    const Region* some_region(const Host& host, const Domain* domain);
    ibv_sge some_segment(Host& host, const Domain* domain, std::uint32_t most);
    static const Domain* domain_of_peer(const Host& there, const Pair& pair);
    ibv_send_wr some_send(Host& host, Pair& pair, std::vector<ibv_sge>& segments);
    void aim(Host& host, Pair& pair, ibv_send_wr& wr);
    void drain();

    [[nodiscard]] Host& some_host() { return hosts_[random_.below(2)]; }
    [[nodiscard]] Host& other(const Host& host) { return hosts_[&host == &hosts_[0] ? 1 : 0]; }
    template <typename Object>
    Object* any(const List<Object>& list) {
        return list.empty() ? nullptr
                            : list[random_.below(static_cast<std::uint32_t>(list.size()))].get();
    }

    Random random_;
    Ledger ledger_;
    Arena arena_;  // both hosts': a region of either lies in it
    Host hosts_[2];
};

}  // namespace walk
