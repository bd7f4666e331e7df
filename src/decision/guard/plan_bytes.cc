// SPDX-License-Identifier: Apache-2.0
// Little-endian, in the order of docs/formats/table_plan.md: a header of 24 bytes, 13 bytes a key with 3 more
// for each trial, a checksum of 8 bytes. No length field can make a reader allocate more than a message of
// the largest size needs.
#include "src/decision/guard/table_plan.h"

#include <algorithm>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/base/byte_codec.h"
#include "src/collective/legal_configs.h"

namespace dynamiccl {
namespace {

constexpr uint32_t kMagic = 0x4c504344;  // "DCPL"
constexpr uint16_t kVersion = 4;
constexpr size_t kHeaderBytes = 24;
constexpr size_t kChecksumBytes = 8;
constexpr size_t kKeyBytes = 13;
constexpr size_t kConfigBytes = 3;
// Bytes of a plan at most: what the control plane carries with Prepare (docs/formats/control_plane.md).
constexpr size_t kMaxBytes = 7936;
// Flags of a key.
constexpr uint8_t kInBlocks = 1;
constexpr uint8_t kFirstRound = 2;
constexpr uint8_t kSteady = 4;

void PutConfig(ByteWriter& out, const CollectiveConfig& config) {
  out.Put(config.algorithm);
  out.Put(config.protocol);
  out.Put(config.channels);
}

void PutKey(ByteWriter& out, const KeyPlan& key) {
  out.Put(key.key.collective);
  out.Put(key.key.size_class.index);
  out.Put(key.key.role);
  out.Put(static_cast<uint8_t>((key.in_blocks ? kInBlocks : 0) | (key.first_round ? kFirstRound : 0) |
                               (key.steady ? kSteady : 0)));
  out.Put(key.pause);
  out.Put(key.rest);
  PutConfig(out, key.choice);
  out.Put(static_cast<uint8_t>(key.trials.size()));
  out.Put(key.known_trials);
  for (const CollectiveConfig& trial : key.trials) PutConfig(out, trial);
}

// Reads a config; false if NCCL has no such config for the collective.
bool GetConfig(ByteReader& in, Collective collective, CollectiveConfig& config) {
  config.algorithm = in.Get<Algorithm>();
  config.protocol = in.Get<Protocol>();
  config.channels = in.Get<uint8_t>();
  if (config == kLeaveNcclAlone) return true;
  const auto algorithm = static_cast<int>(config.algorithm);
  const auto protocol = static_cast<int>(config.protocol);
  return algorithm >= 0 && algorithm < kAlgorithms && protocol >= 0 && protocol < kProtocols &&
         NcclConfigs(collective)[ConfigIndex(config.algorithm, config.protocol)];
}

// Reads a key's trials; false if there are too many, or one is not a config of NCCL's.
bool GetTrials(ByteReader& in, KeyPlan& key) {
  const auto trials = in.Get<uint8_t>();
  key.known_trials = in.Get<uint8_t>();
  if (trials > kMaxTrials || key.known_trials > trials) return false;
  key.trials.resize(trials);
  for (CollectiveConfig& trial : key.trials) {
    if (!GetConfig(in, key.key.collective, trial) || trial.leaves_nccl_alone()) return false;
  }
  return true;
}

// Reads a key; false if a field has a value that does not exist.
bool GetKey(ByteReader& in, KeyPlan& key) {
  key.key.collective = in.Get<Collective>();
  key.key.size_class.index = in.Get<uint8_t>();
  key.key.role = in.Get<Role>();
  const auto flags = in.Get<uint8_t>();
  key.in_blocks = (flags & kInBlocks) != 0;
  key.first_round = (flags & kFirstRound) != 0;
  key.steady = (flags & kSteady) != 0;
  key.pause = in.Get<uint16_t>();
  key.rest = in.Get<uint16_t>();
  if (!in.ok() || flags > (kInBlocks | kFirstRound | kSteady)) return false;
  if (static_cast<int>(key.key.collective) >= kTunableCollectives) return false;
  if (static_cast<int>(key.key.role) >= kRoles) return false;
  return GetConfig(in, key.key.collective, key.choice) && GetTrials(in, key);
}

uint64_t Checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace

TablePlan Fitting(TablePlan plan) {
  constexpr size_t kRoom = kMaxBytes - kHeaderBytes - kChecksumBytes;
  constexpr size_t kMaxKeys = kRoom / kKeyBytes;
  if (plan.keys.size() > kMaxKeys) {
    plan.others_use_policy = false;
    std::erase_if(plan.keys, [](const KeyPlan& key) { return key.choice.leaves_nccl_alone(); });
    plan.keys.resize(std::min(plan.keys.size(), kMaxKeys));
  }
  size_t room = kRoom - kKeyBytes * plan.keys.size();
  for (KeyPlan& key : plan.keys) {
    const size_t bytes = kConfigBytes * key.trials.size();
    if (bytes > room) {
      key.trials.clear();
      key.known_trials = 0;
    }
    room -= kConfigBytes * key.trials.size();
  }
  return plan;
}

std::vector<std::byte> EncodePlan(const TablePlan& plan) {
  ByteWriter keys;
  for (const KeyPlan& key : plan.keys) PutKey(keys, key);
  ByteWriter out;
  out.Put(kMagic);
  out.Put(kVersion);
  out.Put(static_cast<uint16_t>(plan.keys.size()));
  out.Put(static_cast<uint32_t>(plan.others_use_policy));
  out.Put(plan.trial_from);
  out.Put(plan.trials_a_choice);
  out.Put(plan.block_calls);
  out.PutBytes(keys.buffer());
  out.Put(Checksum(out.buffer()));
  return std::move(out.buffer());
}

std::optional<TablePlan> DecodePlan(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes + kChecksumBytes || bytes.size() > kMaxBytes) return std::nullopt;
  ByteReader end(bytes.last(kChecksumBytes));
  if (end.Get<uint64_t>() != Checksum(bytes.first(bytes.size() - kChecksumBytes))) return std::nullopt;
  ByteReader in(bytes.first(bytes.size() - kChecksumBytes));
  if (in.Get<uint32_t>() != kMagic || in.Get<uint16_t>() != kVersion) return std::nullopt;
  TablePlan plan;
  plan.keys.resize(std::min<size_t>(in.Get<uint16_t>(), kMaxBytes / kKeyBytes));
  const auto others = in.Get<uint32_t>();
  plan.others_use_policy = others == 1;
  plan.trial_from = in.Get<uint32_t>();
  plan.trials_a_choice = in.Get<uint32_t>();
  plan.block_calls = in.Get<uint32_t>();
  if (others > 1 || plan.trials_a_choice == 0) return std::nullopt;
  for (KeyPlan& key : plan.keys) {
    if (!GetKey(in, key)) return std::nullopt;
  }
  if (!in.ok() || in.remaining() != 0) return std::nullopt;
  return plan;
}

}  // namespace dynamiccl
