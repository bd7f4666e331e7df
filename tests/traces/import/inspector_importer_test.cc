// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/traces/import/damaged_copies.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

const std::string kSample = DYNAMICCL_SOURCE_DIR "/traces/samples/nccl_inspector.log";

SectionCalls Calls(const Result<Imported>& imported) {
  EXPECT_TRUE(imported) << imported.error().message;
  return imported ? CallsOf(imported->trace->sections.at(0)) : SectionCalls();
}

// The plugin computed the bandwidth itself, so the bandwidth shows the total bytes.
TEST(Inspector, BytesAndTimesGiveThePluginsOwnBandwidth) {
  std::vector<double> bandwidths;
  std::istringstream lines(ContentOf(kSample));
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("coll_perf")) bandwidths.push_back(json["coll_perf"]["coll_algobw_gbs"]);
    if (json.contains("p2p_perf")) bandwidths.push_back(json["p2p_perf"]["p2p_algobw_gbs"]);
  }
  const SectionCalls calls = Calls(ImportFile(kSample, ""));
  ASSERT_EQ(calls.calls.size(), bandwidths.size());
  size_t compared = 0;
  std::vector<double> told;
  for (const TraceCall& call : calls.calls) {
    if (call.issued.duration_ns < 0) continue;
    const double bandwidth =
        static_cast<double>(call.issued.call.bytes) / static_cast<double>(call.issued.duration_ns);
    compared += std::any_of(bandwidths.begin(), bandwidths.end(),
                            [&](double other) { return std::abs(other - bandwidth) < 1e-3 * other; });
  }
  EXPECT_EQ(compared, 4u);
}

TEST(Inspector, ATimeThatContradictsTheBandwidthIsLeftOutAndSaid) {
  std::string text = ContentOf(kSample);
  const std::string time = "\"coll_exec_time_us\":61974";
  text.replace(text.find(time), time.size(), "\"coll_exec_time_us\":31974");
  const auto imported = ImportText(text, "inspector");
  const SectionCalls calls = Calls(imported);
  EXPECT_EQ(calls.calls.at(0).issued.duration_ns, -1);
  EXPECT_GT(calls.calls.at(1).issued.duration_ns, 0);
  EXPECT_THAT(imported->notes,
              testing::Contains(HasSubstr("1 call whose size, time and bandwidth contradict")));
}

TEST(Inspector, FieldsOfAllFormats) {
  const auto imported = ImportFile(kSample, "inspector");
  const SectionCalls calls = Calls(imported);
  ASSERT_EQ(calls.calls.size(), 5u);
  const TraceSection& section = imported->trace->sections[0];
  EXPECT_EQ(section.rank, 2);
  EXPECT_EQ(section.world, 8);
  EXPECT_EQ(section.host, "node-1");
  EXPECT_EQ(section.process_id, 1639453);
  EXPECT_EQ(section.lost, 512u) << "the plugin's ring overwrote them";
  ASSERT_EQ(calls.communicators.size(), 1u);
  EXPECT_EQ(calls.communicators.at(0).id, 0x7f8c496ae9f661u);
  EXPECT_EQ(calls.calls[0].issued.issued_ns, 1748030377748202000);
  EXPECT_EQ(calls.calls[1].issued.issued_ns, 1748030377748400000) << "the verbose form has the time of issue";
  ASSERT_TRUE(calls.calls[1].decision);
  EXPECT_EQ(calls.calls[1].decision->config.channels, 2);
  ASSERT_TRUE(calls.calls[2].decision) << "a line without header belongs to the marker before it";
  EXPECT_EQ(calls.calls[2].decision->config.algorithm, Algorithm::kRing);
  EXPECT_EQ(calls.calls[2].decision->config.protocol, Protocol::kLL128);
  EXPECT_EQ(calls.calls[3].issued.duration_ns, -1) << "timed on the host: no transfer's time";
  EXPECT_FALSE(calls.calls[3].decision) << "'unknown' is no algorithm";
  EXPECT_EQ(calls.calls[4].issued.call.collective, Collective::kSend);
  EXPECT_EQ(calls.calls[4].issued.root_or_peer, 5);
  EXPECT_EQ(CountOf(*imported, "time of issue"), 4u);
  EXPECT_EQ(CountOf(*imported, "data type"), 5u);
  EXPECT_EQ(CountOf(*imported, "algorithm"), 3u);
  EXPECT_THAT(imported->notes, testing::Contains(HasSubstr("1 line of proxy steps")));
}

