// SPDX-License-Identifier: Apache-2.0
// A message is
//     magic u32 "DCCM", version u16, kind u16, body bytes u32, body, HMAC-SHA256 of everything before it
// and a block in a unique id is
//     magic u32 "DCCB", version u8, purpose u8, port u16, address 16, secret 16, policy or name 16, XXH32 u32
// all little-endian. The bodies follow in the order of the Encode functions. Authentication is checked before
// a body is read.
#include "src/decision/control_messages.h"

#include <arpa/inet.h>
#define XXH_INLINE_ALL  // no library beside libc in the preloaded object
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "src/base/byte_codec.h"

namespace dynamiccl {
namespace {

constexpr uint32_t kBlockMagic = 0x42434344;    // "DCCB"
constexpr uint32_t kMessageMagic = 0x4d434344;  // "DCCM"
constexpr uint8_t kBlockVersion = 1;
constexpr uint16_t kMessageVersion = 7;
constexpr size_t kBlockBytes = 60;
// A text in a message has at most this many bytes; the reason of a verdict may have four times as many.
constexpr size_t kTextLimit = 128;
// These numbers state the purpose of a unique id that carries a block: a new communicator, ranks that join a
// communicator, or a new communicator whose ranks also vote before NCCL initialises it.
constexpr uint8_t kBeginning = 0;
constexpr uint8_t kGrowing = 1;
constexpr uint8_t kBeginningWithVote = 2;

uint8_t PurposeOf(const UniqueIdBlock& block) {
  if (block.grown) return kGrowing;
  return block.before_init ? kBeginningWithVote : kBeginning;
}

// Writes an IPv6 address, or an IPv4 address as "::ffff:a.b.c.d", so one field of 16 bytes serves both.
// Returns false if the address is not numeric.
bool ToBytes(const std::string& address, uint8_t* bytes) {
  if (::inet_pton(AF_INET6, address.c_str(), bytes) == 1) return true;
  return ::inet_pton(AF_INET6, ("::ffff:" + address).c_str(), bytes) == 1;
}

std::string ToAddress(const uint8_t* bytes) {
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET6, bytes, text, sizeof(text));
  constexpr std::string_view kMapped = "::ffff:";
  const std::string_view view = text;
  return std::string(view.starts_with(kMapped) && view.find('.') != view.npos ? view.substr(kMapped.size())
                                                                              : view);
}

// The first half of SHA-256(label, parts). A label for each kind of token keeps the kinds distinct.
class HalfDigest {
 public:
  explicit HalfDigest(std::string_view label) { sha_.Update(std::as_bytes(std::span(label))); }
  HalfDigest& Add(std::span<const uint8_t> bytes) {
    sha_.Update(std::as_bytes(bytes));
    return *this;
  }
  std::array<uint8_t, 16> Finish() {
    std::array<uint8_t, 16> half{};
    std::copy_n(sha_.Finish().begin(), half.size(), half.begin());
    return half;
  }

 private:
  Sha256 sha_;
};

// Puts header and authentication code around a body.
std::vector<std::byte> Seal(ControlKind kind, std::vector<std::byte> body, const ControlSecret& secret) {
  ByteWriter message;
  message.Put(kMessageMagic);
  message.Put(kMessageVersion);
  message.Put(static_cast<uint16_t>(kind));
  message.Put(static_cast<uint32_t>(body.size()));
  message.PutBytes(body);
  message.Put(HmacSha256(std::as_bytes(std::span(secret)), message.buffer()));
  return std::move(message.buffer());
}

// Returns the body of a message that is authentic and of this kind; else an error.
Result<std::span<const std::byte>> Open(std::span<const std::byte> message, ControlKind kind,
                                        const ControlSecret& secret) {
  const auto total = MessageBytes(message);
  if (!total || *total != message.size()) return MakeError(ErrorKind::kCorrupt, "not a control message");
  const auto sealed = message.first(message.size() - sizeof(Sha256Digest));
  Sha256Digest code;
  std::memcpy(code.data(), message.data() + sealed.size(), code.size());
  if (!DigestsEqual(code, HmacSha256(std::as_bytes(std::span(secret)), sealed))) {
    return MakeError(ErrorKind::kCorrupt, "control message with a wrong authentication code");
  }
  if (KindOf(message) != kind) {
    return MakeError(ErrorKind::kCorrupt, "control message of kind {}",
                     static_cast<uint16_t>(KindOf(message)));
  }
  return sealed.subspan(kMessageHeaderBytes);
}

void PutValues(const AgreedValues& values, ByteWriter& body) {
  body.Put(static_cast<uint8_t>(values.size()));
  for (const auto& [name, value] : values) {
    body.PutText(name);
    body.Put(value);
  }
}

// Reads live values. Names must come in ascending order, so that equal values have equal bytes. Returns
// nothing if the values are damaged.
std::optional<AgreedValues> GetValues(ByteReader& reader) {
  AgreedValues values;
  const size_t count = reader.Get<uint8_t>();
  if (count > kMaxAgreedValues) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    std::string name = reader.GetText(kMaxValueNameBytes);
    const auto value = reader.Get<int64_t>();
    if (!IsValueName(name) || (!values.empty() && name <= values.rbegin()->first)) return std::nullopt;
    values.emplace_hint(values.end(), std::move(name), value);
  }
  return values;
}

}  // namespace

