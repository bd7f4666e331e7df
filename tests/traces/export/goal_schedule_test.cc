// SPDX-License-Identifier: Apache-2.0
// Parses the schedule by its grammar and executes it. A send ends only when its message is received. This is
// the case in which schedules hang most easily.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/traces/any_trace.h"
#include "traces/export/trace_export.h"

namespace dynamiccl {
namespace {

struct Operation {
  char kind;  // 'c', 's', 'r'
  uint64_t amount = 0;
  int peer = -1;
  int tag = -1;
  std::set<std::string> before;
  bool done = false;
};
using Schedule = std::vector<std::map<std::string, Operation>>;

Schedule ParseGoal(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  Schedule schedule;
  const std::regex operation(R"((l\d+): (calc|send|recv) (\d+)(b (?:to|from) (\d+) tag (\d+))?)");
  const std::regex dependency(R"((l\d+) requires (l\d+))");
  std::smatch match;
  std::getline(lines, line);
  EXPECT_TRUE(std::regex_match(line, std::regex(R"(num_ranks \d+)"))) << line;
  const size_t ranks = std::stoul(line.substr(10));
  bool open = false;
  while (std::getline(lines, line)) {
    if (std::regex_match(line, match, operation)) {
      Operation parsed{match[2].str()[0], std::stoull(match[3]), -1, -1, {}, false};
      EXPECT_EQ(match[4].matched, parsed.kind != 'c') << line;
      if (match[4].matched) parsed.peer = std::stoi(match[5]), parsed.tag = std::stoi(match[6]);
      EXPECT_TRUE(open && schedule.back().emplace(match[1], parsed).second) << line;
    } else if (std::regex_match(line, match, dependency)) {
      EXPECT_TRUE(schedule.back().contains(match[2])) << line;
      schedule.back().at(match[1]).before.insert(match[2]);
    } else if (line == "}") {
      open = false;
    } else if (!line.empty()) {
      EXPECT_EQ(line, fmt::format("rank {} {{", schedule.size()));
      schedule.emplace_back();
      open = true;
    }
  }
  EXPECT_FALSE(open);
  EXPECT_EQ(schedule.size(), ranks);
  return schedule;
}

bool Ready(const std::map<std::string, Operation>& rank, const Operation& operation) {
  return !operation.done && std::all_of(operation.before.begin(), operation.before.end(),
                                        [&](const std::string& label) { return rank.at(label).done; });
}

// Returns a receive that is ready for this message of rank `from`, or null.
Operation* PartnerOf(const Operation& send, int from, std::map<std::string, Operation>& peer) {
  for (auto& [label, operation] : peer) {
    if (operation.kind == 'r' && operation.peer == from && operation.tag == send.tag &&
        Ready(peer, operation))
      return &operation;
  }
  return nullptr;
}

// Executes the schedule. Returns the number of operations that never end.
size_t CarryOut(Schedule& schedule) {
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t rank = 0; rank < schedule.size(); ++rank) {
      for (auto& [label, operation] : schedule[rank]) {
        if (operation.kind == 'r' || !Ready(schedule[rank], operation)) continue;
        if (operation.kind == 's') {
          Operation* const receive =
              PartnerOf(operation, static_cast<int>(rank), schedule.at(static_cast<size_t>(operation.peer)));
          if (receive == nullptr) continue;
          EXPECT_EQ(receive->amount, operation.amount);
          receive->done = true;
        }
        moved = operation.done = true;
      }
    }
  }
  size_t stuck = 0;
  for (const auto& rank : schedule)
    for (const auto& [label, operation] : rank) stuck += operation.done ? 0 : 1;
  return stuck;
}

uint64_t BytesSent(const std::map<std::string, Operation>& rank) {
  uint64_t bytes = 0;
  for (const auto& [label, operation] : rank) bytes += operation.kind == 's' ? operation.amount : 0;
  return bytes;
}

Trace OneCallOn(int32_t ranks, Collective collective, uint64_t bytes, int32_t root) {
  Trace trace;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    SectionBuilder builder(rank, ranks);
    IssuedCall issued;
    issued.call.collective = collective;
    issued.call.bytes = bytes;
    issued.root_or_peer = root;
    builder.Add(CallRecord(0, issued));
    trace.sections.push_back(builder.section());
  }
  return trace;
}

