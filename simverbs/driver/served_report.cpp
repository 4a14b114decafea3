#include "simverbs/driver/served_report.hpp"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include "simverbs/protocol/served_protocol.hpp"
#include "simverbs/threads/thread_roster.hpp"

namespace simverbs::driver {

ServedReport::ServedReport(std::string path) : path_(std::move(path)) {
    sem_init(&requests_, 0, 0);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    {
        const ThreadRoster::OwnThreads own;
        writer_ = std::thread([this] { write_reports(); });
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    report_on_signal(*this);
}

ServedReport::~ServedReport() {
    stop_reporting(*this);
    stop_ = true;
    sem_post(&requests_);
    writer_.join();
    sem_destroy(&requests_);
}

void ServedReport::request_report() noexcept {
    sem_post(&requests_);
}

void ServedReport::write_reports() {
    for (;;) {
        while (sem_wait(&requests_) != 0) {
        }
        if (stop_) {
            return;
        }
        write_report();
    }
}

void ServedReport::write_report() const {
    const auto connection = connect_to_world(path_);
    std::string problem = connection ? "" : connection.error();
    const auto reply = std::make_unique<TextReply>();
    if (connection) {
        const RequestHead request{kProtocolVersion, RequestKind::kReport};
        // A server that hangs up leaves its reason, if it has one, to be read.
        static_cast<void>(send_message(*connection, std::as_bytes(std::span(&request, 1)), {}));
        problem =
            receive_first_reply(*connection, std::as_writable_bytes(std::span(reply.get(), 1)), {},
                                path_, Patience::kCommand);
        close(*connection);
    }
    fmt::print(stderr, "simverbs: asked for, of the world at '{}'\n{}", path_,
               problem.empty() ? std::string(reply->text.data(),
                                             strnlen(reply->text.data(), reply->text.size()))
                               : problem + "\n");
}

}  // namespace simverbs::driver
