// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/rendezvous_points.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <span>

#include "plugin/border/first_time.h"
#include "plugin/runtime/socket.h"
#include "src/base/log.h"
#include "src/base/settings.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace dynamiccl {
namespace {

std::span<const uint8_t, kUniqueIdBytes> BytesOf(const ncclUniqueId& id) {
  return std::span<const uint8_t, kUniqueIdBytes>(reinterpret_cast<const uint8_t*>(id.internal),
                                                  kUniqueIdBytes);
}

std::span<uint8_t, kUniqueIdBytes> WritableBytesOf(ncclUniqueId& id) {
  return std::span<uint8_t, kUniqueIdBytes>(reinterpret_cast<uint8_t*>(id.internal), kUniqueIdBytes);
}

// Fills in the secret of a new communicator from the kernel's random numbers. Logs a line and returns false
// if the kernel gives none.
bool FillRandomly(ControlSecret& secret) {
  // Reads /dev/urandom and does not call getrandom, which needs kernel 3.17 and glibc 2.25.
  const UniqueFd source(::open("/dev/urandom", O_RDONLY | O_CLOEXEC));
  if (source.valid() &&
      ::read(source.get(), secret.data(), secret.size()) == static_cast<ssize_t>(secret.size()))
    return true;
  Log(LogLevel::kWarn, "ranks cannot agree: /dev/urandom cannot be read ({})", ErrnoText(errno));
  return false;
}

// Returns addresses of this machine, most likely reachable from other nodes first.
std::vector<std::string> HostsToListenOn() {
  std::vector<std::string> hosts;
  const std::string chosen = TextSetting(Setting::kControlInterface);
  if (!chosen.empty()) return {chosen};
  // The launcher's address of rank 0 is reachable from other nodes; Listen fails if it is not this machine's.
  if (const char* master = ::secure_getenv("MASTER_ADDR")) hosts.push_back(master);
  hosts.push_back(HostName());
  hosts.push_back("127.0.0.1");
  return hosts;
}

}  // namespace

GrowRendezvous RendezvousOfGrown(const ncclUniqueId& id) {
  const auto block = ReadBlock(BytesOf(id));
  if (!block || !block->grown) return {{}, TokenOf(BytesOf(id))};
  return {{block->address, block->port, RootOfSecret(block->secret), block->secret}, *block->grown};
}

void RendezvousPoints::MarkUniqueId(ncclUniqueId& id) {
  if (!Chooses(settings_.mode)) return;
  const auto bytes = WritableBytesOf(id);
  if (!BlockFits(bytes)) {
    if (FirstTime("block")) {
      Log(LogLevel::kWarn,
          "this NCCL uses all of its unique id: ranks can only meet at DYNAMICCL_RENDEZVOUS");
    }
    return;
  }
  ControlServer* server = StartServer(HostsToListenOn(), 0);
  if (server == nullptr) return;
  UniqueIdBlock block{server->address(),           server->port(), {}, choices_.policy_digest(), {},
                      choices_.SetsChannelBounds()};
  if (!FillRandomly(block.secret)) return;
  if (WriteBlock(bytes, block)) server->RegisterRoot(TokenOf(bytes), block.secret);
}

void RendezvousPoints::MarkGrowId(const RendezvousPoint& parents, const ControlToken& grown,
                                  ncclUniqueId& id) {
  if (!parents.valid()) return;
  WriteBlock(WritableBytesOf(id), {parents.address, parents.port, parents.secret, {}, grown});
}

RendezvousPoint RendezvousPoints::RendezvousInProcess(const ControlToken& token) {
  if (!Chooses(settings_.mode)) return {};
  ControlServer* server = StartServer(HostsToListenOn(), 0);
  if (server == nullptr) return {};
  RendezvousPoint rendezvous{server->address(), server->port(), token, {}};
  if (!FillRandomly(rendezvous.secret)) return {};
  server->RegisterRoot(token, rendezvous.secret);
  return rendezvous;
}

RendezvousPoint RendezvousPoints::RendezvousOf(const ncclUniqueId& id, int rank) {
  if (const auto block = ReadBlock(BytesOf(id))) {
    return {block->address, block->port, TokenOf(BytesOf(id)), block->secret, block->before_init};
  }
  const std::string host_port = TextSetting(Setting::kRendezvous);
  if (host_port.empty() || !Chooses(settings_.mode)) return {};
  const auto place = ParseHostPort(host_port);
  if (!place) {
    if (FirstTime("rendezvous")) Log(LogLevel::kWarn, "DYNAMICCL_RENDEZVOUS: {}", place.error().message);
    return {};
  }
  RendezvousPoint rendezvous{place->first, place->second, TokenOf(BytesOf(id)), SecretOf(BytesOf(id))};
  if (rank == 0) {
    ControlServer* server = StartServer({rendezvous.address}, rendezvous.port);
    if (server != nullptr) server->RegisterRoot(rendezvous.root, rendezvous.secret);
  }
  return rendezvous;
}

// One server serves the whole process, so only the first call's `hosts` and `port` matter.
ControlServer* RendezvousPoints::StartServer(const std::vector<std::string>& hosts, uint16_t port) {
  const std::lock_guard lock(mutex_);
  if (server_) return server_.get();
  auto server = ControlServer::Start(hosts, port, settings_.attest_timeout_ms, new_leadership_());
  if (server) {
    server_ = std::move(*server);
  } else {
    Log(LogLevel::kWarn, "ranks cannot agree, so NCCL's choice stays: {}", server.error().message);
  }
  return server_.get();
}

ControlServer* RendezvousPoints::server() {
  const std::lock_guard lock(mutex_);
  return server_.get();
}

bool RendezvousPoints::IsLocal(const RendezvousPoint& rendezvous) {
  ControlServer* const here = server();
  return here != nullptr && here->HasRoot(rendezvous.root);
}

PledgeSender& RendezvousPoints::pledge_sender() {
  const std::lock_guard lock(mutex_);
  if (!pledge_sender_) pledge_sender_ = std::make_unique<PledgeSender>();
  return *pledge_sender_;
}

void RendezvousPoints::ReleaseGone() {
  const std::lock_guard lock(mutex_);
  if (pledge_sender_) pledge_sender_->ReleaseGone();
}

}  // namespace dynamiccl
