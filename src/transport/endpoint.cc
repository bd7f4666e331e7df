// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes endpoints. See endpoint.h for the order of the fields.
#include "src/transport/endpoint.h"

#include <span>

#include "src/base/byte_codec.h"

namespace dynamiccl {
namespace {

constexpr uint8_t kVersion = 1;
// In characters. Socket names have 40 and host identities 16, so a longer text is a damaged one.
constexpr size_t kMaxText = 64;

}  // namespace

std::string Endpoint::Encode() const {
  ByteWriter writer;
  writer.Put(kVersion);
  writer.PutText(socket_name);
  writer.PutText(host);
  writer.Put(process);
  writer.Put(address.ipv4);
  writer.Put(address.port);
  writer.Put(secret);
  const auto& bytes = writer.buffer();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<Endpoint> Endpoint::Decode(const std::string& text) {
  ByteReader reader(std::as_bytes(std::span(text)));
  const auto version = reader.Get<uint8_t>();
  Endpoint endpoint;
  endpoint.socket_name = reader.GetText(kMaxText);
  endpoint.host = reader.GetText(kMaxText);
  endpoint.process = reader.Get<uint64_t>();
  endpoint.address.ipv4 = reader.Get<uint32_t>();
  endpoint.address.port = reader.Get<uint16_t>();
  endpoint.secret = reader.Get<std::array<uint8_t, 16>>();
  if (reader.ok() && version == kVersion && reader.remaining() == 0) return endpoint;
  return WithHint(MakeError(ErrorKind::kCorrupt, "a rank's endpoint (version {}) cannot be read", version),
                  "load the same libnccl.so.2 in all processes");
}

}  // namespace dynamiccl
