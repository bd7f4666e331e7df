// SPDX-License-Identifier: Apache-2.0
// Decodes the messages that ranks exchange before they are a communicator, and those between `dynamiccl link`
// and a job. Input: byte 0 selects the kind of message; the message follows.
#include "src/hostccl/bootstrap_message.h"
#include "src/transport/endpoint.h"
#include "src/transport/link_messages.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace dynamiccl;

void ReadEndpoint(std::span<const std::byte> bytes) {
  const std::string text(fuzz::TextOf(bytes));
  const auto endpoint = Endpoint::Decode(text);
  if (endpoint) fuzz::Require(endpoint->Encode() == text, "an endpoint that is read is written the same");
}

void ReadRequest(std::span<const std::byte> bytes) {
  const auto request = DecodeLinkRequest(bytes);
  if (!request) return;
  const auto again = DecodeLinkRequest(Encode(*request));
  fuzz::Require(again.has_value(), "a request that is read can be written");
}

void ReadAnswer(std::span<const std::byte> bytes) {
  const auto answer = DecodeLinkAnswer(bytes);
  if (!answer) return;
  fuzz::Require(DecodeLinkAnswer(Encode(*answer)).has_value(), "an answer that is read can be written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader input(fuzz::BytesOf(data, size));
  const auto which = input.Get<uint8_t>() % 4;
  const auto bytes = fuzz::RestOf(input);
  if (which == 0) ReadEndpoint(bytes);
  if (which == 1) (void)hostccl::BootstrapMessage::Decode(bytes);
  if (which == 2) ReadRequest(bytes);
  if (which == 3) ReadAnswer(bytes);
  return 0;
}