TEST(Inspector, ExchangesKeepTheirNames) {
  for (const auto& [name, collective] : {std::pair("AlltoAll", Collective::kAllToAll),
                                         {"Gather", Collective::kGather},
                                         {"Scatter", Collective::kScatter}}) {
    std::string text = ContentOf(kSample);
    const std::string word = "\"coll\":\"AllGather\"";
    text.replace(text.find(word), word.size(), fmt::format("\"coll\":\"{}\"", name));
    const SectionCalls calls = Calls(ImportText(text, "inspector"));
    ASSERT_EQ(calls.calls.size(), 5u);
    EXPECT_EQ(calls.calls[2].issued.call.collective, collective);
    EXPECT_EQ(calls.calls[2].issued.call.bytes, 8u << 20) << "the parts of all ranks";
    EXPECT_FALSE(calls.calls[2].decision) << "sends and receives have no algorithm";
  }
}

TEST(Inspector, ProcessOfSeveralGpusGivesASectionPerRank) {
  std::string text;
  for (const int rank : {0, 1}) {
    for (int call = 0; call < 3; ++call) {
      text += fmt::format(
          R"({{"header":{{"id":"0x1","rank":{},"n_ranks":2,"nnodes":1}},"metadata":{{"inspector_output_format_version":"v4.0","dump_timestamp_us":{}}},"coll_perf":{{"coll":"AllReduce","coll_sn":{},"coll_msg_size_bytes":64,"coll_exec_time_us":5}}}})"
          "\n",
          rank, 100 + call, call);
    }
  }
  const auto imported = ImportText(text, "");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->trace->sections.size(), 2u);
  EXPECT_EQ(imported->trace->sections[1].rank, 1);
  EXPECT_FALSE(imported->trace->sections[0].mirrored());
  EXPECT_EQ(CallsOf(imported->trace->sections[1]).calls.size(), 3u);
}

TEST(Inspector, ErrorsNameTheLine) {
  const std::string call =
      R"({"coll_perf":{"coll":"AllReduce","coll_msg_size_bytes":64,"coll_exec_time_us":5}})";
  EXPECT_THAT(ErrorOf(call, "inspector"), HasSubstr("line 1: a call before the header"));
  const std::string header = R"({"header":{"id":"0x1","rank":3,"n_ranks":2,"nnodes":1},"dump_stats":{}})";
  EXPECT_THAT(ErrorOf("\n" + header, "inspector"), HasSubstr("line 2: header.rank"));
  EXPECT_THAT(ErrorOf("{}\n{}\n[]", "inspector"), HasSubstr("line 3: an object"));
}

TEST(Inspector, TruncatedCopiesHoldTheWholeLines) {
  const std::string text = ContentOf(kSample);
  const auto whole = ImportText(text, "inspector");
  ASSERT_TRUE(whole) << whole.error().message;
  size_t begin = 0;  // offset of the line that is cut
  size_t calls = 0;  // number of calls in the lines before it
  for (size_t length = 1; length < text.size(); ++length) {
    const auto cut = ImportText(text.substr(0, length), "inspector");
    const bool at_end = text[length] == '\n' || text[length - 1] == '\n';
    if (text[length - 1] == '\n') {
      calls += text.substr(begin, length - begin).find("_perf\"") != std::string::npos;
      begin = length;
    }
    if (at_end) continue;
    ASSERT_EQ(cut.has_value(), calls > 0) << length;
    if (!cut) continue;
    EXPECT_EQ(SizeOf(*cut), calls) << length;
    EXPECT_THAT(cut->notes, testing::Contains(HasSubstr("the last one, is cut"))) << length;
  }
  EXPECT_EQ(SizeOf(*whole), calls) << "the last line has no call";
  EXPECT_THAT(ErrorOf(text.substr(0, begin / 2) + "\n{}\n", "inspector"), HasSubstr("an object of JSON"));
}

TEST(Inspector, DamagedCopiesNeverCrash) {
  EXPECT_GT(ImportFlippedCopies(ContentOf(kSample), "inspector", 1000), 100u);
}

}  // namespace
}  // namespace dynamiccl
