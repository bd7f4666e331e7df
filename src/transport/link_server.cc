// SPDX-License-Identifier: Apache-2.0
// The thread that answers requests about links, and how it carries them out. See link_server.h.
#include "src/transport/link_server.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <mutex>
#include <system_error>
#include <thread>

#include "src/base/clock.h"

namespace dynamiccl {
namespace {

// In milliseconds. A client sends its request right after it connects. A client that sends nothing must not
// hold up the others longer than this.
constexpr int64_t kRequestMs = 1000;
// In milliseconds. Waiting for the next client needs some deadline; waking up once an hour costs nothing.
constexpr int64_t kIdleMs = 3'600'000;

using Job = std::shared_ptr<const EmulatedLinks>;

// The state of the server, one for the process. The mutex guards all members. The object is never destroyed,
// because the thread outlives static destructors.
struct Server {
  std::mutex mutex;
  UniqueFd listener;
  std::vector<std::weak_ptr<const EmulatedLinks>> jobs;

  static Server& Mine() {
    static auto* const server = new Server;
    return *server;
  }

  std::vector<Job> Living() {
    const std::lock_guard lock(mutex);
    std::vector<Job> living;
    std::erase_if(jobs, [](const auto& job) { return job.expired(); });
    for (const auto& job : jobs) {
      if (Job alive = job.lock()) living.push_back(std::move(alive));
    }
    return living;
  }
};

// Returns whether an ordered change is in force at this time.
bool Holds(const OrderedChange::Order& order, int64_t now_ns) {
  return order.change.fields != 0 && now_ns < order.until_ns;
}

// Orders the change on all links that `target` selects. Returns the number of these links.
uint32_t Order(const EmulatedLinks& links, const LinkTarget& target, const OrderedChange::Order& order) {
  uint32_t changed = 0;
  links.ForEachWire([&](EmulatedLinks::Wire& wire) {
    if (!target.Fits(wire.from_node, wire.to_node, wire.rail)) return;
    wire.state->ordered.Write(order);
    ++changed;
  });
  return changed;
}

// Adds a row for a wire. Inside one node only the first pair of ranks gets a row, and further pairs are added
// to it.
void AddWire(LinkJob& job, EmulatedLinks::Wire& wire, int64_t now_ns) {
  const bool another_pair = wire.from_node == wire.to_node && !job.rows.empty() &&
                            job.rows.back().from == wire.from_node && job.rows.back().to == wire.to_node;
  if (!another_pair) {
    const auto order = wire.state->ordered.Read();
    job.rows.push_back({.from = wire.from_node,
                        .to = wire.to_node,
                        .rail = wire.rail,
                        .ordered = order && Holds(*order, now_ns),
                        .shape = wire.link.ShapeAt(now_ns)});
  }
  job.rows.back().messages += wire.state->messages.load(std::memory_order_relaxed);
  job.rows.back().bytes += wire.state->bytes.load(std::memory_order_relaxed);
}

// Returns the clock and the number of calls of a job, and a row for each link.
LinkJob Show(const EmulatedLinks& links, int64_t now_ns) {
  LinkJob job;
  job.n_ranks = links.n_ranks();
  job.elapsed_ns = now_ns - links.clock().epoch_ns.load(std::memory_order_relaxed);
  job.calls = links.clock().calls.load(std::memory_order_relaxed);
  links.ForEachWire([&](EmulatedLinks::Wire& wire) { AddWire(job, wire, now_ns); });
  return job;
}

Status Answer(int socket) {
  const Deadline deadline = Deadline::After(kRequestMs);
  DYNAMICCL_CHECK_OK(CheckPeerUser(socket));
  DYNAMICCL_TRY(const auto body, ReceiveLinkMessage(socket, deadline));
  const auto request = DecodeLinkRequest(body);
  LinkAnswer answer;
  if (request)
    answer = AnswerLinkRequest(*request, Server::Mine().Living());
  else
    answer.refused = request.error().message;
  return SendLinkMessage(socket, Encode(answer), deadline);
}

void Serve(int listener) {
  // This thread blocks all signals, because signals sent to the program are for the program's own threads.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  ::pthread_setname_np(::pthread_self(), "hostccl-links");
  for (;;) {
    const auto socket = Accept(listener, Deadline::After(kIdleMs));
    // The result is ignored: a client that gets no answer sees its connection close.
    if (socket) [[maybe_unused]]
      const Status answered = Answer(socket->get());
  }
}

// Runs in a child of fork(), which has no server thread and so must not keep the socket's name. It resets the
// descriptor without the lock, because another thread of the parent may have held the lock during fork().
void ForgetInChild() {
  Server::Mine().listener.Reset();
}

Status Start(Server& server) {
  DYNAMICCL_TRY(server.listener, ListenAbstract(LinkSocketPrefix() + std::to_string(::getpid())));
  [[maybe_unused]] static const int at_fork = ::pthread_atfork(nullptr, nullptr, ForgetInChild);
  try {
    std::thread(Serve, server.listener.get()).detach();
  } catch (const std::system_error& error) {
    server.listener.Reset();
    return MakeError(ErrorKind::kUnavailable, "no thread for link control: {}", error.what());
  }
  return {};
}

}  // namespace

Status ServeLinks(const std::shared_ptr<const EmulatedLinks>& links) {
  Server& server = Server::Mine();
  const std::lock_guard lock(server.mutex);
  server.jobs.push_back(links);
  return server.listener.valid() ? Status{} : Start(server);
}

// A reset is an order without fields. A duration too long for the clock means "until reset".
LinkAnswer AnswerLinkRequest(const LinkRequest& request, const std::vector<Job>& jobs) {
  LinkAnswer answer;
  const int64_t now_ns = MonotonicNanoseconds();
  OrderedChange::Order order;
  if (request.kind == LinkRequestKind::kSet) {
    order.change = request.change;
    order.until_ns =
        request.for_ns > 0 && request.for_ns < kNeverNs - now_ns ? now_ns + request.for_ns : kNeverNs;
  }
  for (const Job& job : jobs) {
    if (request.kind != LinkRequestKind::kShow) answer.changed += Order(*job, request.target, order);
    answer.jobs.push_back(Show(*job, now_ns));
  }
  if (jobs.empty()) {
    answer.refused = "the process has no communicator with emulated links any more";
  } else if (request.kind != LinkRequestKind::kShow && answer.changed == 0) {
    answer.refused = fmt::format("no link of the job is {}", Describe(request.target));
  }
  return answer;
}

}  // namespace dynamiccl
