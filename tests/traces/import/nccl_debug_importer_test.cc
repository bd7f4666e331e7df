// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/traces/import/damaged_copies.h"
#include "tests/traces/import/import_data.h"
#include "traces/format/trace_merge.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/nccl_debug_lines.h"

namespace dynamiccl {
namespace {

using testing::Contains;
using testing::HasSubstr;

// ---- real files ----

// An independent count: a single pattern finds whole calls with their prefixes anywhere in the text.
size_t WholeCalls(const std::string& text) {
  static const std::regex pattern(
      R"([^\s:]:\d+:\d+ \[-?\d+\] NCCL INFO (AllReduce|Send|Recv): opCount [0-9a-f]+ sendbuff (?:\(nil\)|0x[0-9a-f]+) recvbuff (?:\(nil\)|0x[0-9a-f]+) acc \(nil\) count \d+ datatype \d+ op \d+ root \d+ comm 0x[0-9a-f]+ \[nranks=\d+\] stream 0x[0-9a-f]+(?=[ \n]))");
  return static_cast<size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()));
}

// Returns the number at the start of the note about calls that were left out.
size_t LeftOut(const Imported& imported) {
  for (const std::string& note : imported.notes) {
    if (note.find("which do not go with this one") != std::string::npos) return std::stoull(note);
  }
  return 0;
}

TEST(NcclDebugData, EveryLogOfRcclGivesItsWholeCalls) {
  DYNAMICCL_NEED_DATA(folder, "amd-mi355x");
  size_t files = 0;
  size_t chosen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().string().ends_with("nccl_debug.log.gz")) continue;
    SCOPED_TRACE(entry.path());
    ++files;
    auto stream = GzipStream::Open(entry.path());
    const std::string text(std::istreambuf_iterator<char>(stream->stream()), {});
    const size_t expected = WholeCalls(text);
    const auto imported = ImportFile(entry.path(), "");
    if (expected == 0) {
      ASSERT_FALSE(imported);
      EXPECT_THAT(imported.error().message, HasSubstr("no call in this log"));
      continue;
    }
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(SizeOf(*imported) + LeftOut(*imported), expected);
    EXPECT_THAT(imported->trace->sections[0].library, HasSubstr("RCCL 2.26"));
    EXPECT_TRUE(CheckRanksAgree(*imported->trace));
    for (const TraceSection& section : imported->trace->sections) {
      for (const TraceCall& call : CallsOf(section).calls) {
        if (!call.decision) continue;
        ++chosen;
        EXPECT_GT(call.decision->config.channels, 0);
      }
    }
  }
  EXPECT_EQ(files, 13u);
  EXPECT_GT(chosen, 1000u);
}

// ---- samples, written by NVIDIA's library (traces/samples/README.md) ----

struct CountedLog {
  std::map<std::string, size_t> calls;    // over all ranks, by collective
  std::map<std::string, uint64_t> bytes;  // as totals of NCCL
  std::multiset<std::string> choices;     // such as "AllReduce RING LL 8"
};

// An independent count by two patterns over the whole text.
CountedLog CountLog(const std::string& text) {
  static const std::regex call(
      R"(INFO (\w+): opCount [0-9a-f]+ .* count (\d+) datatype (\d+) .*\[nranks=(\d+)\])");
  static const std::regex choice(
      R"(INFO (\w+): \d+ Bytes -> Algo (\w+) proto (\w+) channel\{Lo..Hi\}=\{(\d+)..(\d+)\})");
  const std::vector<uint64_t> element = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};  // bytes by ncclDataType_t
  CountedLog counted;
  for (std::sregex_iterator at(text.begin(), text.end(), call), end; at != end; ++at) {
    const std::string name = (*at)[1];
    const bool per_rank = name == "AllGather" || name == "ReduceScatter";
    ++counted.calls[name];
    counted.bytes[name] +=
        std::stoull((*at)[2]) * element.at(std::stoul((*at)[3])) * (per_rank ? std::stoull((*at)[4]) : 1);
  }
  for (std::sregex_iterator at(text.begin(), text.end(), choice), end; at != end; ++at) {
    counted.choices.insert(fmt::format("{} {} {} {}", (*at)[1].str(), (*at)[2].str(), (*at)[3].str(),
                                       std::stoi((*at)[5]) - std::stoi((*at)[4]) + 1));
  }
  return counted;
}