// True if the tail of the unique id is all zero, as NCCL leaves a tail that it does not use.
bool BlockFits(std::span<const uint8_t, kUniqueIdBytes> unique_id) {
  const auto tail = unique_id.subspan<kUniqueIdBlockOffset>();
  return std::all_of(tail.begin(), tail.end(), [](uint8_t byte) { return byte == 0; });
}

bool WriteBlock(std::span<uint8_t, kUniqueIdBytes> unique_id, const UniqueIdBlock& block) {
  const auto tail = unique_id.subspan<kUniqueIdBlockOffset>();
  std::array<uint8_t, 16> address{};
  if (!BlockFits(unique_id) || !ToBytes(block.address, address.data())) return false;
  ByteWriter writer;
  writer.Put(kBlockMagic);
  writer.Put(kBlockVersion);
  writer.Put<uint8_t>(PurposeOf(block));
  writer.Put(block.port);
  writer.Put(address);
  writer.Put(block.secret);
  writer.Put(block.grown ? *block.grown : block.policy);
  writer.Put(XXH32(writer.buffer().data(), writer.buffer().size(), 0));
  std::memcpy(tail.data(), writer.buffer().data(), kBlockBytes);
  return true;
}

std::optional<UniqueIdBlock> ReadBlock(std::span<const uint8_t, kUniqueIdBytes> unique_id) {
  const auto bytes = unique_id.subspan(kUniqueIdBlockOffset, kBlockBytes);
  ByteReader reader(std::as_bytes(bytes));
  if (reader.Get<uint32_t>() != kBlockMagic || reader.Get<uint8_t>() != kBlockVersion) return std::nullopt;
  const auto purpose = reader.Get<uint8_t>();
  if (purpose > kBeginningWithVote) return std::nullopt;
  UniqueIdBlock block;
  block.before_init = purpose == kBeginningWithVote;
  block.port = reader.Get<uint16_t>();
  block.address = ToAddress(reader.Get<std::array<uint8_t, 16>>().data());
  block.secret = reader.Get<ControlSecret>();
  const auto last = reader.Get<std::array<uint8_t, 16>>();
  if (purpose == kGrowing)
    block.grown = last;
  else
    block.policy = last;
  if (reader.Get<uint32_t>() != XXH32(bytes.data(), kBlockBytes - 4, 0) || block.port == 0)
    return std::nullopt;
  return block;
}

ControlToken TokenOf(std::span<const uint8_t, kUniqueIdBytes> unique_id) {
  return HalfDigest("dynamiccl communicator").Add(unique_id).Finish();
}

ControlToken InitToken(const ControlToken& communicator) {
  return HalfDigest("dynamiccl birth").Add(communicator).Finish();
}

ControlToken ChildToken(const ControlToken& parent, uint64_t operation, int colour) {
  ByteWriter numbers;
  numbers.Put(operation);
  numbers.Put(colour);
  const auto* data = reinterpret_cast<const uint8_t*>(numbers.buffer().data());
  return HalfDigest("dynamiccl child").Add(parent).Add({data, numbers.buffer().size()}).Finish();
}

ControlToken SituationToken(const ControlToken& communicator, const CallSituation& situation, int attempt) {
  ByteWriter numbers;
  numbers.Put(static_cast<uint8_t>(situation.collective));
  numbers.Put(situation.size_class.index);
  numbers.Put(situation.operands);
  numbers.Put(static_cast<uint32_t>(attempt));
  const auto* data = reinterpret_cast<const uint8_t*>(numbers.buffer().data());
  return HalfDigest("dynamiccl situation").Add(communicator).Add({data, numbers.buffer().size()}).Finish();
}

ControlToken RootOfSecret(const ControlSecret& secret) {
  return HalfDigest("dynamiccl root").Add(secret).Finish();
}

