// SPDX-License-Identifier: Apache-2.0
// The wire format. The client sends a uint64, the number of an allocation. The server answers with the
// descriptor and a uint64, the number of bytes. It closes the connection when it has no such allocation.
#include "src/transport/descriptor_server.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <span>
#include <string>
#include <system_error>
#include <thread>

#include "src/transport/process_identity.h"
#include "src/transport/shared_buffer.h"

namespace dynamiccl {
namespace {

// In milliseconds. A client sends its request right after it connects. A client that sends nothing must not
// hold up the others longer than this.
constexpr int64_t kRequestMs = 1000;
// In milliseconds. Waiting for the next client needs some deadline; waking up once an hour costs nothing.
constexpr int64_t kIdleMs = 3'600'000;

// Returns the abstract name of a process's socket.
std::string ServerName(uint64_t process) {
  return fmt::format("hostccl-memory-{:016x}", process);
}

// Returns the listening socket. It is not a local variable of the thread, so that a child of fork() can close
// it. Otherwise the child would keep the name taken without answering on it. It is never destroyed, because
// the thread outlives static destructors.
UniqueFd& Listener() {
  static auto* const listener = new UniqueFd;
  return *listener;
}

// Serves one request; any error closes the connection.
Status Answer(int socket) {
  const Deadline deadline = Deadline::After(kRequestMs);
  DYNAMICCL_CHECK_OK(CheckPeerUser(socket));
  uint64_t allocation = 0;
  DYNAMICCL_CHECK_OK(ReceiveAll(socket, std::as_writable_bytes(std::span(&allocation, 1)), deadline));
  DYNAMICCL_TRY(const SharedBufferHandle handle, OpenSharedBuffer(allocation));
  DYNAMICCL_CHECK_OK(SendDescriptor(socket, handle.fd.get()));
  const uint64_t bytes = handle.bytes;
  return SendAll(socket, std::as_bytes(std::span(&bytes, 1)), deadline);
}

void Serve(int listener) {
  // This thread blocks all signals, because signals sent to the program are for the program's own threads.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  ::pthread_setname_np(::pthread_self(), "hostccl-memory");
  for (;;) {
    const auto socket = Accept(listener, Deadline::After(kIdleMs));
    // The result is ignored: a client that gets no answer sees its connection close.
    if (socket) [[maybe_unused]]
      const Status answered = Answer(socket->get());
  }
}

}  // namespace

Status StartDescriptorServer() {
  DYNAMICCL_TRY(Listener(), ListenAbstract(ServerName(ProcessToken())));
  [[maybe_unused]] static const int at_fork = ::pthread_atfork(nullptr, nullptr, [] { Listener().Reset(); });
  try {
    std::thread(Serve, Listener().get()).detach();
  } catch (const std::system_error& error) {
    Listener().Reset();
    return MakeError(ErrorKind::kUnavailable, "no thread to hand out shared buffers: {}", error.what());
  }
  return {};
}

Result<SharedBufferGrant> RequestDescriptor(uint64_t process, uint64_t allocation, Deadline deadline) {
  DYNAMICCL_TRY(const UniqueFd socket, ConnectAbstract(ServerName(process)));
  DYNAMICCL_CHECK_OK(CheckPeerUser(socket.get()));
  DYNAMICCL_CHECK_OK(SendAll(socket.get(), std::as_bytes(std::span(&allocation, 1)), deadline));
  SharedBufferGrant grant;
  DYNAMICCL_TRY(grant.fd, ReceiveDescriptor(socket.get(), deadline));
  DYNAMICCL_CHECK_OK(ReceiveAll(socket.get(), std::as_writable_bytes(std::span(&grant.bytes, 1)), deadline));
  return grant;
}

}  // namespace dynamiccl