std::string UpperCase(std::string_view name) {
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

void ExpectAsCounted(const std::string& name, const std::string& library) {
  SCOPED_TRACE(name);
  const std::string path = DYNAMICCL_SOURCE_DIR "/traces/samples/nccl_debug/" + name;
  std::ifstream file(path);
  const CountedLog counted = CountLog({std::istreambuf_iterator<char>(file), {}});
  const auto imported = ImportFile(path, "");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->trace->sections.size(), 2u);
  EXPECT_TRUE(CheckRanksAgree(*imported->trace));
  CountedLog got;
  for (const TraceSection& section : imported->trace->sections) {
    EXPECT_THAT(section.library, HasSubstr(library));
    for (const TraceCall& call : CallsOf(section).calls) {
      const std::string collective(Name(call.issued.call.collective));
      ++got.calls[collective];
      got.bytes[collective] += call.issued.call.bytes;
      if (!call.decision) continue;
      const CollectiveConfig& config = call.decision->config;
      got.choices.insert(fmt::format("{} {} {} {}", collective, UpperCase(Name(config.algorithm)),
                                     UpperCase(Name(config.protocol)), config.channels));
    }
  }
  EXPECT_EQ(got.calls, counted.calls);
  EXPECT_EQ(got.bytes, counted.bytes);
  EXPECT_EQ(got.choices, counted.choices);
}

TEST(NcclDebugSample, EveryCallAndChoiceOfTwoReleases) {
  ExpectAsCounted("2.28.9_communicators.log", "NCCL 2.28.9");
  ExpectAsCounted("2.32.3_communicators.log", "NCCL 2.32.3");
  ExpectAsCounted("2.32.3_groups.log", "NCCL 2.32.3");
}

// ---- lines ----

TEST(NcclDebugLines, PiecesOfLinesThatProcessesCutForEachOther) {
  const auto pieces = DebugPieces(
      "n1:10:12 [0] NCCL INFO AllReduce: opCou n1n1:11:13 [1] NCCL INFO Send: x n2:5:5 [-1] NCCL INFO end");
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].text, "AllReduce: opCou ");
  EXPECT_EQ(pieces[1].host, "n1n1");
  EXPECT_EQ(pieces[1].process_id, 11);
  EXPECT_EQ(pieces[1].text, "Send: x ");
  EXPECT_EQ(pieces[2].device, -1);
  EXPECT_EQ(pieces[2].text, "end");
  EXPECT_FALSE(pieces[2].cut);
  EXPECT_TRUE(DebugPieces("n1:10:12 NCCL CALL ncclGroupStart()").empty());
  EXPECT_TRUE(DebugPieces("a NCCL INFO b").empty());
}

// Another line is torn inside its process or thread number. Its rest must not become a part of the stream's
// pointer.
TEST(NcclDebugLines, TextEndsWhereATornLineGoesOn) {
  const std::string call =
      "AllReduce: opCount 1 sendbuff 0x7f00 recvbuff 0x7f80 count 4 datatype 7 op 0 root 0 comm 0xc0 "
      "[nranks=2] stream 0x55";
  const std::string torn = "n1:10:12 [0] NCCL INFO comm 0x1 rank 0 nRanks 2";
  for (size_t at = 0; at < torn.find("[0]"); ++at) {
    const std::string line = torn.substr(0, at) + "n1:11:13 [1] NCCL INFO " + call + torn.substr(at);
    const auto pieces = DebugPieces(line);
    ASSERT_FALSE(pieces.empty()) << line;
    EXPECT_TRUE(pieces.front().cut) << line;
    const auto read = ParseDebugCall(pieces.front().text);
    EXPECT_TRUE(!read || read->stream == "0x55") << line << ": " << read->stream;
    EXPECT_TRUE(BeginsDebugCall(pieces.front().text));
  }
}

