// SPDX-License-Identifier: Apache-2.0
// Exports traces for other tools and imports them again. What the other format can hold must be unchanged;
// each test states what that is. JSON lines hold everything: tests/traces/format/trace_json_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/traces/any_trace.h"
#include "traces/export/trace_export.h"
#include "traces/format/trace_calls.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

class RoundTrip : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "round-trip-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  Imported Import(const ExportedFile& file, const std::string& format) {
    const std::string path = folder_ + "/" + file.name;
    std::ofstream(path, std::ios::binary) << file.content;
    auto imported = ImportFile(path, format);
    EXPECT_TRUE(imported) << (imported ? "" : imported.error().message);
    return imported ? std::move(*imported) : Imported{};
  }

  std::string folder_;
};

// Chakra has no node type for SendRecv. The export writes it as an all-to-all.
constexpr Collective kKinds[] = {Collective::kBroadcast,     Collective::kReduce,    Collective::kAllGather,
                                 Collective::kReduceScatter, Collective::kAllReduce, Collective::kAllToAll,
                                 Collective::kSend,          Collective::kScatter,   Collective::kGather};

// Returns a job of four ranks with random calls on the world and on pairs. All times are in whole
// microseconds.
Trace RandomJob(uint64_t seed) {
  constexpr int32_t kRanks = 4;
  Trace trace;
  for (int32_t rank = 0; rank < kRanks; ++rank) {
    std::mt19937_64 random(seed);
    TraceSection section = SectionBuilder(rank, kRanks).section();
    section.library = "NCCL 2.28.9";
    section.records.push_back(CommunicatorRecord(
        1, {.id = 100u + static_cast<uint64_t>(rank / 2), .rank = rank % 2, .n_ranks = 2, .n_nodes = 1}, 0));
    uint64_t next_call[2] = {};
    int64_t now = 1'000'000;
    for (int i = 0; i < 50; ++i) {
      const auto communicator = static_cast<uint32_t>(random() % 2);
      IssuedCall issued;
      issued.call.collective = kKinds[random() % std::size(kKinds)];
      const bool peers = issued.call.collective >= Collective::kSendRecv;
      issued.call.call_number = peers ? next_call[communicator] : next_call[communicator]++;
      issued.call.bytes = 16 * (1 + random() % 100'000);
      issued.issued_ns = now += 1000 * static_cast<int64_t>(1 + random() % 500);
      const uint64_t microseconds = 1 + random() % 900;
      if (issued.call.collective == Collective::kSend) issued.root_or_peer = 1 - rank % 2;
      if (issued.call.collective == Collective::kBroadcast || issued.call.collective == Collective::kReduce)
        issued.root_or_peer = 0;
      TraceRecord record = CallRecord(communicator, issued);
      record.duration_ns = static_cast<uint32_t>(1000 * microseconds);
      record.duration_source = static_cast<uint8_t>(DurationSource::kStream);
      section.records.push_back(record);
    }
    for (TraceRecord& record : section.records) Seal(record);
    trace.sections.push_back(section);
  }
  return trace;
}

// Chakra holds the calls, their total bytes, group sizes, peers and order, and their times and durations in
// whole microseconds. It does not hold types, operators, roots, labels or call numbers. Issue times count
// from the start of the trace.
TEST_F(RoundTrip, ChakraKeepsCallsSizesGroupsPeersAndTimes) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Trace trace = RandomJob(seed);
    const auto exported = ExportChakra(trace);
    ASSERT_TRUE(exported);
    ASSERT_EQ(exported->files.size(), trace.sections.size());
    for (size_t rank = 0; rank < trace.sections.size(); ++rank) {
      const Imported imported = Import(exported->files[rank], "chakra");
      ASSERT_TRUE(imported.trace);
      EXPECT_EQ(imported.trace->sections[0].rank, static_cast<int32_t>(rank));
      const SectionCalls before = CallsOf(trace.sections[rank]);
      const SectionCalls after = CallsOf(imported.trace->sections[0]);
      ASSERT_EQ(after.calls.size(), before.calls.size());
      const int64_t shift = after.calls[0].issued.issued_ns - before.calls[0].issued.issued_ns;
      for (size_t i = 0; i < before.calls.size(); ++i) {
        const IssuedCall& a = before.calls[i].issued;
        const IssuedCall& b = after.calls[i].issued;
        EXPECT_EQ(b.call.collective, a.call.collective) << "seed " << seed << ", call " << i;
        EXPECT_EQ(b.call.bytes, a.call.bytes);
        EXPECT_EQ(b.call.n_ranks, a.call.n_ranks);
        EXPECT_EQ(b.call.call_number, a.call.call_number);
        EXPECT_EQ(b.root_or_peer, a.root_or_peer);
        EXPECT_EQ(b.issued_ns, a.issued_ns + shift);
        EXPECT_EQ(b.duration_ns, a.duration_ns);
      }
    }
  }
}

// For each collective, size and number of ranks, nccl-tests holds the single times. It also holds the
// release.
TEST_F(RoundTrip, NcclTestsJsonKeepsEveryTime) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Trace trace = RandomJob(seed);
    // Each collective has one size, so that rows have several times. Ranks have the same durations.
    std::map<std::pair<Collective, int32_t>, std::vector<float>> wanted;
    for (TraceSection& section : trace.sections) {
      std::erase_if(section.records, [](const TraceRecord& record) {
        return record.kind == static_cast<uint16_t>(RecordKind::kPointToPoint);
      });
      for (TraceRecord& record : section.records) {
        if (record.kind != static_cast<uint16_t>(RecordKind::kCollective)) continue;
        record.bytes = 1 << 20;
        Seal(record);
      }
    }
    for (const size_t rank : {0, 2}) {
      for (const TraceCall& call : CallsOf(trace.sections[rank]).calls) {
        if (call.issued.call.collective >= Collective::kSendRecv) continue;
        if (rank == 2 && call.issued.call.n_ranks == 4) continue;  // rank 0 has counted the world's calls
        wanted[{call.issued.call.collective, call.issued.call.n_ranks}].push_back(
            static_cast<float>(call.issued.duration_ns) / 1000);
      }
    }
    const auto exported = ExportNcclTests(trace);
    ASSERT_TRUE(exported);
    std::map<std::pair<Collective, int32_t>, std::vector<float>> got;
    for (const ExportedFile& file : exported->files) {
      if (file.name.starts_with("sendrecv")) continue;
      const Imported imported = Import(file, "");
      ASSERT_TRUE(imported.measurements);
      EXPECT_EQ(imported.measurements->library, "NCCL 2.28.9");
      const int32_t ranks = imported.measurements->contexts.at(0).model.fabric.n_ranks;
      for (const Measurement& row : imported.measurements->rows) {
        EXPECT_EQ(row.bytes, 1u << 20);
        got[{row.collective, ranks}] = row.microseconds;
      }
    }
    for (auto* times : {&wanted, &got})
      for (auto& [key, list] : *times) std::sort(list.begin(), list.end());
    EXPECT_EQ(got, wanted) << "seed " << seed;
  }
}

}  // namespace
}  // namespace dynamiccl
