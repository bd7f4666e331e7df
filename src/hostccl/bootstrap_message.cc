// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes bootstrap messages, and compares the settings in them. See bootstrap_message.h.
#include "src/hostccl/bootstrap_message.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <utility>

#include "src/base/byte_codec.h"

namespace dynamiccl::hostccl {
namespace {

// In characters, the longest name of a listener. An encoded endpoint has about 100.
constexpr size_t kMaxName = 256;

// Returns the environment variable of the first setting that differs; null if all settings are equal.
const char* FirstDifference(const BootstrapMessage& a, const BootstrapMessage& b) {
  if (a.settings.max_channels != b.settings.max_channels) return "HOSTCCL_CHANNELS";
  if (a.settings.rank_order != b.settings.rank_order) return "HOSTCCL_SUM";
  if (a.settings.emulated != b.settings.emulated) return "HOSTCCL_EMULATE";
  if (a.topology_hash != b.topology_hash) return "HOSTCCL_TOPOLOGY";
  return nullptr;
}

}  // namespace

std::vector<std::byte> BootstrapMessage::Encode() const {
  ByteWriter writer;
  writer.PutText(listener);
  writer.Put(settings.max_channels);
  writer.Put(static_cast<uint8_t>(settings.rank_order));
  writer.Put(static_cast<uint8_t>(settings.emulated));
  writer.Put(topology_hash);
  return std::move(writer.buffer());
}

Result<BootstrapMessage> BootstrapMessage::Decode(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  BootstrapMessage result;
  result.listener = reader.GetText(kMaxName);
  result.settings.max_channels = reader.Get<int32_t>();
  result.settings.rank_order = reader.Get<uint8_t>() != 0;
  result.settings.emulated = static_cast<EmulatedRelease>(reader.Get<uint8_t>());
  result.topology_hash = reader.Get<uint64_t>();
  if (reader.ok()) return result;
  return MakeError(ErrorKind::kCorrupt, "a rank sent a bootstrap message that cannot be read");
}

// Every rank is compared with rank 0, so all ranks report the same difference.
Status CheckEqualSettings(const std::vector<BootstrapMessage>& ranks) {
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    const char* const setting = FirstDifference(ranks[0], ranks[rank]);
    if (setting == nullptr) continue;
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "{} differs between rank 0 and rank {}", setting, rank),
        "set it equally on all ranks");
  }
  return {};
}

uint64_t HashOf(const Topology& topology) {
  const std::string text = FormatTopology(topology);
  return XXH3_64bits(text.data(), text.size());
}

}  // namespace dynamiccl::hostccl