TEST(NcclDebugLines, ChoicesOfAllReleases) {
  // NCCL 2.19 to 2.21
  auto choice = ParseDebugChoice("1024 Bytes -> Algo 0 proto 2 time 25.268644");
  ASSERT_TRUE(choice);
  EXPECT_FALSE(choice->collective);
  EXPECT_EQ(choice->config, (CollectiveConfig{Algorithm::kTree, Protocol::kSimple, 0}));
  // NCCL 2.22
  choice = ParseDebugChoice("AllGather: 64 Bytes -> Algo 1 proto 0 time 3.2");
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->collective, Collective::kAllGather);
  // NCCL 2.24
  choice =
      ParseDebugChoice("AllReduce: 67108864 Bytes -> Algo NVLS_TREE proto LL128 channel{Lo..Hi}={4..15}");
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->config, (CollectiveConfig{Algorithm::kNvlsTree, Protocol::kLL128, 12}));
  // NCCL 2.32
  choice = ParseDebugChoice("Reduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0} cgaClusterSize 4");
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->config.channels, 1);
  EXPECT_FALSE(ParseDebugChoice("AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1")) << "cut";
  EXPECT_FALSE(ParseDebugChoice("AllReduce: 8 Bytes -> Algo SPIRAL proto LL channel{Lo..Hi}={0..0}"));
  EXPECT_FALSE(ParseDebugChoice("8 Bytes -> Algo 9 proto 0 time 1"));
  EXPECT_FALSE(ParseDebugChoice("AllReduce [Symmetric]: 8 Bytes -> Kernel AllReduce_AGxLL_R nchannels 1"));
}

TEST(NcclDebugLines, CommunicatorsOfAllReleases) {
  auto line = ParseDebugCommunicator(
      "ncclCommInitRank comm 0x55 rank 3 nranks 16 cudaDev 3 nvmlDev 3 busId 1b000 commId 0xabc - Init "
      "COMPLETE");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->rank, 3);
  EXPECT_EQ(line->n_ranks, 16);
  EXPECT_EQ(line->id, 0xabcu);
  line = ParseDebugCommunicator(
      "ncclCommSplit comm 0x66 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 1b000 commId 0xdef parent 0x55 "
      "childCount 1 "
      "color 7 key 0 - Init START");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->id, 0xdefu);
  line = ParseDebugCommunicator("comm 0x55 rank 3 nRanks 16 nNodes 2 localRanks 8 localRank 3 MNNVL 0");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->n_nodes, 2);
  EXPECT_FALSE(ParseDebugCommunicator(
      "comm 0x55 rank 3 nranks 16 cudaDev 3 busId 1b000 commId 0xabc - Destroy COMPLETE"));
  EXPECT_FALSE(
      ParseDebugCommunicator("Init timings - ncclCommInitRank: rank 1 nranks 4 total 1.51 (kernels 0.15)"));
}

// ---- small logs, in the formats of the releases ----

struct Rank {
  int number;
  int of;

  std::string Line(const std::string& text) const {
    return fmt::format("node{}:{}:{} [{}] NCCL INFO {}\n", number / 2, 100 + number, 200 + number, number % 2,
                       text);
  }
  std::string Init() const {
    return Line(fmt::format(
               "ncclCommInitRank comm 0xc{} rank {} nranks {} cudaDev {} nvmlDev 0 busId 1000 commId "
               "0xfeed - Init START",
               number, number, of, number % 2)) +
           Line(fmt::format("comm 0xc{} rank {} nRanks {} nNodes {} localRanks 2 localRank {} MNNVL 0",
                            number, number, of, (of + 1) / 2, number % 2));
  }
  std::string Call(const std::string& function, int operation, uint64_t count, int type = 7,
                   int root = 0) const {
    return Line(
        fmt::format("{}: opCount {:x} sendbuff 0x7f00 recvbuff 0x7f80 count {} datatype {} op 0 root {} comm "
                    "0xc{} [nranks={}] stream 0x5",
                    function, operation, count, type, root, number, of));
  }
};

std::string TwoRanks() {
  const Rank first{0, 2};
  const Rank second{1, 2};
  return "NCCL version 2.28.9+cuda12.9\n" + first.Init() + second.Init() + first.Call("AllReduce", 0, 256) +
         second.Call("AllReduce", 0, 256) +
         first.Line("AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}") +
         first.Call("AllGather", 1, 64, 9) +
         first.Line(
             "AllGather: 128 Bytes -> Algo PAT proto SIMPLE "
             "channel{Lo..Hi}={0..0}") +
         second.Call("AllGather", 1, 64, 9) + first.Call("Broadcast", 2, 8, 0, 1) +
         second.Call("Broadcast", 2, 8, 0, 1);
}

