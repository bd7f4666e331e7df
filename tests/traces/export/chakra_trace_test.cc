// SPDX-License-Identifier: Apache-2.0
// Reads the exported file back with a decoder of protobuf's wire format. The decoder shares no code with the
// writer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "tests/traces/any_trace.h"
#include "traces/export/trace_export.h"

namespace dynamiccl {
namespace {

uint64_t TakeVarint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    if (bytes.empty() || shift > 63) throw std::runtime_error("cut varint");
    const auto byte = static_cast<unsigned char>(bytes[0]);
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

struct Message {
  std::multimap<uint64_t, uint64_t> numbers;
  std::multimap<uint64_t, std::string> texts;

  uint64_t number(uint64_t field) const { return numbers.find(field)->second; }
  std::vector<uint64_t> all(uint64_t field) const {
    std::vector<uint64_t> values;
    for (auto [at, end] = numbers.equal_range(field); at != end; ++at) values.push_back(at->second);
    return values;
  }
  std::string text(uint64_t field) const { return texts.find(field)->second; }
};

std::string_view TakeDelimited(std::string_view& bytes) {
  const uint64_t length = TakeVarint(bytes);
  if (length > bytes.size()) throw std::runtime_error("cut message");
  const std::string_view taken = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return taken;
}

Message Decode(std::string_view bytes) {
  Message message;
  while (!bytes.empty()) {
    const uint64_t key = TakeVarint(bytes);
    if ((key & 7) == 0)
      message.numbers.emplace(key >> 3, TakeVarint(bytes));
    else if ((key & 7) == 2)
      message.texts.emplace(key >> 3, TakeDelimited(bytes));
    else
      throw std::runtime_error("a wire type that Chakra does not use here");
  }
  return message;
}

// Decodes a file. The first message is GlobalMetadata, and all others are nodes.
std::vector<Message> DecodeFile(std::string_view bytes) {
  std::vector<Message> messages;
  while (!bytes.empty()) messages.push_back(Decode(TakeDelimited(bytes)));
  return messages;
}

// Returns an attribute of a node. It is a number in the field for its type.
uint64_t AttributeOf(const Message& node, const std::string& name, uint64_t field) {
  for (auto [at, end] = node.texts.equal_range(10); at != end; ++at) {
    const Message attribute = Decode(at->second);
    if (attribute.text(1) == name) return attribute.number(field);
  }
  throw std::runtime_error("no attribute " + name);
}

constexpr uint64_t kInt32 = 7;
constexpr uint64_t kInt64 = 9;
constexpr uint64_t kBool = 27;

TEST(ChakraTrace, HoldsEveryCallInOrderWithItsDependencies) {
  SectionBuilder builder(3, 4);
  builder.Call(0, Collective::kReduceScatter, 1 << 20);
  builder.section().records.back().duration_ns = 25'000;
  builder.section().records.back().duration_source = 2;
  builder.Call(1, Collective::kAllGather, 300);
  builder.section().records.back().issued_ns += 41'000;
  Seal(builder.section().records.back());
  const auto exported = ExportChakra({{builder.section()}});
  ASSERT_TRUE(exported);
  EXPECT_EQ(exported->files.at(0).name, "trace.3.et");
  const auto messages = DecodeFile(exported->files[0].content);
  ASSERT_EQ(messages.size(), 1u + 3) << "two calls and the time between them";
  EXPECT_EQ(messages[0].text(1), "0.0.4");
  const Message& scatter = messages[1];
  EXPECT_EQ(scatter.number(3), 7u);
  EXPECT_EQ(scatter.number(7), 25u);
  EXPECT_EQ(AttributeOf(scatter, "comm_type", kInt64), 7u);
  EXPECT_EQ(AttributeOf(scatter, "comm_size", kInt64), 1u << 20);
  EXPECT_EQ(AttributeOf(scatter, "is_cpu_op", kBool), 0u);
  EXPECT_EQ(messages[2].number(3), 4u);
  EXPECT_EQ(messages[2].number(7), 41u);
  const Message& gather = messages[3];
  EXPECT_EQ(AttributeOf(gather, "comm_type", kInt64), 2u);
  EXPECT_EQ(AttributeOf(gather, "comm_size", kInt64), 300u / 4) << "what one rank contributes";
  EXPECT_EQ(AttributeOf(gather, "pg_size", kInt32), 4u);
  EXPECT_THAT(gather.all(5), testing::UnorderedElementsAre(scatter.number(1), messages[2].number(1)));
}

TEST(ChakraTrace, NamesBothEndsOfSendsAndReceives) {
  SectionBuilder builder(1, 4);
  IssuedCall issued;
  issued.call.bytes = 8;
  issued.root_or_peer = 2;
  issued.call.collective = Collective::kSend;
  builder.Add(CallRecord(0, issued));
  issued.call.collective = Collective::kRecv;
  builder.Add(CallRecord(0, issued));
  const auto messages = DecodeFile(ExportChakra({{builder.section()}})->files.at(0).content);
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> ends;  // source and destination, by node type
  for (size_t i = 1; i < messages.size(); ++i) {
    if (messages[i].number(3) == 4) continue;
    ends[messages[i].number(3)] = {AttributeOf(messages[i], "comm_src", kInt32),
                                   AttributeOf(messages[i], "comm_dst", kInt32)};
  }
  EXPECT_EQ(ends, (std::map<uint64_t, std::pair<uint64_t, uint64_t>>{{5, {1, 2}}, {6, {2, 1}}}));
}

// For any trace, the written file must be readable, ids must increase, and nodes must depend only on earlier
// ones.
TEST(ChakraTrace, IsAlwaysASoundGraph) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Trace trace = AnyTrace(seed);
    for (TraceSection& section : trace.sections) {
      for (uint32_t number = 0; number < 3; ++number) {
        TraceRecord record = CommunicatorRecord(number, {number + 1u, 0, 3, 1}, -10);
        Seal(record);
        section.records.insert(section.records.begin(), record);
      }
      for (TraceRecord& record : section.records) {
        record.communicator %= 3;
        Seal(record);
      }
    }
    const auto exported = ExportChakra(trace);
    for (const ExportedFile& file : exported->files) {
      uint64_t last = 0;
      for (const Message& node : DecodeFile(file.content)) {
        if (node.numbers.empty()) continue;  // this is the metadata
        EXPECT_GT(node.number(1), last);
        last = node.number(1);
        for (const uint64_t before : node.all(5)) EXPECT_LT(before, last);
      }
    }
  }
}

}  // namespace
}  // namespace dynamiccl
