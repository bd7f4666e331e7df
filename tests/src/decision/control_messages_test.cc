// SPDX-License-Identifier: Apache-2.0
#include "src/decision/control_messages.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

namespace dynamiccl {
namespace {

using UniqueId = std::array<uint8_t, kUniqueIdBytes>;

constexpr ControlSecret kSecret{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

UniqueId FreshId() {
  UniqueId id{};
  for (size_t i = 0; i < 40; ++i) id[i] = static_cast<uint8_t>(i * 7 + 1);
  return id;
}

PledgeMessage Pledge() {
  PledgeMessage pledge;
  pledge.root.fill(3);
  pledge.communicator.fill(4);
  pledge.member = 5;
  pledge.n_ranks = 8;
  pledge.values.mode = "frozen";
  pledge.values.pins = "NCCL_ALGO=Ring";
  return pledge;
}

TEST(SituationToken, TellsCommunicatorsSituationsAndAttemptsApart) {
  const CallSituation situation{Collective::kAllReduce, SizeClass{7}, 3};
  const ControlToken token = SituationToken(ControlToken{1}, situation, 0);
  EXPECT_EQ(SituationToken(ControlToken{1}, situation, 0), token);
  EXPECT_NE(SituationToken(ControlToken{2}, situation, 0), token);
  EXPECT_NE(SituationToken(ControlToken{1}, situation, 1), token);
  EXPECT_NE(SituationToken(ControlToken{1}, {Collective::kReduce, SizeClass{7}, 3}, 0), token);
  EXPECT_NE(SituationToken(ControlToken{1}, {Collective::kAllReduce, SizeClass{8}, 3}, 0), token);
  EXPECT_NE(SituationToken(ControlToken{1}, {Collective::kAllReduce, SizeClass{7}, 4}, 0), token);
}

TEST(Pledge, SaysWhatItIsAbout) {
  for (const VoteKind kind : {VoteKind::kCommunicator, VoteKind::kSituation}) {
    PledgeMessage pledge = Pledge();
    pledge.kind = kind;
    EXPECT_EQ(DecodePledge(EncodePledge(pledge, kSecret), kSecret)->kind, kind);
    pledge.of_leader = kind == VoteKind::kSituation;
    EXPECT_EQ(DecodePledge(EncodePledge(pledge, kSecret), kSecret)->of_leader, pledge.of_leader);
  }
}

JoinMessage Join() {
  JoinMessage join;
  join.root.fill(3);
  join.communicator.fill(4);
  join.member = 5;
  join.n_ranks = 8;
  return join;
}

TableSwitchMessage TableSwitch() {
  TableSwitchMessage table_switch;
  table_switch.communicator.fill(4);
  table_switch.message = {SwitchKind::kRefuse, true, Refusal::kDecided, 7, 8, 9, 10};
  table_switch.table.policy.fill(11);
  table_switch.table.plan.assign(99, std::byte{5});
  return table_switch;
}

TEST(TableSwitchMessage, IsReadAsWritten) {
  const auto join = DecodeJoin(EncodeJoin(Join(), kSecret), kSecret);
  ASSERT_TRUE(join);
  EXPECT_EQ(join->communicator, Join().communicator);
  EXPECT_EQ(join->member, 5);
  EXPECT_EQ(join->n_ranks, 8);
  EXPECT_EQ(RootOf(EncodeJoin(Join(), kSecret)), Join().root);
  const auto bytes = EncodeSwitch(TableSwitch(), kSecret);
  EXPECT_EQ(KindOf(bytes), ControlKind::kSwitch);
  const auto table_switch = DecodeSwitch(bytes, TableSwitch().communicator, kSecret);
  ASSERT_TRUE(table_switch);
  EXPECT_EQ(table_switch->message, TableSwitch().message);
  EXPECT_EQ(table_switch->table, TableSwitch().table);
}

TableSwitchMessage TableSwitchWithValues() {
  TableSwitchMessage table_switch = TableSwitch();
  table_switch.table = {};
  table_switch.table.values = AgreedValues{{"bucket_mb", 5}, {"least", INT64_MIN}, {"window", -1}};
  return table_switch;
}

ProposalMessage Proposal() {
  return {TableSwitch().communicator, {"bucket_mb", INT64_MAX}};
}

TEST(TableSwitchMessage, ThatBringsValuesIsReadAsWritten) {
  TableSwitchMessage table_switch = TableSwitchWithValues();
  const ControlToken token = table_switch.communicator;
  EXPECT_EQ(DecodeSwitch(EncodeSwitch(table_switch, kSecret), token, kSecret)->table, table_switch.table);
  EXPECT_FALSE(table_switch.table.leaves_nccl_alone());
  table_switch.table.values = AgreedValues{};
  EXPECT_EQ(DecodeSwitch(EncodeSwitch(table_switch, kSecret), token, kSecret)->table, table_switch.table);
  for (size_t i = 0; i < kMaxAgreedValues; ++i)
    table_switch.table.values->emplace(fmt::format("{:0>31}", i), static_cast<int64_t>(i));
  const auto largest = EncodeSwitch(table_switch, kSecret);
  EXPECT_LE(largest.size(), kMaxMessageBytes);
  EXPECT_EQ(DecodeSwitch(largest, token, kSecret)->table, table_switch.table);
  EXPECT_EQ(DecodeProposal(EncodeProposal(Proposal(), kSecret), token, kSecret), Proposal());
}

TEST(TableSwitchMessage, ThatBringsWrongValuesIsNotRead) {
  const ControlToken token = TableSwitch().communicator;
  TableSwitchMessage both = TableSwitchWithValues();
  both.table.plan = TableSwitch().table.plan;
  EXPECT_FALSE(DecodeSwitch(EncodeSwitch(both, kSecret), token, kSecret));
  both = TableSwitchWithValues();
  both.table.policy = TableSwitch().table.policy;
  EXPECT_FALSE(DecodeSwitch(EncodeSwitch(both, kSecret), token, kSecret));
  for (const std::string& name : {std::string(), std::string("a b"), std::string(32, 'a')}) {
    TableSwitchMessage wrong = TableSwitchWithValues();
    wrong.table.values->emplace(name, 1);
    EXPECT_FALSE(DecodeSwitch(EncodeSwitch(wrong, kSecret), token, kSecret)) << name;
    EXPECT_FALSE(DecodeProposal(EncodeProposal({token, {name, 1}}, kSecret), token, kSecret)) << name;
  }
  TableSwitchMessage many = TableSwitchWithValues();
  for (size_t i = 0; i < kMaxAgreedValues; ++i) many.table.values->emplace(std::to_string(i), 1);
  EXPECT_FALSE(DecodeSwitch(EncodeSwitch(many, kSecret), token, kSecret));
}

TEST(TableSwitchMessage, LargestPlanFitsIntoAMessage) {
  TableSwitchMessage table_switch = TableSwitch();
  table_switch.table.plan.assign(kMaxPlanBytes, std::byte{7});
  const auto bytes = EncodeSwitch(table_switch, kSecret);
  EXPECT_EQ(MessageBytes(bytes), bytes.size());
  EXPECT_EQ(DecodeSwitch(bytes, table_switch.communicator, kSecret)->table, table_switch.table);
}

DigestMessage Digest(size_t checkpoints) {
  DigestMessage digest;
  digest.communicator.fill(4);
  for (uint64_t i = 1; i <= checkpoints; ++i) digest.checkpoints.push_back({256 * i, ~i});
  return digest;
}

TEST(DigestMessage, IsReadAsWritten) {
  for (const size_t checkpoints : {0, 1, kKeptCheckpoints}) {
    const auto bytes = EncodeDigest(Digest(checkpoints), kSecret);
    EXPECT_EQ(KindOf(bytes), ControlKind::kDigest);
    const auto digest = DecodeDigest(bytes, Digest(0).communicator, kSecret);
    ASSERT_TRUE(digest);
    EXPECT_EQ(digest->checkpoints, Digest(checkpoints).checkpoints);
  }
}

TEST(DigestMessage, OfMoreCallsThanARankKeepsIsNotRead) {
  EXPECT_FALSE(
      DecodeDigest(EncodeDigest(Digest(kKeptCheckpoints + 1), kSecret), Digest(0).communicator, kSecret));
}

TimesMessage Times(size_t n) {
  TimesMessage times;
  times.communicator.fill(4);
  for (size_t i = 0; i < n; ++i)
    times.times.push_back({i * 3, static_cast<Collective>(i % kTunableCollectives),
                           static_cast<int64_t>(i + 1), i % 4 == 0 ? -1 : static_cast<int64_t>(i) << 40});
  return times;
}
TimingMessage Timing() {
  TimingMessage timing;
  timing.communicator.fill(4);
  timing.reports_times = true;
  timing.all_until = 1ull << 40;
  return timing;
}

TEST(TimesMessage, IsReadAsWrittenUpToTheMostThatFit) {
  for (const size_t n : {size_t{0}, size_t{1}, kMaxTimes}) {
    const auto bytes = EncodeTimes(Times(n), kSecret);
    EXPECT_EQ(MessageBytes(bytes), bytes.size());
    EXPECT_EQ(KindOf(bytes), ControlKind::kTimes);
    const auto times = DecodeTimes(bytes, Times(0).communicator, kSecret);
    ASSERT_TRUE(times);
    EXPECT_EQ(times->times, Times(n).times);
  }
  EXPECT_EQ(DecodeTiming(EncodeTiming(Timing(), kSecret), Timing().communicator, kSecret), Timing());
}

TEST(TimesMessage, ThatIsNoneIsNotRead) {
  TimesMessage stopped = Times(2);
  stopped.times[1].ns = 0;
  EXPECT_TRUE(DecodeTimes(EncodeTimes(stopped, kSecret), stopped.communicator, kSecret)) << "a stamp";
  stopped.times[0].ns = 0;
  EXPECT_FALSE(DecodeTimes(EncodeTimes(stopped, kSecret), stopped.communicator, kSecret)) << "neither";
  TimesMessage unknown = Times(2);
  unknown.times[0].collective = Collective::kSend;
  EXPECT_FALSE(DecodeTimes(EncodeTimes(unknown, kSecret), unknown.communicator, kSecret));
  EXPECT_FALSE(DecodeTimes(EncodeTimes(Times(kMaxTimes + 1), kSecret), Times(0).communicator, kSecret));
}

TEST(TableSwitchMessage, DamagedCutOrMisdirectedIsNotRead) {
  const ControlToken token = TableSwitch().communicator;
  for (const auto& good :
       {EncodeJoin(Join(), kSecret), EncodeSwitch(TableSwitch(), kSecret), EncodeDigest(Digest(3), kSecret),
        EncodeTimes(Times(3), kSecret), EncodeTiming(Timing(), kSecret),
        EncodeSwitch(TableSwitchWithValues(), kSecret), EncodeProposal(Proposal(), kSecret)}) {
    const auto read = [&](std::span<const std::byte> bytes) {
      return DecodeJoin(bytes, kSecret) || DecodeSwitch(bytes, token, kSecret) ||
             DecodeDigest(bytes, token, kSecret) || DecodeTimes(bytes, token, kSecret) ||
             DecodeTiming(bytes, token, kSecret) || DecodeProposal(bytes, token, kSecret);
    };
    ASSERT_TRUE(read(good));
    for (size_t length = 0; length < good.size(); ++length) ASSERT_FALSE(read(std::span(good).first(length)));
    for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
      auto flipped = good;
      flipped[bit / 8] ^= std::byte{1} << (bit % 8);
      ASSERT_FALSE(read(flipped)) << "bit " << bit;
    }
  }
  EXPECT_FALSE(DecodeSwitch(EncodeSwitch(TableSwitch(), kSecret), ControlToken{1}, kSecret));
  EXPECT_FALSE(DecodeSwitch(EncodeSwitch(TableSwitch(), kSecret), token, ControlSecret{}));
  EXPECT_FALSE(DecodeDigest(EncodeDigest(Digest(3), kSecret), ControlToken{1}, kSecret));
  EXPECT_FALSE(DecodeDigest(EncodeDigest(Digest(3), kSecret), token, ControlSecret{}));
  EXPECT_FALSE(DecodeTimes(EncodeTimes(Times(3), kSecret), ControlToken{1}, kSecret));
  EXPECT_FALSE(DecodeTiming(EncodeTiming(Timing(), kSecret), ControlToken{1}, kSecret));
  EXPECT_FALSE(DecodeProposal(EncodeProposal(Proposal(), kSecret), ControlToken{1}, kSecret));
  EXPECT_FALSE(DecodeProposal(EncodeProposal(Proposal(), kSecret), token, ControlSecret{}));
  TableSwitchMessage unknown = TableSwitch();
  unknown.message.kind = static_cast<SwitchKind>(9);
  EXPECT_FALSE(DecodeSwitch(EncodeSwitch(unknown, kSecret), token, kSecret));
}

TEST(UniqueIdBlock, IsReadAsWritten) {
  for (const char* address : {"127.0.0.1", "10.20.30.40", "fe80::1", "2001:db8::17"}) {
    UniqueId id = FreshId();
    ASSERT_TRUE(WriteBlock(id, {address, 4711, kSecret, {9}}));
    const auto block = ReadBlock(id);
    ASSERT_TRUE(block) << address;
    EXPECT_EQ(block->address, address);
    EXPECT_EQ(block->port, 4711);
    EXPECT_EQ(block->secret, kSecret);
    EXPECT_EQ(block->policy[0], 9);
  }
}

TEST(UniqueIdBlock, LeavesNcclsBytesAlone) {
  UniqueId id = FreshId();
  ASSERT_TRUE(WriteBlock(id, {"127.0.0.1", 1, kSecret, {}}));
  const UniqueId before = FreshId();
  EXPECT_TRUE(std::equal(id.begin(), id.begin() + kUniqueIdBlockOffset, before.begin()));
}

TEST(UniqueIdBlock, IsNotWrittenOverBytesInUse) {
  for (size_t byte = kUniqueIdBlockOffset; byte < kUniqueIdBytes; ++byte) {
    UniqueId id = FreshId();
    id[byte] = 1;
    const UniqueId before = id;
    EXPECT_FALSE(WriteBlock(id, {"127.0.0.1", 1, kSecret, {}}));
    EXPECT_EQ(id, before);
  }
}

TEST(UniqueIdBlock, DamageToAnyBitIsNoticed) {
  UniqueId id = FreshId();
  EXPECT_FALSE(ReadBlock(id));
  ASSERT_TRUE(WriteBlock(id, {"127.0.0.1", 4711, kSecret, {}}));
  for (size_t bit = 0; bit < 60 * 8; ++bit) {
    UniqueId damaged = id;
    damaged[kUniqueIdBlockOffset + bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_FALSE(ReadBlock(damaged)) << bit;
  }
}

TEST(Tokens, DifferBetweenIdsChildrenAndColours) {
  UniqueId other = FreshId();
  other[0] ^= 1;
  EXPECT_NE(TokenOf(FreshId()), TokenOf(other));
  EXPECT_NE(TokenOf(FreshId()), SecretOf(FreshId()));
  const ControlToken parent = TokenOf(FreshId());
  EXPECT_NE(ChildToken(parent, 0, 0), ChildToken(parent, 1, 0));
  EXPECT_NE(ChildToken(parent, 0, 0), ChildToken(parent, 0, 1));
  EXPECT_EQ(ChildToken(parent, 2, 3), ChildToken(parent, 2, 3));
}

TEST(ControlMessages, PledgeIsReadAsWritten) {
  const auto message = EncodePledge(Pledge(), kSecret);
  EXPECT_EQ(MessageBytes(message), message.size());
  EXPECT_EQ(RootOf(message), Pledge().root);
  const auto pledge = DecodePledge(message, kSecret);
  ASSERT_TRUE(pledge) << pledge.error().message;
  EXPECT_EQ(pledge->communicator, Pledge().communicator);
  EXPECT_EQ(pledge->member, 5);
  EXPECT_EQ(pledge->n_ranks, 8);
  EXPECT_EQ(pledge->values, Pledge().values);
}

TEST(ControlMessages, VerdictIsReadAsWrittenForItsCommunicatorOnly) {
  const Verdict verdict{false, true, "3 of 4 ranks"};
  const ControlToken communicator{7};
  const auto message = EncodeVerdict(communicator, verdict, kSecret);
  EXPECT_EQ(DecodeVerdict(message, communicator, kSecret).value(), verdict);
  EXPECT_FALSE(DecodeVerdict(message, ControlToken{8}, kSecret));
  EXPECT_FALSE(DecodePledge(message, kSecret));
  EXPECT_FALSE(DecodeVerdict(EncodePledge(Pledge(), kSecret), communicator, kSecret));
}

TEST(ControlMessages, WithoutTheSecretNothingIsAccepted) {
  ControlSecret wrong = kSecret;
  wrong[15] ^= 1;
  EXPECT_FALSE(DecodePledge(EncodePledge(Pledge(), wrong), kSecret));
  EXPECT_FALSE(DecodeVerdict(EncodeVerdict({}, {.agreed = true}, wrong), {}, kSecret));
}

TEST(ControlMessages, EveryFlippedBitAndEveryTruncationIsRefused) {
  const auto message = EncodePledge(Pledge(), kSecret);
  for (size_t bit = 0; bit < message.size() * 8; ++bit) {
    auto damaged = message;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(DecodePledge(damaged, kSecret)) << bit;
  }
  for (size_t length = 0; length < message.size(); ++length) {
    EXPECT_FALSE(DecodePledge(std::span(message).first(length), kSecret)) << length;
    (void)RootOf(std::span(message).first(length));
  }
}

TEST(ControlMessages, RandomBytesAreRefused) {
  std::mt19937 random(5);
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::byte> bytes(random() % 300);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    EXPECT_FALSE(DecodePledge(bytes, kSecret));
    EXPECT_FALSE(DecodeVerdict(bytes, {}, kSecret));
  }
}

TEST(ControlMessages, LongTextIsCutRatherThanRefused) {
  PledgeMessage pledge = Pledge();
  pledge.values.pins = std::string(5000, 'x');
  const auto message = EncodePledge(pledge, kSecret);
  EXPECT_LE(message.size(), kMaxMessageBytes);
  EXPECT_EQ(DecodePledge(message, kSecret)->values.pins, std::string(128, 'x'));
}

TEST(UniqueIdBlock, SaysWhetherRanksMeetBeforeNcclsInit) {
  for (const bool before_init : {false, true}) {
    UniqueId id = FreshId();
    ASSERT_TRUE(WriteBlock(id, {"127.0.0.1", 1, kSecret, {9}, {}, before_init}));
    EXPECT_EQ(ReadBlock(id)->before_init, before_init);
    EXPECT_EQ(ReadBlock(id)->policy[0], 9);
    EXPECT_FALSE(ReadBlock(id)->grown);
  }
}

TEST(ControlMessages, MattersAreToldApartAndUnknownOnesRefused) {
  PledgeMessage pledge;
  for (const auto kind :
       {VoteKind::kCommunicator, VoteKind::kSituation, VoteKind::kInit, VoteKind::kSituationWithLeader}) {
    pledge.kind = kind;
    EXPECT_EQ(DecodePledge(EncodePledge(pledge, kSecret), kSecret)->kind, kind);
  }
  pledge.kind = static_cast<VoteKind>(4);
  EXPECT_FALSE(DecodePledge(EncodePledge(pledge, kSecret), kSecret));
}

TEST(ControlMessages, AnInitHasATokenOfItsOwn) {
  const ControlToken a = TokenOf(FreshId());
  EXPECT_NE(InitToken(a), a);
  EXPECT_NE(InitToken(a), InitToken(InitToken(a)));
  EXPECT_NE(InitToken(a), ChildToken(a, 0, 0));
}

}  // namespace
}  // namespace dynamiccl