// For these functions, NCCL's count is that of the part for one rank. AllToAllv belongs to RCCL.
TEST(NcclDebug, ExchangesKeepTheirNamesAndCountAllParts) {
  const std::pair<std::string, Collective> named[] = {{"AlltoAll", Collective::kAllToAll},
                                                      {"AllToAll", Collective::kAllToAll},
                                                      {"AllToAllv", Collective::kAllToAll},
                                                      {"Gather", Collective::kGather},
                                                      {"Scatter", Collective::kScatter}};
  const Rank rank{0, 4};
  for (const auto& [name, collective] : named) {
    const auto imported =
        ImportText("NCCL version 2.28.9+cuda12.9\n" + rank.Init() + rank.Call(name, 0, 256), "");
    ASSERT_TRUE(imported) << imported.error().message;
    const IssuedCall issued = CallsOf(imported->trace->sections[0]).calls.at(0).issued;
    EXPECT_EQ(issued.call.collective, collective) << name;
    EXPECT_EQ(issued.call.bytes, 4u * 256 * 4) << name;
    EXPECT_EQ(issued.root_or_peer, -1) << name;
  }
}

TEST(NcclDebug, RanksBecomeSections) {
  const auto imported = ImportText(TwoRanks(), "");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->trace->sections.size(), 2u);
  const TraceSection& section = imported->trace->sections[0];
  EXPECT_EQ(section.rank, 0);
  EXPECT_EQ(section.world, 2);
  EXPECT_EQ(section.host, "node0");
  EXPECT_EQ(section.process_id, 100);
  EXPECT_EQ(section.library, "NCCL 2.28.9+cuda12.9");
  EXPECT_FALSE(section.mirrored()) << "all ranks are here";
  EXPECT_TRUE(section.order_only()) << "lines have no times";
  const SectionCalls calls = CallsOf(section);
  EXPECT_EQ(calls.communicators.at(0).id, 0xfeedu);
  EXPECT_EQ(calls.communicators.at(0).n_nodes, 1);
  ASSERT_EQ(calls.calls.size(), 3u);
  EXPECT_EQ(calls.calls[0].issued.call.bytes, 1024u);
  ASSERT_TRUE(calls.calls[0].decision);
  EXPECT_EQ(calls.calls[0].decision->config, (CollectiveConfig{Algorithm::kRing, Protocol::kLL, 4}));
  EXPECT_EQ(calls.calls[1].issued.call.bytes, 256u) << "64 bfloat16 of 2 ranks";
  ASSERT_TRUE(calls.calls[1].decision) << "TUNING tells the bytes of one rank";
  EXPECT_EQ(calls.calls[1].decision->config.algorithm, Algorithm::kPat);
  EXPECT_EQ(calls.calls[2].issued.root_or_peer, 1);
  EXPECT_FALSE(calls.calls[2].decision);
  EXPECT_EQ(calls.calls[2].issued.call.call_number, 2u);
  EXPECT_EQ(CountOf(*imported, "algorithm"), 1u);
}

// The same job, logged by the example of NCCL's log plugin (plugins/log/example). Its records contain the
// texts of the lines.
TEST(NcclDebug, RecordsOfTheLogPluginAreTheLines) {
  std::string records = "LOG/Plugin: example sink installed\n";
  std::istringstream lines(TwoRanks());
  for (std::string line; std::getline(lines, line);) {
    const size_t info = line.find(" NCCL INFO ");
    const std::string place = info == line.npos ? "node0:100:100" : line.substr(0, line.find(' '));
    const std::string text = info == line.npos ? line : line.substr(info + 11);
    records += fmt::format("LOG/Plugin: level={} subsys=0x40 rank={} msg=\"{}\"\n",
                           info == line.npos ? "VERSION" : "INFO", place, text);
  }
  records +=
      "LOG/Plugin: level=ERROR code=3(internal error) subsys=0x1 rank=node0:100:100 dev=0 at=a.cc:1(f)"
      " event=\"%s\" msg=\"AllReduce: opCount 9\"\n";
  const auto expected = ImportText(TwoRanks(), "");
  const auto imported = ImportText(records, "");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->trace->sections.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const TraceSection& section = imported->trace->sections[i];
    EXPECT_EQ(section.library, "NCCL 2.28.9+cuda12.9");
    EXPECT_EQ(section.host, "node0");
    const SectionCalls calls = CallsOf(section);
    const SectionCalls same = CallsOf(expected->trace->sections[i]);
    ASSERT_EQ(calls.calls.size(), same.calls.size());
    for (size_t k = 0; k < calls.calls.size(); ++k) {
      EXPECT_EQ(calls.calls[k].issued.call.bytes, same.calls[k].issued.call.bytes);
      EXPECT_EQ(calls.calls[k].issued.call.collective, same.calls[k].issued.call.collective);
      EXPECT_EQ(calls.calls[k].decision.has_value(), same.calls[k].decision.has_value());
    }
  }
}