ControlSecret SecretOf(std::span<const uint8_t, kUniqueIdBytes> unique_id) {
  return HalfDigest("dynamiccl secret").Add(unique_id).Finish();
}

std::vector<std::byte> EncodePledge(const PledgeMessage& pledge, const ControlSecret& secret) {
  ByteWriter body;
  body.Put(pledge.root);
  body.Put(pledge.communicator);
  body.Put(pledge.member);
  body.Put(pledge.n_ranks);
  body.Put(static_cast<uint8_t>(pledge.kind));
  body.Put<uint8_t>(pledge.of_leader);
  body.PutText(std::string_view(pledge.declines).substr(0, kTextLimit));
#define DYNAMICCL_PUT_VALUE(name, sentence) \
  body.PutText(std::string_view(pledge.values.name).substr(0, kTextLimit));
  DYNAMICCL_ATTESTED_VALUES(DYNAMICCL_PUT_VALUE)
#undef DYNAMICCL_PUT_VALUE
  return Seal(ControlKind::kPledge, std::move(body.buffer()), secret);
}

std::vector<std::byte> EncodeVerdict(const ControlToken& communicator, const Verdict& verdict,
                                     const ControlSecret& secret) {
  ByteWriter body;
  body.Put(communicator);
  body.Put<uint8_t>(verdict.agreed);
  body.Put<uint8_t>(verdict.timed_out);
  body.PutText(std::string_view(verdict.reason).substr(0, 4 * kTextLimit));
  return Seal(ControlKind::kVerdict, std::move(body.buffer()), secret);
}

std::vector<std::byte> EncodeJoin(const JoinMessage& join, const ControlSecret& secret) {
  ByteWriter body;
  body.Put(join.root);
  body.Put(join.communicator);
  body.Put(join.member);
  body.Put(join.n_ranks);
  return Seal(ControlKind::kJoin, std::move(body.buffer()), secret);
}

std::vector<std::byte> EncodeSwitch(const TableSwitchMessage& table_switch, const ControlSecret& secret) {
  const SwitchMessage& message = table_switch.message;
  ByteWriter body;
  body.Put(table_switch.communicator);
  body.Put(static_cast<uint8_t>(message.kind));
  body.Put<uint8_t>(message.commit);
  body.Put(static_cast<uint8_t>(message.refusal));
  body.Put<uint8_t>(table_switch.table.values.has_value());
  body.Put(message.version);
  body.Put(message.attempt);
  body.Put(message.boundary);
  body.Put(message.calls);
  body.Put(table_switch.table.policy);
  body.Put(static_cast<uint32_t>(table_switch.table.plan.size()));
  body.PutBytes(table_switch.table.plan);
  if (table_switch.table.values) PutValues(*table_switch.table.values, body);
  return Seal(ControlKind::kSwitch, std::move(body.buffer()), secret);
}

std::vector<std::byte> EncodeDigest(const DigestMessage& digest, const ControlSecret& secret) {
  ByteWriter body;
  body.Put(digest.communicator);
  body.Put(static_cast<uint32_t>(digest.checkpoints.size()));
  for (const DigestCheckpoint& checkpoint : digest.checkpoints) {
    body.Put(checkpoint.call);
    body.Put(checkpoint.digest);
  }
  return Seal(ControlKind::kDigest, std::move(body.buffer()), secret);
}

std::vector<std::byte> EncodeTimes(const TimesMessage& message, const ControlSecret& secret) {
  ByteWriter body;
  body.Put(message.communicator);
  body.Put(static_cast<uint32_t>(message.times.size()));
  for (const CallTime& time : message.times) {
    body.Put(time.call_number);
    body.Put(time.ns);
    body.Put(time.begun_ns);
    body.Put(time.collective);
  }
  return Seal(ControlKind::kTimes, std::move(body.buffer()), secret);
}

std::vector<std::byte> EncodeTiming(const TimingMessage& message, const ControlSecret& secret) {
  ByteWriter body;
  body.Put(message.communicator);
  body.Put<uint8_t>(message.reports_times);
  body.Put(message.all_until);
  return Seal(ControlKind::kTiming, std::move(body.buffer()), secret);
}

std::vector<std::byte> EncodeProposal(const ProposalMessage& message, const ControlSecret& secret) {
  ByteWriter body;
  body.Put(message.communicator);
  body.PutText(message.proposed.name);
  body.Put(message.proposed.value);
  return Seal(ControlKind::kProposal, std::move(body.buffer()), secret);
}

ControlKind KindOf(std::span<const std::byte> message) {
  uint16_t kind = 0;
  std::memcpy(&kind, message.data() + 6, sizeof(kind));
  return static_cast<ControlKind>(kind);
}

