// A verbs program whose world ends while it waits, in the way that its argument names; it says on
// its standard output what it is told then, and ends. With "handler" as its second argument it has
// a handler of its own for SIGUSR2, which says so.
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <infiniband/verbs.h>

namespace {

ibv_context* g_context = nullptr;
ibv_comp_channel* g_channel = nullptr;
ibv_cq* g_cq = nullptr;
ibv_cq_ex* g_extended = nullptr;

std::string name_of(int error) {
    const char* const name = strerrorname_np(error);
    return name == nullptr ? "?" : name;
}

// A line of what came of it: a value, and errno where it says that something failed.
void tell(const std::string& what, int value) {
    std::cout << what << ' ' << value << (value == 0 ? "" : " " + name_of(errno)) << std::endl;
}

void make() {
    ibv_device** const devices = ibv_get_device_list(nullptr);
    g_context = devices == nullptr || devices[0] == nullptr ? nullptr : ibv_open_device(devices[0]);
    if (g_context == nullptr) {
        std::exit(1);
    }
    ibv_free_device_list(devices);
    g_channel = ibv_create_comp_channel(g_context);
    g_cq = ibv_create_cq(g_context, 8, nullptr, g_channel, 0);
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = 8;
    g_extended = ibv_create_cq_ex(g_context, &wanted);
    if (g_channel == nullptr || g_cq == nullptr || g_extended == nullptr) {
        std::exit(1);
    }
}

void poll_queue() {
    ibv_wc wc{};
    int found = 0;
    while ((found = ibv_poll_cq(g_cq, 1, &wc)) == 0) {
    }
    tell("ibv_poll_cq", found);
    tell("again", ibv_poll_cq(g_cq, 1, &wc));
}

void poll_extended() {
    ibv_poll_cq_attr attr{};
    int error = 0;
    while ((error = ibv_start_poll(g_extended, &attr)) == ENOENT) {
    }
    std::cout << "ibv_start_poll " << name_of(error) << std::endl;
}

void wait_for_completion_event() {
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    tell("ibv_get_cq_event", ibv_get_cq_event(g_channel, &cq, &context));
}

// For the completion of a receive that is flushed, on a queue that it has not armed.
void wait_without_arming() {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = g_cq;
    wanted.cap.max_recv_wr = 1;
    wanted.qp_type = IBV_QPT_RC;
    ibv_qp* const qp = ibv_create_qp(ibv_alloc_pd(g_context), &wanted);
    ibv_qp_attr error{};
    error.qp_state = IBV_QPS_ERR;
    ibv_recv_wr receive{};
    ibv_recv_wr* bad = nullptr;
    if (qp == nullptr || ibv_modify_qp(qp, &error, IBV_QP_STATE) != 0 ||
        ibv_post_recv(qp, &receive, &bad) != 0) {
        std::exit(1);
    }
    wait_for_completion_event();
}

void wait_for_async_event() {
    ibv_async_event event{};
    const int error = ibv_get_async_event(g_context, &event);
    std::cout << "ibv_get_async_event " << error << ' ' << ibv_event_type_str(event.event_type)
              << std::endl;
    ibv_ack_async_event(&event);
    tell("again", ibv_get_async_event(g_context, &event));
}

// As programs with a loop of descriptors do.
void wait_for_descriptor() {
    fcntl(g_context->async_fd, F_SETFL, O_NONBLOCK);
    pollfd look{g_context->async_fd, POLLIN, 0};
    std::cout << "poll " << poll(&look, 1, -1) << std::endl;
    wait_for_async_event();
}

void use_verbs() {
    std::string line;
    std::getline(std::cin, line);
    ibv_port_attr port{};
    tell("ibv_query_port", ibv_query_port(g_context, 1, &port));
    std::cout << "ibv_alloc_pd " << (ibv_alloc_pd(g_context) == nullptr ? name_of(errno) : "made")
              << std::endl;
    wait_for_async_event();
}

}  // namespace

int main(int count, char** arguments) {
    const std::string way = arguments[1];
    if (count > 2) {
        struct sigaction own {};
        own.sa_handler = [](int) { static_cast<void>(write(STDOUT_FILENO, "handled\n", 8)); };
        own.sa_flags = SA_RESTART;
        sigaction(SIGUSR2, &own, nullptr);
    }
    make();
    std::cout << "ready" << std::endl;
    if (way == "poll") {
        poll_queue();
    } else if (way == "extended") {
        poll_extended();
    } else if (way == "completion-event") {
        wait_for_completion_event();
    } else if (way == "unarmed") {
        wait_without_arming();
    } else if (way == "async-event") {
        wait_for_async_event();
    } else if (way == "descriptor") {
        wait_for_descriptor();
    } else {
        use_verbs();
    }
    std::cout << "end" << std::endl;
}