TEST(NcclDebugLines, ARecordOfTheLogPluginThatIsCutIsACutCall) {
  const std::string record =
      "LOG/Plugin: level=INFO subsys=0x10 rank=n1:10:12 msg=\"AllReduce: opCount 1 sendbuff 0x7f00 recvbuff "
      "0x7f80 count 4 datatype 7 op 0 root 0 comm 0xc0 [nranks=2] stream 0x55\"";
  ASSERT_EQ(DebugPieces(record).size(), 1u);
  EXPECT_TRUE(ParseDebugCall(DebugPieces(record)[0].text));
  for (size_t length = record.find("count 4"); length < record.size(); ++length) {
    const auto pieces = DebugPieces(std::string_view(record).substr(0, length));
    ASSERT_EQ(pieces.size(), 1u) << length;
    EXPECT_FALSE(ParseDebugCall(pieces[0].text)) << length;
    EXPECT_TRUE(BeginsDebugCall(pieces[0].text)) << length;
  }
}

TEST(NcclDebug, OneChoiceForAlikeCallsOfAGroup) {
  const Rank rank{0, 2};
  const auto imported =
      ImportText(rank.Init() + rank.Call("AllReduce", 5, 100) + rank.Call("AllReduce", 5, 300) +
                     rank.Call("AllReduce", 5, 200) +
                     rank.Line("AllReduce: 2000 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..1}") +
                     rank.Line("AllReduce: 400 Bytes -> Algo TREE proto LL channel{Lo..Hi}={2..2}"),
                 "");
  ASSERT_TRUE(imported) << imported.error().message;
  const SectionCalls calls = CallsOf(imported->trace->sections.at(0));
  ASSERT_EQ(calls.calls.size(), 3u);
  for (const TraceCall& call : calls.calls) {
    EXPECT_EQ(call.issued.call.call_number, 0u);
    EXPECT_EQ(call.issued.call.group_size, 3);
    ASSERT_TRUE(call.decision);
    EXPECT_EQ(call.decision->config.channels, call.issued.call.bytes == 400 ? 1 : 2);
  }
  EXPECT_TRUE(imported->trace->sections[0].mirrored()) << "one rank of two";
}

// Releases that count each call (2.32) still print choices in order of size, the largest first.
TEST(NcclDebug, ChoicesOfAGroupWhoseCallsAreCountedSingly) {
  const Rank rank{0, 2};
  const auto imported = ImportText(
      rank.Init() + rank.Call("AllReduce", 5, 100) + rank.Call("AllReduce", 6, 300) +
          rank.Line("AllReduce: 1200 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..1} cgaClusterSize 4") +
          rank.Line("AllReduce: 400 Bytes -> Algo RING proto LL channel{Lo..Hi}={1..1} cgaClusterSize 4") +
          rank.Call("AllReduce", 7, 100),
      "");
  ASSERT_TRUE(imported) << imported.error().message;
  const SectionCalls calls = CallsOf(imported->trace->sections.at(0));
  ASSERT_EQ(calls.calls.size(), 3u);
  ASSERT_TRUE(calls.calls[0].decision && calls.calls[1].decision);
  EXPECT_EQ(calls.calls[0].decision->config.algorithm, Algorithm::kRing);
  EXPECT_EQ(calls.calls[1].decision->config.algorithm, Algorithm::kTree);
  EXPECT_FALSE(calls.calls[2].decision);
}

