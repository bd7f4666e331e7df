// SPDX-License-Identifier: Apache-2.0
// The bytes of the control plane: the block in the tail of an ncclUniqueId by which ranks find each other,
// and the authenticated messages they exchange. Grammar: docs/formats/control_plane.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/sha256.h"
#include "src/base/status.h"
#include "src/decision/attestation.h"
#include "src/decision/decision_digest.h"
#include "src/decision/guard/timed_calls.h"
#include "src/decision/mask_agreement.h"
#include "src/decision/switching/switch_message.h"

namespace dynamiccl {

using ControlToken = std::array<uint8_t, 16>;   // names a communicator, equal on its ranks
using ControlSecret = std::array<uint8_t, 16>;  // shared by the ranks of a communicator and its children

inline constexpr size_t kUniqueIdBytes = 128;
// NCCL's handle ends before; facts of nine releases: bytes 64 to 127 are carried along and never read.
inline constexpr size_t kUniqueIdBlockOffset = 64;

// Where the ranks of a communicator meet, and the key they speak with.
struct MeetingPoint {
  std::string address;  // IPv4 or IPv6, numeric
  uint16_t port = 0;
  ControlToken root{};  // token of the communicator whose unique id this comes from
  ControlSecret secret{};
  bool before_init = false;  // they also meet before NCCL initialises the communicator of the unique id

  bool valid() const { return port != 0; }
};

// What the block in a unique id says.
struct UniqueIdBlock {
  std::string address;
  uint16_t port = 0;
  ControlSecret secret{};
  std::array<uint8_t, 16>
      policy{};  // first half of the policy's digest: tells "another policy" from "no way through"
  // In an id for ranks that join a communicator (ncclCommGrow): the name it will have. `policy` is not
  // written then.
  std::optional<ControlToken> grown;
  // In an id for a new communicator: its ranks are to meet before NCCL initialises it.
  bool before_init = false;
};

// True when bytes 64 to 127 are free.
bool BlockFits(std::span<const uint8_t, kUniqueIdBytes> unique_id);
// False, and nothing is written, when bytes 64 to 127 are in use.
bool WriteBlock(std::span<uint8_t, kUniqueIdBytes> unique_id, const UniqueIdBlock& block);
// Empty when there is no block of this version or it is damaged.
std::optional<UniqueIdBlock> ReadBlock(std::span<const uint8_t, kUniqueIdBytes> unique_id);

ControlToken TokenOf(std::span<const uint8_t, kUniqueIdBytes> unique_id);
// Of a child: `operation` counts the splits of the parent.
ControlToken ChildToken(const ControlToken& parent, uint64_t operation, int colour);
// Of the meeting before NCCL initialises the communicator.
ControlToken BirthToken(const ControlToken& communicator);
// Of the meeting about a situation's mask on a communicator.
ControlToken SituationToken(const ControlToken& communicator, const CallSituation& situation, int attempt);
// By which ranks that only know the secret name its root.
ControlToken RootOfSecret(const ControlSecret& secret);
// For ids without a block: known to those who hold the id, and to nobody else.
ControlSecret SecretOf(std::span<const uint8_t, kUniqueIdBytes> unique_id);

// What ranks meet about: the leader waits longer for a communicator or its birth, once in a job, than for a
// situation. The leader's process must be a rank of all but kSituation's, which an attested communicator's
// situations are, and a child's.
enum class MeetingAbout : uint8_t { kCommunicator = 0, kSituation = 1, kBirth = 2, kSituationWithLeader = 3 };

struct PledgeMessage {
  ControlToken root{};
  ControlToken communicator{};  // or SituationToken
  int32_t member = 0;
  int32_t n_ranks = 0;
  std::string declines;  // not empty: this rank takes no part, and why
  AttestedValues values;
  MeetingAbout about = MeetingAbout::kCommunicator;
  bool of_leader = false;  // this rank's process is the one that all meet at
};

// A rank of an attested communicator opens the connection on which tables are switched.
struct JoinMessage {
  ControlToken root{};
  ControlToken communicator{};
  int32_t member = 0;
  int32_t n_ranks = 0;
};

// What a table version is made from, on every rank alike. Nothing of both: NCCL's choice for every call.
struct TableContents {
  Sha256Digest policy{};
  std::vector<std::byte> plan;  // what the version says beside its policy; at most kMaxPlanBytes

