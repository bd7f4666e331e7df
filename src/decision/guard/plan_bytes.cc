// SPDX-License-Identifier: Apache-2.0
// Little-endian, in the order of docs/formats/table_plan.md: a header of 29 bytes with 3 more for each common
// arm, 9 bytes for each key with 3 more for each of its arms, a checksum of 8 bytes. No length field can make
// a reader allocate more than a message of the largest size needs.
#include "src/decision/guard/table_plan.h"

#include <algorithm>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/base/byte_codec.h"
#include "src/collective/legal_configs.h"

namespace dynamiccl {
namespace {

constexpr uint32_t kMagic = 0x4c504344;  // "DCPL"
constexpr uint16_t kVersion = 8;
constexpr size_t kHeaderBytes = 29;
constexpr size_t kChecksumBytes = 8;
constexpr size_t kKeyBytes = 9;
constexpr size_t kConfigBytes = 3;
// The most bytes of a plan: what the control plane carries with Prepare (docs/formats/control_plane.md).
constexpr size_t kMaxBytes = 7936;
// One byte of a key holds the number of the key's arms in the lower bits, and the key's flags above them.
constexpr int kArmBits = 4;
constexpr uint8_t kSteady = 1, kJoins = 2;
static_assert(kMaxArmsOfPlan < 1 << kArmBits);

void PutConfig(ByteWriter& out, const CollectiveConfig& config) {
  out.Put(config.algorithm);
  out.Put(config.protocol);
  out.Put(config.channels);
}

void PutKey(ByteWriter& out, const KeyPlan& key) {
  out.Put(key.key.collective);
  out.Put(key.key.size_class.index);
  out.Put(key.key.role);
  const int flags = (key.steady ? kSteady : 0) | (key.joins ? kJoins : 0);
  out.Put(static_cast<uint8_t>(static_cast<int>(key.arms.size()) | flags << kArmBits));
  out.Put(key.spacing);
  PutConfig(out, key.choice);
  for (const CollectiveConfig& arm : key.arms) PutConfig(out, arm);
}

CollectiveConfig GetConfig(ByteReader& in) {
  CollectiveConfig config;
  config.algorithm = in.Get<Algorithm>();
  config.protocol = in.Get<Protocol>();
  config.channels = in.Get<uint8_t>();
  return config;
}

// True if NCCL has the config for the collective.
bool Exists(Collective collective, const CollectiveConfig& config) {
  if (config == kLeaveNcclAlone) return true;
  const auto algorithm = static_cast<int>(config.algorithm);
  const auto protocol = static_cast<int>(config.protocol);
  return algorithm >= 0 && algorithm < kAlgorithms && protocol >= 0 && protocol < kProtocols &&
         NcclConfigs(collective)[ConfigIndex(config.algorithm, config.protocol)];
}

// Reads a key; false if a field has a value that does not exist.
bool GetKey(ByteReader& in, KeyPlan& key) {
  key.key.collective = in.Get<Collective>();
  key.key.size_class.index = in.Get<uint8_t>();
  key.key.role = in.Get<Role>();
  const auto arms_and_flags = in.Get<uint8_t>();
  const int flags = arms_and_flags >> kArmBits;
  key.steady = (flags & kSteady) != 0;
  key.joins = (flags & kJoins) != 0;
  key.spacing = in.Get<uint16_t>();
  if (!in.ok() || flags > (kSteady | kJoins) || key.spacing == 0) return false;
  if (static_cast<int>(key.key.collective) >= kTunableCollectives) return false;
  if (static_cast<int>(key.key.role) >= kRoles) return false;
  key.choice = GetConfig(in);
  if (!Exists(key.key.collective, key.choice)) return false;
  key.arms.resize(arms_and_flags & ((1 << kArmBits) - 1));
  if (key.arms.size() > kMaxArmsOfPlan) return false;
  return std::all_of(key.arms.begin(), key.arms.end(), [&](CollectiveConfig& arm) {
    arm = GetConfig(in);
    return Exists(key.key.collective, arm) && arm != key.choice;
  });
}

void PutCommon(ByteWriter& out, const TablePlan& plan) {
  out.Put(static_cast<uint8_t>(plan.common.size()));
  out.Put(plan.common_spacing);
  out.Put(plan.common_pause);
  for (const CollectiveConfig& config : plan.common) PutConfig(out, config);
}

// Reads the common arms; false if a field has a value that does not exist.
bool GetCommon(ByteReader& in, TablePlan& plan) {
  plan.common.resize(in.Get<uint8_t>());
  plan.common_spacing = in.Get<uint16_t>();
  plan.common_pause = in.Get<uint16_t>();
  if (plan.common.size() > kMaxArmsOfPlan || plan.common_spacing == 0 || plan.common_pause == 1) return false;
  return std::all_of(plan.common.begin(), plan.common.end(), [&](CollectiveConfig& config) {
    config = GetConfig(in);
    bool exists = false;
    for (int i = 0; i < kTunableCollectives; ++i) exists |= Exists(static_cast<Collective>(i), config);
    return exists && config != kLeaveNcclAlone;
  });
}

uint64_t Checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace

TablePlan Fitting(TablePlan plan) {
  constexpr size_t kRoom = kMaxBytes - kHeaderBytes - kConfigBytes * kMaxArmsOfPlan - kChecksumBytes;
  constexpr size_t kMaxKeys = kRoom / kKeyBytes;
  if (plan.keys.size() > kMaxKeys) {
    plan.others_use_policy = false;
    std::erase_if(plan.keys, [](const KeyPlan& key) { return key.choice.leaves_nccl_alone(); });
    plan.keys.resize(std::min(plan.keys.size(), kMaxKeys));
  }
  size_t room = kRoom - kKeyBytes * plan.keys.size();
  for (KeyPlan& key : plan.keys) {
    const size_t bytes = kConfigBytes * key.arms.size();
    if (bytes > room) key.arms.clear();
    room -= kConfigBytes * key.arms.size();
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
  out.Put(plan.step_calls);
  out.Put(plan.step_origin);
  PutCommon(out, plan);
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
  plan.step_calls = in.Get<uint32_t>();
  plan.step_origin = in.Get<uint64_t>();
  if (others > 1 || !GetCommon(in, plan)) return std::nullopt;
  for (KeyPlan& key : plan.keys) {
    if (!GetKey(in, key)) return std::nullopt;
  }
  if (!in.ok() || in.remaining() != 0) return std::nullopt;
  return plan;
}

}  // namespace dynamiccl
