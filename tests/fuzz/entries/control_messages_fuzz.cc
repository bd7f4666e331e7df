// SPDX-License-Identifier: Apache-2.0
// Decodes messages of the control plane, and the block in a unique id. Input: byte 0 = 0: a message as
// received; 1 to 8: a body of that kind, to which the entry adds a valid code; 9: a unique id.
#include <array>
#include <cstring>

#include "src/base/sha256.h"
#include "src/decision/control_messages.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace dynamiccl;

constexpr ControlSecret kSecret = {1, 2, 3};
constexpr ControlToken kToken = {};

// Returns a message of this kind with this body, a right header and a valid code.
std::vector<std::byte> Authentic(uint16_t kind, std::span<const std::byte> body) {
  static const std::vector<std::byte> sample = EncodeJoin({}, kSecret);
  std::vector<std::byte> message(sample.begin(), sample.begin() + kMessageHeaderBytes);
  const auto length = static_cast<uint32_t>(body.size());
  std::memcpy(message.data() + 6, &kind, sizeof(kind));
  std::memcpy(message.data() + 8, &length, sizeof(length));
  message.insert(message.end(), body.begin(), body.end());
  const Sha256Digest code = HmacSha256(std::as_bytes(std::span(kSecret)), message);
  const auto sealed = std::as_bytes(std::span(code));
  message.insert(message.end(), sealed.begin(), sealed.end());
  return message;
}

void DecodeAll(std::span<const std::byte> message) {
  if (const auto join = DecodeJoin(message, kSecret)) {
    const auto same = EncodeJoin(*join, kSecret);
    fuzz::Require(std::equal(same.begin(), same.end(), message.begin(), message.end()),
                  "a message that is read is written the same");
  }
  if (const auto pledge = DecodePledge(message, kSecret)) (void)EncodePledge(*pledge, kSecret);
  (void)DecodeVerdict(message, kToken, kSecret);
  if (const auto letter = DecodeSwitch(message, kToken, kSecret)) {
    const auto same = DecodeSwitch(EncodeSwitch(*letter, kSecret), kToken, kSecret);
    fuzz::Require(same && same->table == letter->table,
                  "a switch message that is read can be written and read");
  }
  (void)DecodeDigest(message, kToken, kSecret);
  (void)DecodeTimes(message, kToken, kSecret);
  (void)DecodeTiming(message, kToken, kSecret);
  if (const auto proposal = DecodeProposal(message, kToken, kSecret)) {
    const auto same = EncodeProposal(*proposal, kSecret);
    fuzz::Require(std::equal(same.begin(), same.end(), message.begin(), message.end()),
                  "a proposal that is read is written the same");
  }
  (void)RootOf(message);
}

void ReadId(std::span<const std::byte> bytes) {
  std::array<uint8_t, kUniqueIdBytes> id{};
  if (!bytes.empty()) std::memcpy(id.data(), bytes.data(), std::min(bytes.size(), id.size()));
  const auto block = ReadBlock(id);
  if (!block) return;
  std::array<uint8_t, kUniqueIdBytes> same{};
  std::memcpy(same.data(), id.data(), kUniqueIdBlockOffset);
  fuzz::Require(WriteBlock(same, *block), "a block that is read can be written");
  fuzz::Require(ReadBlock(same).has_value(), "and read again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader input(fuzz::BytesOf(data, size));
  const auto kind = static_cast<uint16_t>(input.Get<uint8_t>() % 10);
  const auto body = fuzz::RestOf(input);
  if (kind == 9) {
    ReadId(body);
  } else if (kind == 0) {
    if (MessageBytes(body) == body.size()) DecodeAll(body);
  } else if (body.size() + kMessageHeaderBytes + sizeof(Sha256Digest) <= kMaxMessageBytes) {
    DecodeAll(Authentic(kind, body));
  }
  return 0;
}
