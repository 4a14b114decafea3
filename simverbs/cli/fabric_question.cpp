#include "simverbs/cli/fabric_question.hpp"

#include <array>
#include <span>

#include <unistd.h>

namespace simverbs::cli {
namespace {

std::string read_all(int descriptor) {
    std::string text;
    std::array<char, 65536> buffer;
    lseek(descriptor, 0, SEEK_SET);
    for (ssize_t got = 0; (got = read(descriptor, buffer.data(), buffer.size())) > 0;) {
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
}

}  // namespace

FabricQuestion::FabricQuestion(const std::string& socket, const FabricRequest& request)
    : socket_(socket) {
    const auto connection = connect_to_world(socket);
    if (!connection) {
        reason_ = connection.error();
        return;
    }
    connection_ = *connection;
    // A world that has just ended shows when the answer does not come.
    send_message(connection_, std::as_bytes(std::span(&request, 1)), {});
}

FabricQuestion::~FabricQuestion() {
    if (connection_ >= 0) {
        close(connection_);
    }
}

bool FabricQuestion::take_answer() {
    FabricReply reply;
    std::array<int, 1> text{-1};
    reason_ = receive_first_reply(connection_, std::as_writable_bytes(std::span(&reply, 1)), text,
                                  socket_, Patience::kChange);
    if (text[0] >= 0) {
        text_ = read_all(text[0]);
        close(text[0]);
    }
    error_ = static_cast<int>(reply.error);
    return reason_.empty() && text[0] >= 0;
}

}  // namespace simverbs::cli