std::string TextOf(const Trace& trace) {
  const auto exported = ExportGoal(trace);
  EXPECT_TRUE(exported) << exported.error().message;
  return exported->files.at(0).content;
}

TEST(GoalSchedule, CollectivesSendWhatARingSends) {
  for (int32_t n = 1; n <= 6; ++n) {
    const auto ranks = static_cast<uint64_t>(n);
    const uint64_t bytes = 60 * ranks;
    const std::map<Collective, uint64_t> wanted = {{Collective::kAllReduce, 2 * (ranks - 1) * 60},
                                                   {Collective::kAllGather, (ranks - 1) * 60},
                                                   {Collective::kReduceScatter, (ranks - 1) * 60},
                                                   {Collective::kSendRecv, (ranks - 1) * 60},
                                                   {Collective::kAllToAll, (ranks - 1) * 60}};
    for (const auto& [collective, sent] : wanted) {
      Schedule schedule = ParseGoal(TextOf(OneCallOn(n, collective, bytes, -1)));
      for (const auto& rank : schedule) EXPECT_EQ(BytesSent(rank), sent) << Name(collective) << " on " << n;
      EXPECT_EQ(CarryOut(schedule), 0u) << Name(collective) << " on " << n;
    }
  }
}

TEST(GoalSchedule, BroadcastBeginsAndReduceEndsAtTheRoot) {
  for (int32_t n = 1; n <= 5; ++n) {
    for (int32_t root = 0; root < n; ++root) {
      Schedule broadcast = ParseGoal(TextOf(OneCallOn(n, Collective::kBroadcast, 64, root)));
      Schedule reduce = ParseGoal(TextOf(OneCallOn(n, Collective::kReduce, 64, root)));
      const size_t at = static_cast<size_t>(root);
      for (const auto& [label, operation] : broadcast[at]) EXPECT_NE(operation.kind, 'r');
      for (const auto& [label, operation] : reduce[at]) EXPECT_NE(operation.kind, 's');
      uint64_t sent = 0;
      for (const auto& rank : reduce) sent += BytesSent(rank);
      EXPECT_EQ(sent, 64u * static_cast<uint64_t>(n - 1));
      EXPECT_EQ(CarryOut(broadcast) + CarryOut(reduce), 0u);
    }
  }
}

// Random calls on a communicator of all ranks and on pairs, with exchanges between neighbours.
TEST(GoalSchedule, MixedCallsEndOnEveryRank) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    Trace trace;
    std::vector<SectionBuilder> builders;
    for (int32_t rank = 0; rank < 4; ++rank) {
      builders.emplace_back(rank, 4);
      builders.back().Add(CommunicatorRecord(
          1, {.id = 100u + static_cast<uint64_t>(rank / 2), .rank = rank % 2, .n_ranks = 2, .n_nodes = 1},
          0));
    }
    for (uint64_t number = 0; number < 15; ++number) {
      IssuedCall issued;
      issued.call.call_number = number;
      issued.call.bytes = 8 * (1 + random() % 100);
      issued.call.collective = static_cast<Collective>(random() % 7);
      issued.root_or_peer = static_cast<int32_t>(random() % 2);
      const bool exchange = IsOneSided(issued.call.collective);
      const uint32_t communicator = exchange ? 1 : static_cast<uint32_t>(random() % 2);
      for (int32_t rank = 0; rank < 4; ++rank) {
        SectionBuilder& builder = builders[static_cast<size_t>(rank)];
        if (exchange) issued.root_or_peer = 1 - rank % 2;
        if (exchange) issued.call.collective = Collective::kSend;
        builder.Add(CallRecord(communicator, issued));
        if (exchange) issued.call.collective = Collective::kRecv;
        if (exchange) builder.Add(CallRecord(communicator, issued));
      }
    }
    for (SectionBuilder& builder : builders) trace.sections.push_back(builder.section());
    Schedule schedule = ParseGoal(TextOf(trace));
    EXPECT_EQ(CarryOut(schedule), 0u) << "seed " << seed;
  }
}

TEST(GoalSchedule, NeedsAllRanks) {
  Trace trace = OneCallOn(3, Collective::kAllReduce, 64, -1);
  trace.sections.pop_back();
  EXPECT_THAT(ExportGoal(trace).error().message,
              testing::HasSubstr("2 of the 3 ranks of communicator 0xabc"));
}

}  // namespace
}  // namespace dynamiccl
