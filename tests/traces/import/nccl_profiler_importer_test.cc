// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/traces/import/damaged_copies.h"
#include "tests/traces/import/import_data.h"
#include "traces/format/trace_merge.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

const std::string kSample = DYNAMICCL_SOURCE_DIR "/traces/samples/nccl_profiler.json";

SectionCalls Calls(const Result<Imported>& imported, size_t section = 0) {
  EXPECT_TRUE(imported) << imported.error().message;
  return imported ? CallsOf(imported->trace->sections.at(section)) : SectionCalls();
}

// ---- the array that the example plugin writes ----

TEST(NcclProfiler, ChromeArrayIsTakenFieldByField) {
  const auto imported = ImportFile(kSample, "");
  const SectionCalls calls = Calls(imported);
  ASSERT_EQ(calls.calls.size(), 4u);
  const TraceCall& first = calls.calls[0];
  EXPECT_EQ(first.issued.call.collective, Collective::kAllReduce);
  EXPECT_EQ(first.issued.call.bytes, 4u << 20);
  EXPECT_EQ(first.issued.issued_ns, 1'010'250) << "the API call's time";
  ASSERT_TRUE(first.decision);
  EXPECT_EQ(first.decision->config, (CollectiveConfig{Algorithm::kRing, Protocol::kSimple, 2}));
  const TraceCall& second = calls.calls[1];
  EXPECT_EQ(second.issued.call.data_type, DataType::kInt64) << "a word without quotes";
  EXPECT_EQ(second.issued.root_or_peer, 2);
  EXPECT_EQ(second.decision->config, (CollectiveConfig{Algorithm::kTree, Protocol::kLL, 1}));
  EXPECT_EQ(first.issued.call.call_number, second.issued.call.call_number) << "one group";
  EXPECT_EQ(second.issued.call.index_in_group, 1);
  EXPECT_EQ(second.issued.call.group_size, 2);
  EXPECT_EQ(calls.calls[2].issued.call.collective, Collective::kSend);
  EXPECT_EQ(calls.calls[2].issued.root_or_peer, 6);
  EXPECT_EQ(calls.calls[3].decision->config.algorithm, Algorithm::kPat);
  EXPECT_EQ(calls.communicators.at(0).id, 12464174370433239723u);
  EXPECT_EQ(calls.communicators.at(0).rank, 3);
  EXPECT_EQ(imported->trace->sections[0].process_id, 77);
}

TEST(NcclProfiler, ExchangesKeepTheirNames) {
  std::string text = ContentOf(kSample);
  for (const std::string name = "AllGather"; text.find(name) != text.npos;)
    text.replace(text.find(name), name.size(), "AlltoAll");
  const SectionCalls calls = Calls(ImportText(text, "nccl-profiler"));
  ASSERT_EQ(calls.calls.size(), 4u);
  EXPECT_EQ(calls.calls[3].issued.call.collective, Collective::kAllToAll);
  EXPECT_EQ(calls.calls[3].issued.root_or_peer, -1);
  EXPECT_FALSE(calls.calls[3].decision) << "sends and receives have no algorithm";
}