  bool leaves_nccl_alone() const { return policy == Sha256Digest{} && plan.empty(); }
  friend bool operator==(const TableContents&, const TableContents&) = default;
};

// What src/decision/switching has to say, and what a new table is made from.
struct SwitchLetter {
  ControlToken communicator{};
  SwitchMessage message;
  TableContents table;  // kPrepare
};

// What a rank has decided so far on a communicator.
struct DigestMessage {
  ControlToken communicator{};
  std::vector<DigestCheckpoint> checkpoints;  // at most kKeptCheckpoints
};

// A rank to the leader: times of its calls (src/decision/guard/timed_calls.h).
struct TimesMessage {
  ControlToken communicator{};
  std::vector<CallTime> times;  // at most kMaxTimes
};

// The leader to a rank: whether it tells times, and until which call all are to be timed.
struct TimingMessage {
  ControlToken communicator{};
  bool tells = false;
  uint64_t all_until = 0;

  friend bool operator==(const TimingMessage&, const TimingMessage&) = default;
};

enum class ControlKind : uint16_t {
  kPledge = 1,
  kVerdict = 2,
  kJoin = 3,
  kSwitch = 4,
  kDigest = 5,
  kTimes = 6,
  kTiming = 7
};

// A message is at most this long, in two pages: twelve short texts, or a plan.
inline constexpr size_t kMaxMessageBytes = 8192;
// The rest is the message's other fields.
inline constexpr size_t kMaxPlanBytes = kMaxMessageBytes - 256;
inline constexpr size_t kMaxTimes = 400;
inline constexpr size_t kMessageHeaderBytes = 12;

std::vector<std::byte> EncodePledge(const PledgeMessage& pledge, const ControlSecret& secret);
std::vector<std::byte> EncodeVerdict(const ControlToken& communicator, const Verdict& verdict,
                                     const ControlSecret& secret);

std::vector<std::byte> EncodeJoin(const JoinMessage& join, const ControlSecret& secret);
std::vector<std::byte> EncodeSwitch(const SwitchLetter& letter, const ControlSecret& secret);
std::vector<std::byte> EncodeDigest(const DigestMessage& digest, const ControlSecret& secret);
std::vector<std::byte> EncodeTimes(const TimesMessage& message, const ControlSecret& secret);
std::vector<std::byte> EncodeTiming(const TimingMessage& message, const ControlSecret& secret);

// Of a message whose header is whole; not yet authenticated.
ControlKind KindOf(std::span<const std::byte> message);
// Bytes of the whole message that begins with `header`; empty when this is no message of this version.
std::optional<size_t> MessageBytes(std::span<const std::byte> header);
// The token by which a leader finds the secret of a pledge or a join; not yet authenticated.
std::optional<ControlToken> RootOf(std::span<const std::byte> message);
// Errors: another kind, a wrong authentication code, a body that is too short or too long.
Result<PledgeMessage> DecodePledge(std::span<const std::byte> message, const ControlSecret& secret);
Result<Verdict> DecodeVerdict(std::span<const std::byte> message, const ControlToken& communicator,
                              const ControlSecret& secret);
Result<JoinMessage> DecodeJoin(std::span<const std::byte> message, const ControlSecret& secret);
Result<SwitchLetter> DecodeSwitch(std::span<const std::byte> message, const ControlToken& communicator,
                                  const ControlSecret& secret);
Result<DigestMessage> DecodeDigest(std::span<const std::byte> message, const ControlToken& communicator,
                                   const ControlSecret& secret);
Result<TimesMessage> DecodeTimes(std::span<const std::byte> message, const ControlToken& communicator,
                                 const ControlSecret& secret);
Result<TimingMessage> DecodeTiming(std::span<const std::byte> message, const ControlToken& communicator,
                                   const ControlSecret& secret);

}  // namespace dynamiccl