std::optional<size_t> MessageBytes(std::span<const std::byte> header) {
  ByteReader reader(header);
  const bool ours = reader.Get<uint32_t>() == kMessageMagic && reader.Get<uint16_t>() == kMessageVersion;
  reader.Get<uint16_t>();
  const size_t total = kMessageHeaderBytes + reader.Get<uint32_t>() + sizeof(Sha256Digest);
  if (!reader.ok() || !ours || total > kMaxMessageBytes) return std::nullopt;
  return total;
}

std::optional<ControlToken> RootOf(std::span<const std::byte> message) {
  ByteReader reader(message.subspan(std::min(message.size(), kMessageHeaderBytes)));
  const auto root = reader.Get<ControlToken>();
  return reader.ok() ? std::optional(root) : std::nullopt;
}

Result<PledgeMessage> DecodePledge(std::span<const std::byte> message, const ControlSecret& secret) {
  DYNAMICCL_TRY(const auto body, Open(message, ControlKind::kPledge, secret));
  ByteReader reader(body);
  PledgeMessage pledge;
  pledge.root = reader.Get<ControlToken>();
  pledge.communicator = reader.Get<ControlToken>();
  pledge.member = reader.Get<int32_t>();
  pledge.n_ranks = reader.Get<int32_t>();
  const auto kind = reader.Get<uint8_t>();
  if (kind > static_cast<uint8_t>(VoteKind::kSituationWithLeader))
    return MakeError(ErrorKind::kCorrupt, "pledge about an unknown matter {}", kind);
  pledge.kind = static_cast<VoteKind>(kind);
  pledge.of_leader = reader.Get<uint8_t>() != 0;
  pledge.declines = reader.GetText(kTextLimit);
#define DYNAMICCL_GET_VALUE(name, sentence) pledge.values.name = reader.GetText(kTextLimit);
  DYNAMICCL_ATTESTED_VALUES(DYNAMICCL_GET_VALUE)
#undef DYNAMICCL_GET_VALUE
  if (!reader.ok() || reader.remaining() != 0)
    return MakeError(ErrorKind::kCorrupt, "pledge of a wrong length");
  return pledge;
}

Result<Verdict> DecodeVerdict(std::span<const std::byte> message, const ControlToken& communicator,
                              const ControlSecret& secret) {
  DYNAMICCL_TRY(const auto body, Open(message, ControlKind::kVerdict, secret));
  ByteReader reader(body);
  const bool same = reader.Get<ControlToken>() == communicator;
  Verdict verdict;
  verdict.agreed = reader.Get<uint8_t>() != 0;
  verdict.timed_out = reader.Get<uint8_t>() != 0;
  verdict.reason = reader.GetText(4 * kTextLimit);
  if (!reader.ok() || reader.remaining() != 0)
    return MakeError(ErrorKind::kCorrupt, "verdict of a wrong length");
  if (!same) return MakeError(ErrorKind::kCorrupt, "verdict about another communicator");
  return verdict;
}

Result<JoinMessage> DecodeJoin(std::span<const std::byte> message, const ControlSecret& secret) {
  DYNAMICCL_TRY(const auto body, Open(message, ControlKind::kJoin, secret));
  ByteReader reader(body);
  JoinMessage join;
  join.root = reader.Get<ControlToken>();
  join.communicator = reader.Get<ControlToken>();
  join.member = reader.Get<int32_t>();
  join.n_ranks = reader.Get<int32_t>();
  if (!reader.ok() || reader.remaining() != 0 || join.n_ranks < 1)
    return MakeError(ErrorKind::kCorrupt, "join of a wrong length or size");
  return join;
}

namespace {

// Returns an error if the body was too short or too long, or if `fits` is false. The caller sets `fits` when
// the values are possible and the message is about the expected communicator.
Status CheckRead(const ByteReader& reader, bool fits, const char* what) {
  if (!reader.ok() || reader.remaining() != 0)
    return MakeError(ErrorKind::kCorrupt, "{} of a wrong length", what);
  if (!fits)
    return MakeError(ErrorKind::kCorrupt, "{} of an unknown value, or about another communicator", what);
  return {};
}

}  // namespace

