// SPDX-License-Identifier: Apache-2.0
// Draws the process token, and draws it again after fork(). See process_identity.h.
#include "src/transport/process_identity.h"

#include <pthread.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <span>

#include "src/base/settings.h"
#include "src/base/sha256.h"
#include "src/transport/socket.h"

namespace dynamiccl {
namespace {

std::atomic<uint64_t> token;

void DrawToken() {
  uint64_t drawn = 0;
  FillRandom(std::as_writable_bytes(std::span(&drawn, 1)));
  token.store(drawn, std::memory_order_release);
}

// Number of bytes of the digest that are kept. 64 bits are enough to tell the hosts of a job apart.
constexpr size_t kIdentityBytes = 8;

std::string BootId() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

uint64_t NetworkNamespace() {
  struct stat info = {};
  return ::stat("/proc/self/ns/net", &info) == 0 ? info.st_ino : 0;
}

}  // namespace

uint64_t ProcessToken() {
  [[maybe_unused]] static const bool drawn = [] {
    DrawToken();
    return ::pthread_atfork(nullptr, nullptr, DrawToken) == 0;
  }();
  return token.load(std::memory_order_acquire);
}

// The identity is a hash of the kernel's boot id and the network namespace, or of the user's text in
// HOSTCCL_HOSTID.
std::string HostIdentity() {
  const std::string given = TextSetting(Setting::kHostcclHostid);
  const std::string text =
      given.empty() ? fmt::format("kernel {} {}", BootId(), NetworkNamespace()) : "given " + given;
  const Sha256Digest digest = Sha256Of(std::as_bytes(std::span(text)));
  return ToHex(std::span(digest).first(kIdentityBytes));
}

}  // namespace dynamiccl
