// SPDX-License-Identifier: Apache-2.0
// The bytes of the control plane: the block in the tail of an ncclUniqueId by which ranks find each other,
// and the authenticated messages that they exchange. Grammar: docs/formats/control_plane.md. Pure functions;
// sockets are in plugin/runtime. Nothing read here is trusted: Decode functions return an error for any byte
// that does not fit.
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
#include "src/decision/agreed_values.h"
#include "src/decision/attestation.h"
#include "src/decision/decision_digest.h"
#include "src/decision/guard/timed_calls.h"
#include "src/decision/mask_agreement.h"
#include "src/decision/switching/switch_message.h"

namespace dynamiccl {

// Names a communicator; equal on all its ranks.
using ControlToken = std::array<uint8_t, 16>;
// The key of messages, shared by the ranks of a communicator and of its children.
using ControlSecret = std::array<uint8_t, 16>;

// Size of an ncclUniqueId.
inline constexpr size_t kUniqueIdBytes = 128;
// Bytes 64 to 127 carry the block. NCCL's handle ends before byte 64, and nine tested releases copied these
// bytes along and never read them.
inline constexpr size_t kUniqueIdBlockOffset = 64;

// The address at which the ranks of a communicator meet, and the key that seals their messages.
struct RendezvousPoint {
  std::string address;  // IPv4 or IPv6, numeric
  uint16_t port = 0;
  // Token of the communicator for whose unique id this rendezvous point was made.
  ControlToken root{};
  ControlSecret secret{};
  // True if the ranks also vote before NCCL initialises the communicator of the unique id.
  bool before_init = false;

  bool valid() const { return port != 0; }
};

// The content of the block in a unique id.
struct UniqueIdBlock {
  std::string address;
  uint16_t port = 0;
  ControlSecret secret{};
  // First half of the policy's digest. With it a rank can tell a leader with another policy from a leader
  // that cannot be reached.
  std::array<uint8_t, 16> policy{};
  // Set in an id for ranks that join a communicator (ncclCommGrow): the token of the grown communicator. Such
  // an id does not carry `policy`.
  std::optional<ControlToken> grown;
  // Set in an id for a new communicator whose ranks are to vote before NCCL initialises it.
  bool before_init = false;
};

// True if bytes 64 to 127 of the id are free.
bool BlockFits(std::span<const uint8_t, kUniqueIdBytes> unique_id);
// Writes the block into the id. Returns false and writes nothing if bytes 64 to 127 are in use or the address
// is not numeric.
bool WriteBlock(std::span<uint8_t, kUniqueIdBytes> unique_id, const UniqueIdBlock& block);
// Reads the block of an id; empty if the id has no block, one of another version, or a damaged one.
std::optional<UniqueIdBlock> ReadBlock(std::span<const uint8_t, kUniqueIdBytes> unique_id);

// Returns the token of the communicator that is made from this id.
ControlToken TokenOf(std::span<const uint8_t, kUniqueIdBytes> unique_id);
// Returns the token of a child of a split. `operation` counts the splits of the parent.
ControlToken ChildToken(const ControlToken& parent, uint64_t operation, int colour);
// Returns the token of the vote that takes place before NCCL initialises the communicator.
ControlToken InitToken(const ControlToken& communicator);
// Returns the token of a vote about a situation on a communicator (mask_agreement.h). `attempt` counts
// such votes.
ControlToken SituationToken(const ControlToken& communicator, const CallSituation& situation, int attempt);
// Returns a rendezvous point's root token for ranks that know only the secret.
ControlToken RootOfSecret(const ControlSecret& secret);
// Returns the secret for ids without a block. It is derived from the id, so exactly the holders of the id
// know the secret.
ControlSecret SecretOf(std::span<const uint8_t, kUniqueIdBytes> unique_id);

// The subject of a vote. The leader waits longer in a vote about a communicator or its init than in one about
// a situation, because the former takes place only once. The leader's process must hold a rank of the
// communicator, except for kSituation and for children of a split. kSituation is for situations of a child,
// or of a communicator that is already attested.
enum class VoteKind : uint8_t { kCommunicator = 0, kSituation = 1, kInit = 2, kSituationWithLeader = 3 };

// A rank's pledge in a vote, or its refusal to take part.
struct PledgeMessage {
  ControlToken root{};
  ControlToken communicator{};  // the communicator's token, or a SituationToken
  int32_t member = 0;
  int32_t n_ranks = 0;
  std::string declines;  // why this rank takes no part; empty: it takes part
  AttestedValues values;
  VoteKind kind = VoteKind::kCommunicator;
  bool of_leader = false;  // this rank runs in the leader's process
};

// A rank of an attested communicator sends this to open the connection that carries table switches.
struct JoinMessage {
  ControlToken root{};
  ControlToken communicator{};
  int32_t member = 0;
  int32_t n_ranks = 0;
};

// A table version brings either a new table or new live values. A version with values keeps the earlier
// table, and a version with a table keeps the earlier values.
struct TableContents {
  // Digest of the policy file; all zero: no policy.
  Sha256Digest policy{};
  // The version's plan (guard/plan_bytes.h), at most kMaxPlanBytes.
  std::vector<std::byte> plan{};
  // All live values from this version on. If set, policy and plan are empty.
  std::optional<AgreedValues> values{};