Result<TableSwitchMessage> DecodeSwitch(std::span<const std::byte> message, const ControlToken& communicator,
                                        const ControlSecret& secret) {
  DYNAMICCL_TRY(const auto body, Open(message, ControlKind::kSwitch, secret));
  ByteReader reader(body);
  TableSwitchMessage table_switch;
  table_switch.communicator = reader.Get<ControlToken>();
  SwitchMessage& decoded = table_switch.message;
  const auto kind = reader.Get<uint8_t>();
  decoded.kind = static_cast<SwitchKind>(kind);
  decoded.commit = reader.Get<uint8_t>() != 0;
  decoded.refusal = static_cast<Refusal>(reader.Get<uint8_t>());
  const auto of_values = reader.Get<uint8_t>();
  decoded.version = reader.Get<uint32_t>();
  decoded.attempt = reader.Get<uint64_t>();
  decoded.boundary = reader.Get<uint64_t>();
  decoded.calls = reader.Get<uint64_t>();
  table_switch.table.policy = reader.Get<Sha256Digest>();
  const auto plan = reader.GetBytes(reader.Get<uint32_t>());
  table_switch.table.plan.assign(plan.begin(), plan.end());
  if (of_values != 0) table_switch.table.values = GetValues(reader);
  const bool one_or_other = of_values == 0 || (of_values == 1 && table_switch.table.values && plan.empty() &&
                                               table_switch.table.policy == Sha256Digest{});
  const bool known = kind <= static_cast<uint8_t>(SwitchKind::kAsk) && decoded.refusal <= Refusal::kDecided;
  DYNAMICCL_CHECK_OK(CheckRead(reader, known && one_or_other && table_switch.communicator == communicator,
                               "switch message"));
  return table_switch;
}

Result<DigestMessage> DecodeDigest(std::span<const std::byte> message, const ControlToken& communicator,
                                   const ControlSecret& secret) {
  DYNAMICCL_TRY(const auto body, Open(message, ControlKind::kDigest, secret));
  ByteReader reader(body);
  DigestMessage digest;
  digest.communicator = reader.Get<ControlToken>();
  const auto count = reader.Get<uint32_t>();
  if (count > kKeptCheckpoints) return MakeError(ErrorKind::kCorrupt, "digest of too many calls");
  for (uint32_t i = 0; i < count; ++i) {
    const auto call = reader.Get<uint64_t>();
    digest.checkpoints.push_back({call, reader.Get<uint64_t>()});
  }
  DYNAMICCL_CHECK_OK(CheckRead(reader, digest.communicator == communicator, "digest"));
  return digest;
}

Result<TimesMessage> DecodeTimes(std::span<const std::byte> message, const ControlToken& communicator,
                                 const ControlSecret& secret) {
  DYNAMICCL_TRY(const auto body, Open(message, ControlKind::kTimes, secret));
  ByteReader reader(body);
  TimesMessage times;
  times.communicator = reader.Get<ControlToken>();
  times.times.resize(std::min<size_t>(reader.Get<uint32_t>(), kMaxTimes));
  bool tunable = true;
  for (CallTime& time : times.times) {
    time.call_number = reader.Get<uint64_t>();
    time.ns = reader.Get<int64_t>();
    time.begun_ns = reader.Get<int64_t>();
    time.collective = reader.Get<Collective>();
    tunable = tunable && static_cast<int>(time.collective) < kTunableCollectives &&
              (time.ns > 0 || (time.ns == 0 && time.begun_ns >= 0));
  }
  DYNAMICCL_CHECK_OK(CheckRead(reader, tunable && times.communicator == communicator, "times"));
  return times;
}

Result<TimingMessage> DecodeTiming(std::span<const std::byte> message, const ControlToken& communicator,
                                   const ControlSecret& secret) {
  DYNAMICCL_TRY(const auto body, Open(message, ControlKind::kTiming, secret));
  ByteReader reader(body);
  TimingMessage timing;
  timing.communicator = reader.Get<ControlToken>();
  timing.reports_times = reader.Get<uint8_t>() != 0;
  timing.all_until = reader.Get<uint64_t>();
  DYNAMICCL_CHECK_OK(CheckRead(reader, timing.communicator == communicator, "timing message"));
  return timing;
}

Result<ProposalMessage> DecodeProposal(std::span<const std::byte> message, const ControlToken& communicator,
                                       const ControlSecret& secret) {
  DYNAMICCL_TRY(const auto body, Open(message, ControlKind::kProposal, secret));
  ByteReader reader(body);
  ProposalMessage proposal;
  proposal.communicator = reader.Get<ControlToken>();
  proposal.proposed.name = reader.GetText(kMaxValueNameBytes);
  proposal.proposed.value = reader.Get<int64_t>();
  const bool fits = IsValueName(proposal.proposed.name) && proposal.communicator == communicator;
  DYNAMICCL_CHECK_OK(CheckRead(reader, fits, "proposal"));
  return proposal;
}

}  // namespace dynamiccl