TEST(NcclDebug, SendsDoNotAdvanceTheCallNumber) {
  const Rank rank{0, 2};
  const auto imported = ImportText(rank.Init() + rank.Call("Send", 0, 4, 7, 1) +
                                       rank.Call("Recv", 0, 4, 7, 1) + rank.Call("AllReduce", 1, 4),
                                   "nccl-debug");
  ASSERT_TRUE(imported) << imported.error().message;
  const SectionCalls calls = CallsOf(imported->trace->sections.at(0));
  ASSERT_EQ(calls.calls.size(), 3u);
  EXPECT_EQ(calls.calls[0].issued.root_or_peer, 1);
  EXPECT_EQ(calls.calls[1].issued.call.index_in_group, 1);
  EXPECT_EQ(calls.calls[2].issued.call.call_number, 0u);
}

TEST(NcclDebug, CutRanksAreLeftOutAndTheNoteSaysSo) {
  std::string log = TwoRanks();
  const std::string lost = Rank{1, 2}.Call("AllReduce", 0, 256);
  log.replace(log.find(lost), lost.size(), lost.substr(0, lost.size() / 2) + "\n");
  const auto imported = ImportText(log, "");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->trace->sections.size(), 1u);
  EXPECT_EQ(imported->trace->sections[0].rank, 0);
  EXPECT_EQ(LeftOut(*imported), 2u);
  EXPECT_THAT(imported->notes, Contains(HasSubstr("1 call in lines that are cut")));
}

TEST(NcclDebug, APointerThatIsUsedAgainIsAnotherCommunicator) {
  const Rank rank{0, 2};
  std::string again = rank.Init();
  again.replace(again.find("0xfeed"), 6, "0xbeef");
  const auto imported =
      ImportText(rank.Init() + rank.Call("AllReduce", 0, 4) + again + rank.Call("AllReduce", 0, 4), "");
  ASSERT_TRUE(imported) << imported.error().message;
  const SectionCalls calls = CallsOf(imported->trace->sections.at(0));
  ASSERT_EQ(calls.communicators.size(), 2u);
  EXPECT_EQ(calls.communicators.at(0).id, 0xfeedu);
  EXPECT_EQ(calls.communicators.at(1).id, 0xbeefu);
}

TEST(NcclDebug, TheCostTableBecomesANote) {
  const Rank rank{0, 2};
  const auto imported =
      ImportText(rank.Init() +
                     rank.Line("     AllReduce |    25.2/  16.6 |     0.0/   0.0 |   448.0/ 140.8 |    43.4/ "
                               " 20.8 |     0.0/   0.0 "
                               "|   152.8/ 204.8 |     5.6/   0.0 |     5.6/   0.0 |    44.0/   0.0 |") +
                     rank.Call("AllReduce", 0, 4),
                 "");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_THAT(
      imported->notes,
      Contains(
          "the library's cost table, AllReduce: Tree LL 25.2 us 16.6 GB/s, Tree Simple 448 us 140.8 GB/s, "
          "Ring LL 43.4 us 20.8 GB/s, Ring Simple 152.8 us 204.8 GB/s"));
}

TEST(NcclDebug, SymmetricKernelsAndTheCopyEngineAreCounted) {
  const Rank rank{0, 2};
  const auto imported = ImportText(rank.Init() + rank.Call("AllReduce", 0, 256) +
                                       rank.Line("AllReduce [Symmetric]: 1024 Bytes -> Kernel "
                                                 "AllReduce_AGxLL_R nchannels 1 nthreads 512 nWorks 1") +
                                       rank.Call("AllGather", 1, 64) +
                                       rank.Line("AllGather [Copy Engine]: 256 Bytes -> cudaMemcpyAsync"),
                                   "");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_THAT(imported->notes, Contains(HasSubstr("2 calls by symmetric kernels or the copy engine")));
  EXPECT_EQ(CountOf(*imported, "algorithm"), 2u);
}

TEST(NcclDebug, ALogWithoutCallsIsAnError) {
  EXPECT_THAT(ErrorOf("", "nccl-debug"), HasSubstr("line 0: no call in this log"));
  EXPECT_THAT(ErrorOf(Rank{0, 2}.Init(), "nccl-debug"), HasSubstr("line 2: no call in this log"));
}

TEST(NcclDebug, DamagedCopiesNeverCrash) {
  EXPECT_GT(ImportEveryTruncation(TwoRanks(), "nccl-debug"), 0u);
  ImportFlippedCopies(TwoRanks(), "nccl-debug", 2000);
}

}  // namespace
}  // namespace dynamiccl
