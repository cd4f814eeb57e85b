#include "socket_load.hpp"

#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>

#include "leasehold/protocol/codec.hpp"
#include "support/raw_http.hpp"
#include "tools/http_client.hpp"

namespace leasehold::e2e {

namespace {

using tests::driven_session;
using tests::driver_log;

/// A new store's clock begins at the wall clock.
protocol::instant wall_time() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::milliseconds>(since).count()};
}

/// One of the driver's sessions on a socket.
class peer {
 public:
  peer(const live_server& server, driven_session::options how, driver_log& log)
      : socket_(server.port()), session_(std::move(how), log, &wall_time) {
    socket_.send(test::upgrade_request(
        "/v1/stream", "Sec-WebSocket-Protocol: " + std::string(protocol::subprotocol_protobuf) +
                          "\r\nAuthorization: Bearer " + server.token("w1") + "\r\n"));
    const auto answer = socket_.read_until("\r\n\r\n");
    ended_ = !answer || !answer->starts_with("HTTP/1.1 101");
    if (!ended_) say(session_.hello());
  }

  [[nodiscard]] bool ended() const noexcept { return ended_; }

  /// Takes what is there, waiting so long for the first of it, and says what follows if it
  /// `speaks`.
  bool turn(std::chrono::milliseconds wait, bool speaks = true) {
    bool took = false;
    while (!ended_ && !socket_.silent_for(took ? std::chrono::milliseconds{0} : wait)) {
      took = true;
      read_one();
    }
    while (speaks) {
      const auto next = session_.next_message();
      if (!next) break;
      say(*next);
    }
    return took;
  }

 private:
  void read_one() {
    const auto frame = test::read_frame(socket_);
    ended_ = !frame || frame->opcode == 8;
    if (ended_) return;
    if (frame->opcode == 9) {
      socket_.send(test::bytes_of({.opcode = 10, .payload = frame->payload}));
      return;
    }
    session_.hear(codec_.decode_coordinator(std::as_bytes(std::span(frame->payload))).frames);
  }
  void say(const driven_session::message& frames) {
    std::string bytes;
    codec_.encode(frames, bytes);
    // What the kernel does not take any more was never sent; the end is read like every other.
    socket_.send(test::bytes_of({.opcode = 2, .payload = bytes}));
  }

  test::raw_peer socket_;
  protocol::codec codec_{protocol::encoding::protobuf};
  driven_session session_;
  bool ended_ = false;
};

driven_session::options session_options(std::size_t number, const load_options& how) {
  // Half of the workers outlive the coordinator and come back.
  const auto process = number % 2 == 0 ? 0 : how.life + 1;
  auto incarnation = std::to_string(1'000'000 + static_cast<int>(number) + 1000 * process);
  incarnation.insert(0, 32 - incarnation.size(), 'a');
  driven_session::options out;
  out.incarnation = std::move(incarnation);
  out.batch = number % 4 < 2 ? 1 : 64;
  out.slots = out.batch == 1 ? 4 : 24;
  out.seed = how.seed * 1000 + number;
  return out;
}

/// How long answers are still heard by one that says nothing any more.
constexpr std::chrono::milliseconds last_answers{500};

void drive(const std::stop_token& enough, std::vector<std::unique_ptr<peer>> peers) {
  auto spoke = std::chrono::steady_clock::now();
  while (!peers.empty()) {
    const bool speaks = !enough.stop_requested();
    bool took = false;
    for (const auto& each : peers) took = each->turn(std::chrono::milliseconds{0}, speaks) || took;
    std::erase_if(peers, [](const auto& each) { return each->ended(); });
    if (!took && !peers.empty()) peers.front()->turn(std::chrono::milliseconds{1}, speaks);
    const auto now = std::chrono::steady_clock::now();
    if (speaks) spoke = now;
    if (now >= spoke + last_answers) return;
  }
}

/// Submits one job after another until there is no answer any more, or enough.
void submit_jobs(const std::stop_token& enough, tools::client_options where, driver_log& log,
                 const std::string& prefix, std::chrono::milliseconds pause) {
  tools::http_client client(std::move(where));
  const json::object policy{{"ack_timeout_ms", 200},
                            {"lease_duration_ms", 400},
                            {"recovery_grace_ms", 50},
                            {"reconcile_window_ms", 200},
                            {"cancel_grace_ms", 100}};
  for (int i = 1; !enough.stop_requested(); ++i) {
    const auto job = prefix + std::to_string(i);
    const auto payload = "work of " + job;
    log.keep_submit(job, payload);
    const json::object body{
        {"queue", "q"}, {"job_id", job}, {"payload", payload}, {"policy", policy}};
    const auto said = client.call(
        {.method = "POST", .target = "/v1/jobs", .body = json::serialize(body), .on_line = {}});
    const auto* answer = std::get_if<tools::http_answer>(&said);
    if (answer == nullptr) return;
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    if (answer->status != 201) continue;
    const auto row = json::parse(answer->body).at("job").at("row").to_number<std::int64_t>();
    log.keep(tests::kept_answer{protocol::event_kind::submit, job, row,
                                protocol::decision::accepted, protocol::reason::submitted});
  }
}

}  // namespace

socket_load::socket_load(const live_server& server, driver_log& log, const load_options& how) {
  tools::client_options where;
  where.where = {.tls = false, .host = "127.0.0.1", .port = std::to_string(server.port())};
  where.token = server.token("client");
  std::vector<std::vector<std::unique_ptr<peer>>> peers(how.threads);
  for (std::size_t i = 0; i < how.sessions; ++i) {
    auto made = std::make_unique<peer>(server, session_options(i, how), log);
    EXPECT_FALSE(made->ended()) << "session " << i << " was not taken";
    peers[i % how.threads].push_back(std::move(made));
  }
  for (std::size_t i = 0; i < how.threads; ++i) {
    threads_.emplace_back([mine = std::move(peers[i])](const std::stop_token& enough) mutable {
      drive(enough, std::move(mine));
    });
    threads_.emplace_back([where, &log,
                           prefix = "j" + std::to_string(how.life) + "-" + std::to_string(i) + "-",
                           pause = how.submit_pause](const std::stop_token& enough) {
      submit_jobs(enough, where, log, prefix, pause);
    });
  }
}

}  // namespace leasehold::e2e