TEST(NcclProfiler, TransferTimesAreTheChannels) {
  const auto imported = ImportFile(kSample, "nccl-profiler");
  const SectionCalls calls = Calls(imported);
  ASSERT_EQ(calls.calls.size(), 4u);
  EXPECT_EQ(calls.calls[0].issued.duration_ns, 95'500) << "first start to last end on the GPU's clock";
  EXPECT_EQ(calls.calls[1].issued.duration_ns, 10'250) << "on the host's clock, where there is no other";
  EXPECT_EQ(calls.calls[3].issued.duration_ns, -1) << "the collective's own event is the host's time";
  EXPECT_EQ(CountOf(*imported, "duration"), 2u);
  EXPECT_EQ(CountOf(*imported, "group size"), 1u);
  EXPECT_EQ(CountOf(*imported, "bytes"), 1u) << "AllGather of a group of unknown size";
}

TEST(NcclProfiler, ClosedArraysAndTheFinalEmptyObjectAreFine) {
  const std::string text = ContentOf(kSample);
  EXPECT_EQ(Calls(ImportText(text + "{}]\n", "nccl-profiler")).calls.size(), 4u);
  EXPECT_EQ(Calls(ImportText(text + "]", "nccl-profiler")).calls.size(), 4u);
  EXPECT_THAT(ErrorOf(text + "]]", "nccl-profiler"), HasSubstr("byte "));
}

// Every line holds one event. After the end of the first call, a copy may be cut after an event, after its
// comma or after its line.
TEST(NcclProfiler, TruncatedCopiesHoldWholeEventsOrAreRefused) {
  const std::string text = ContentOf(kSample);
  const size_t first_end = text.find(R"("cat": "COLL", "ph": "e")");
  const auto lines = std::count(text.begin() + static_cast<ptrdiff_t>(first_end), text.end(), '\n');
  EXPECT_EQ(ImportEveryTruncation(text, "nccl-profiler"), text.size() - (3 * static_cast<size_t>(lines) - 1));
}

TEST(NcclProfiler, DamagedCopiesNeverCrash) {
  EXPECT_GT(ImportFlippedCopies(ContentOf(kSample), "nccl-profiler", 1000), 50u);
}

// ---- lines ----

// An independent count from the parsed lines.
struct LineCount {
  size_t calls = 0;
  std::map<std::string, std::pair<double, double>> spans;  // of a call's channels, by the call's address
};

LineCount CountLines(const std::string& path) {
  LineCount count;
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) {
    const Json json = Json::parse(line);
    const std::string type = json.value("type", "");
    count.calls += type == "ncclProfileColl";
    if (type != "ncclProfileKernelCh") continue;
    const double begin = json["start"]["ts"];
    const double end = json["stop"]["ts"];
    const auto [place, is_new] = count.spans.try_emplace(json["parentObj"], begin, end);
    place->second.first = std::min(place->second.first, begin);
    place->second.second = std::max(place->second.second, end);
  }
  return count;
}

void ExpectLinesImported(const std::string& path, size_t calls_a_rank, const std::vector<int>& channels) {
  const LineCount count = CountLines(path);
  const auto imported = ImportFile(path, "");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->trace->sections.size(), 4u) << "one process drives four GPUs";
  EXPECT_EQ(SizeOf(*imported), count.calls);
  std::vector<double> spans;
  for (const auto& [address, span] : count.spans) spans.push_back(1000 * (span.second - span.first));
  std::vector<double> durations;
  for (size_t rank = 0; rank < 4; ++rank) {
    const SectionCalls calls = Calls(imported, rank);
    ASSERT_EQ(calls.calls.size(), calls_a_rank);
    EXPECT_EQ(imported->trace->sections[rank].rank, static_cast<int32_t>(rank));
    for (size_t i = 0; i < calls_a_rank; ++i) {
      const TraceCall& call = calls.calls[i];
      EXPECT_EQ(call.issued.call.bytes, 128u << 20);
      EXPECT_EQ(call.issued.call.group_size, calls_a_rank);
      EXPECT_EQ(call.issued.call.n_ranks, 4);
      ASSERT_TRUE(call.decision);
      EXPECT_EQ(call.decision->config.algorithm, Algorithm::kRing);
      EXPECT_EQ(call.decision->config.protocol, Protocol::kSimple);
      EXPECT_EQ(call.decision->config.channels, channels[i]);
      durations.push_back(static_cast<double>(call.issued.duration_ns));
    }
  }
  std::sort(spans.begin(), spans.end());
  std::sort(durations.begin(), durations.end());
  ASSERT_EQ(durations.size(), spans.size());
  for (size_t i = 0; i < spans.size(); ++i) EXPECT_NEAR(durations[i], spans[i], 5);
  const Status agree = CheckRanksAgree(*imported->trace);
  EXPECT_TRUE(agree) << agree.error().message;
}

TEST(NcclProfilerData, LinesOfOneAllReduceOnFourGpus) {
  DYNAMICCL_NEED_DATA(path, "nccl-profiler-jsonl/trace_allreduce.jsonl");
  ExpectLinesImported(path, 1, {24});
}

TEST(NcclProfilerData, LinesOfTwoAllReducesInOneGroup) {
  DYNAMICCL_NEED_DATA(path, "nccl-profiler-jsonl/trace_allreduce_pp.jsonl");
  ExpectLinesImported(path, 2, {12, 13});
}

std::string Line(const std::string& type, const std::string& address, const std::string& parent,
                 int64_t begin, int64_t end, const std::string& details) {
  return fmt::format(
      R"({{"recordType":"event","type":"{}","commId":9,"rank":0,"start":{{"ts":{}.5,"pid":1}},"stop":{{"ts":{}.5}},"duration":1,"parentObj":"{}","eventAddr":"{}","details":{}}})"
      "\n",
      type, begin, end, parent, address, details);
}

TEST(NcclProfiler, AddressesThatComeAgainBelongToTheLaterCall) {
  const std::string details =
      R"({"func":"AllReduce","algo":"TREE","proto":"LL","channels":1,"count":8,"root":0,"dtype":"ncclFloat32","parentGroup":"0xg"})";
  std::string text;
  for (const int64_t begin : {100, 900}) {
    text += Line("ncclProfileColl", "0xa", "0xp", begin, begin + 1, details);
    text += Line("ncclProfileGroup", "0xg", "null", begin - 1, begin + 2, "{}");
    text += Line("ncclProfileKernelCh", "0xk", "0xa", begin + 10, begin + 10 + begin, R"({"channel":0})");
  }
  const SectionCalls calls = Calls(ImportText(text, ""));
  ASSERT_EQ(calls.calls.size(), 2u);
  EXPECT_EQ(calls.calls[0].issued.duration_ns, 100'000);
  EXPECT_EQ(calls.calls[1].issued.duration_ns, 900'000);
  EXPECT_EQ(calls.calls[0].issued.call.group_size, 1) << "two groups at one address";
  EXPECT_EQ(calls.calls[1].issued.call.call_number, 1u);
  EXPECT_EQ(ImportEveryTruncation(text, "nccl-profiler"), text.find('\n')) << "whole lines are kept";
  EXPECT_GT(ImportFlippedCopies(text, "nccl-profiler", 1000), 50u);
}

}  // namespace
}  // namespace dynamiccl
