// Remote procedure calls over unreliable datagrams: one queue pair serves any number of clients.
// Clients send again what is not answered, and the server carries out each call at most once. Time
// is an argument, so that a test can use virtual time.
#ifndef UD_RPC_HPP
#define UD_RPC_HPP

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "verbs_objects.hpp"

namespace ud_rpc {

inline constexpr std::size_t kTextBytes = 200;
inline constexpr std::size_t kDepth = 32;  // datagrams that are received, or sent, at a time

struct Message {
    std::uint64_t client = 0;
    std::uint64_t call = 0;  // counted by the client, from 1 on
    std::uint32_t bytes = 0;
    std::array<char, kTextBytes> text{};

    [[nodiscard]] std::string_view view() const;
    // Returns false where the text is too long.
    bool set(std::string_view text);
};

// An unreliable datagram queue pair in RTS, with memory for messages in both directions.
class Datagrams {
  public:
    Datagrams(ibv_context* device, std::uint8_t port);

    [[nodiscard]] ibv_pd* pd() const { return pd_.get(); }
    [[nodiscard]] std::uint32_t qp_num() const { return qp_->qp_num; }

    struct Received {
        Message message;
        ibv_wc completion;
        ibv_grh grh;
    };
    std::optional<Received> receive();
    // A datagram for which there is no room is lost, as one that the network loses.
    void send(ibv_ah* to, std::uint32_t qp_num, const Message& message);
    // An address for answers to a message.
    Owned<ibv_ah> sender_of(Received& received);

  private:
    struct Arrival {
        std::array<std::uint8_t, sizeof(ibv_grh)> grh;  // a device writes it before the message
        std::array<std::uint8_t, sizeof(Message)> message;
    };
    void post_receive_of(std::size_t slot);

    std::uint8_t port_;
    std::array<Arrival, kDepth> arrivals_{};
    std::array<Message, kDepth> departures_{};
    std::size_t sent_ = 0;
    std::size_t completed_ = 0;
    Owned<ibv_pd> pd_;
    Owned<ibv_cq> cq_;
    Owned<ibv_mr> arrivals_mr_;
    Owned<ibv_mr> departures_mr_;
    Owned<ibv_qp> qp_;
};

class Server {
  public:
    using Handler = std::function<std::string(std::string_view request)>;

    // `remembers_answers`: false where carrying out a call twice does no harm.
    Server(ibv_context* device, Handler handler, bool remembers_answers = true,
           std::uint8_t port = 1)
        : handler_(std::move(handler)),
          remembers_answers_(remembers_answers),
          datagrams_(device, port) {}

    [[nodiscard]] std::uint32_t qp_num() const { return datagrams_.qp_num(); }
    // Answers what has come.
    void serve();

  private:
    // The last call of a client and its answer, for one that asks again.
    struct Caller {
        Owned<ibv_ah> address;
        Message answer;
    };

    Handler handler_;
    bool remembers_answers_;
    Datagrams datagrams_;
    std::map<std::uint64_t, Caller> callers_;  // by Message::client
};

struct ClientOptions {
    std::chrono::nanoseconds patience =
        std::chrono::milliseconds(1);  // before a call is sent again
    int tries = 5;
};

class Client {
  public:
    enum class State { kIdle, kWaiting, kAnswered, kTimedOut };

    // `number` is no other client's of this server; `server` is the address of its port.
    Client(ibv_context* device, std::uint64_t number, ibv_ah_attr server,
           std::uint32_t server_qp_num, const ClientOptions& options = {});

    // Begins a call; one at a time. Returns false where another one waits, or the text is too long.
    bool call(std::string_view request, std::chrono::nanoseconds now);
    // Takes an answer that has come, or sends the call again when it is time to.
    State poll(std::chrono::nanoseconds now);
    [[nodiscard]] std::string_view answer() const { return answer_.view(); }

  private:
    ClientOptions options_;
    std::uint32_t server_qp_num_;
    Datagrams datagrams_;
    Owned<ibv_ah> server_;
    State state_ = State::kIdle;
    Message request_;
    Message answer_;
    int tries_left_ = 0;
    std::chrono::nanoseconds again_at_{};
};

}  // namespace ud_rpc

#endif