  // Every rank makes the table from the policy and the plan. Without both of them NCCL chooses for every
  // call.
  bool leaves_nccl_alone() const { return !values && policy == Sha256Digest{} && plan.empty(); }
  friend bool operator==(const TableContents&, const TableContents&) = default;
};

// A message about switching tables (src/decision/switching), with the parts of a new table.
struct TableSwitchMessage {
  ControlToken communicator{};
  SwitchMessage message;
  TableContents table;  // set in kPrepare only
};

// Tells the leader what a rank has decided on a communicator so far, in the form of digests.
struct DigestMessage {
  ControlToken communicator{};
  std::vector<DigestCheckpoint> checkpoints;  // at most kKeptCheckpoints
};

// Times of a rank's calls, sent to the leader (src/decision/guard/timed_calls.h).
struct TimesMessage {
  ControlToken communicator{};
  std::vector<CallTime> times;  // at most kMaxTimes
};

// Tells a rank which of its calls to time. The leader sends it.
struct TimingMessage {
  ControlToken communicator{};
  bool reports_times = false;  // the rank is to report times
  uint64_t all_until = 0;      // the rank times every call below this number

  friend bool operator==(const TimingMessage&, const TimingMessage&) = default;
};

// A rank asks the leader to change a live value.
struct ProposalMessage {
  ControlToken communicator{};
  ProposedValue proposed;

  friend bool operator==(const ProposalMessage&, const ProposalMessage&) = default;
};

// The kind of a message. The numbers are part of the format.
enum class ControlKind : uint16_t {
  kPledge = 1,
  kVerdict = 2,
  kJoin = 3,
  kSwitch = 4,
  kDigest = 5,
  kTimes = 6,
  kTiming = 7,
  kProposal = 8
};

// The most bytes of a message: two pages, enough for twelve short texts or a plan.
inline constexpr size_t kMaxMessageBytes = 8192;
// The most bytes of a plan; the rest of the message is for its other fields.
inline constexpr size_t kMaxPlanBytes = kMaxMessageBytes - 256;
// One message holds at most this many measured times of calls, of 25 bytes each.
inline constexpr size_t kMaxTimes = 300;
// Magic, version, kind and length of the body.
inline constexpr size_t kMessageHeaderBytes = 12;

// Each returns the bytes of a message, authenticated with the secret. Texts that are too long are cut.
std::vector<std::byte> EncodePledge(const PledgeMessage& pledge, const ControlSecret& secret);
std::vector<std::byte> EncodeVerdict(const ControlToken& communicator, const Verdict& verdict,
                                     const ControlSecret& secret);

std::vector<std::byte> EncodeJoin(const JoinMessage& join, const ControlSecret& secret);
std::vector<std::byte> EncodeSwitch(const TableSwitchMessage& table_switch, const ControlSecret& secret);
std::vector<std::byte> EncodeDigest(const DigestMessage& digest, const ControlSecret& secret);
std::vector<std::byte> EncodeTimes(const TimesMessage& message, const ControlSecret& secret);
std::vector<std::byte> EncodeTiming(const TimingMessage& message, const ControlSecret& secret);
std::vector<std::byte> EncodeProposal(const ProposalMessage& message, const ControlSecret& secret);

// The kind of a message whose header is complete; not yet authenticated.
ControlKind KindOf(std::span<const std::byte> message);
// Bytes of the whole message that begins with `header`; empty if this is no message of this version, or too
// long.
std::optional<size_t> MessageBytes(std::span<const std::byte> header);
// Returns the token by which a leader finds the secret of a pledge or a join. The token is not yet
// authenticated.
std::optional<ControlToken> RootOf(std::span<const std::byte> message);
// Each reads an authenticated message. The error is kCorrupt for a message of another kind or about another
// communicator, a wrong authentication code, or a body that is too short or too long.
Result<PledgeMessage> DecodePledge(std::span<const std::byte> message, const ControlSecret& secret);
Result<Verdict> DecodeVerdict(std::span<const std::byte> message, const ControlToken& communicator,
                              const ControlSecret& secret);
Result<JoinMessage> DecodeJoin(std::span<const std::byte> message, const ControlSecret& secret);
Result<TableSwitchMessage> DecodeSwitch(std::span<const std::byte> message, const ControlToken& communicator,
                                        const ControlSecret& secret);
Result<DigestMessage> DecodeDigest(std::span<const std::byte> message, const ControlToken& communicator,
                                   const ControlSecret& secret);
Result<TimesMessage> DecodeTimes(std::span<const std::byte> message, const ControlToken& communicator,
                                 const ControlSecret& secret);
Result<TimingMessage> DecodeTiming(std::span<const std::byte> message, const ControlToken& communicator,
                                   const ControlSecret& secret);
Result<ProposalMessage> DecodeProposal(std::span<const std::byte> message, const ControlToken& communicator,
                                       const ControlSecret& secret);

}  // namespace dynamiccl
