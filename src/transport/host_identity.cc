// SPDX-License-Identifier: Apache-2.0
// Hashes the kernel's boot id and the network namespace, or the user's text, into one identity.
#include "src/transport/host_identity.h"

#include <sys/stat.h>

#include <fstream>
#include <span>

#include "src/base/settings.h"
#include "src/base/sha256.h"

namespace dynamiccl {
namespace {

// Bytes of the digest that are kept; 64 bits are enough to tell the hosts of a job apart.
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

std::string HostIdentity() {
  const std::string given = TextSetting(Setting::kHostcclHostid);
  const std::string text =
      given.empty() ? fmt::format("kernel {} {}", BootId(), NetworkNamespace()) : "given " + given;
  const Sha256Digest digest = Sha256Of(std::as_bytes(std::span(text)));
  return ToHex(std::span(digest).first(kIdentityBytes));
}

}  // namespace dynamiccl
