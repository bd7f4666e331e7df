// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <regex>

#include "tests/traces/import/damaged_copies.h"
#include "tests/traces/import/import_data.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

// ---- real files ----

struct Count {
  uint64_t calls = 0;
  uint64_t bytes = 0;
  uint64_t compute_ns = 0;

  friend bool operator==(const Count&, const Count&) = default;
};

// An independent count: the number after each name of a collective, anywhere in the text.
std::map<std::string, Count> CountByPattern(const std::string& text) {
  std::map<std::string, Count> counts;
  static const std::regex transfer(
      R"(\b(ALLREDUCE|ALLGATHER|REDUCESCATTER|ALLTOALL|BROADCAST)(?:_[A-Z_]+)?\s+(\d+))");
  for (std::sregex_iterator match(text.begin(), text.end(), transfer), end; match != end; ++match) {
    const uint64_t bytes = std::stoull((*match)[2]);
    Count& count = counts[(*match)[1]];
    count.calls += bytes > 0;
    count.bytes += bytes;
  }
  return counts;
}

const char* NameInFile(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return "ALLREDUCE";
    case Collective::kAllGather:
      return "ALLGATHER";
    case Collective::kReduceScatter:
      return "REDUCESCATTER";
    case Collective::kBroadcast:
      return "BROADCAST";
    default:
      return "ALLTOALL";
  }
}

void ExpectImportedWhole(const std::string& path) {
  SCOPED_TRACE(path);
  const auto imported = ImportFile(path, "");
  ASSERT_TRUE(imported) << imported.error().message;
  std::map<std::string, Count> counts;
  for (const TraceCall& call : CallsOf(imported->trace->sections.at(0)).calls) {
    Count& count = counts[NameInFile(call.issued.call.collective)];
    ++count.calls;
    count.bytes += call.issued.call.bytes;
  }
  const auto expected = CountByPattern(ContentOf(path));
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(counts, expected);
}

TEST(SimAiData, EveryCollectiveOfEveryWorkloadIsThere) {
  DYNAMICCL_NEED_DATA(simai, "simai");
  DYNAMICCL_NEED_DATA(aicb, "aicb");
  size_t files = 0;
  for (const std::string& folder : {simai, aicb}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".txt" || entry.path().filename() == "SOURCE.txt") continue;
      ExpectImportedWhole(entry.path());
      ++files;
    }
  }
  EXPECT_EQ(files, 6u);
}

TEST(SimAiData, GroupsOfAMixtureOfExperts) {
  DYNAMICCL_NEED_DATA(path, "simai/workload_analytical.txt");
  const auto imported = ImportFile(path, "simai");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->trace->sections[0].world, 9216);
  std::map<uint64_t, int> ranks;
  for (const auto& [number, info] : CallsOf(imported->trace->sections[0]).communicators)
    ranks[info.n_ranks]++;
  // tp is 2, ep is 16, dp is 9216 / 2 / 12 = 384, and dp of the experts' gradients is 384 / 16 = 24.
  EXPECT_EQ(ranks, (std::map<uint64_t, int>{{2, 1}, {16, 1}, {384, 1}, {24, 1}}));
}

// ---- small files ----

constexpr const char* kWorkload =
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 2 pp: 1 all_gpus: 16 checkpoints: 0\n"
    "2\n"
    "a\t-1\t100\tALLGATHER\t4096\t200\tREDUCESCATTER\t8192\t300\tALLREDUCE_DP_EP\t7\t10\n"
    "b\t-1\t1000\tNONE\t0\t2000\tALLTOALL_EP\t64\t3000\tBROADCAST\t128\t20\n";

TEST(SimAi, CallsComeInTheOrderOfThePass) {
  const auto imported = ImportText(kWorkload, "");
  ASSERT_TRUE(imported) << imported.error().message;
  const TraceSection& section = imported->trace->sections.at(0);
  EXPECT_TRUE(section.mirrored());
  EXPECT_EQ(section.world, 16);
  const SectionCalls calls = CallsOf(section);
  ASSERT_EQ(calls.calls.size(), 5u);
  const std::vector<std::tuple<Collective, uint64_t, int32_t, int64_t>> expected = {
      {Collective::kAllGather, 4096, 4, 101},
      {Collective::kAllToAll, 64, 2, 3101},
      {Collective::kBroadcast, 128, 4, 6101},
      {Collective::kReduceScatter, 8192, 4, 6321},
      {Collective::kAllReduce, 7, 2, 6621}};
  for (size_t i = 0; i < expected.size(); ++i) {
    const IssuedCall& issued = calls.calls[i].issued;
    EXPECT_EQ(std::tuple(issued.call.collective, issued.call.bytes, issued.call.n_ranks, issued.issued_ns),
              expected[i])
        << i;
    EXPECT_EQ(issued.labelled_phase, i == 0 ? Phase::kForward : Phase::kBackward);
  }
  EXPECT_EQ(calls.calls[4].issued.call.data_type, DataType::kUint8) << "4 does not divide 7";
  EXPECT_EQ(CountOf(*imported, "algorithm"), 5u);
  EXPECT_EQ(CountOf(*imported, "group size"), 0u);
}

TEST(SimAi, CollectivesOfNoBytesAreLeftOutWithANote) {
  const auto imported = ImportText("MICRO\n1\nx -1 1 NONE 0 1 REDUCESCATTER 0 1 ALLREDUCE 64 1\n", "");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(SizeOf(*imported), 1u);
  EXPECT_THAT(imported->notes, testing::Contains(HasSubstr("1 collective of 0 bytes")));
}

TEST(SimAi, EveryWrongLineIsNamed) {
  const std::string whole = kWorkload;
  EXPECT_THAT(ErrorOf("", "simai"), HasSubstr("line 0: the file ends before"));
  EXPECT_THAT(ErrorOf("WEIRD\n", "simai"), HasSubstr("line 1: 'WEIRD' is no parallelism"));
  EXPECT_THAT(ErrorOf("MICRO\ntwo\n", "simai"), HasSubstr("line 2: 'two'"));
  EXPECT_THAT(ErrorOf("MICRO\n1\nx -1 1 NONE 0\n", "simai"), HasSubstr("line 3: a layer of 5 columns"));
  EXPECT_THAT(ErrorOf("MICRO\n1\nx -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n", "simai"),
              HasSubstr("no layer communicates"));
  std::string wrong = whole;
  wrong.replace(wrong.find("ALLGATHER"), 9, "ALLTAKERS");
  EXPECT_THAT(ErrorOf(wrong, "simai"), HasSubstr("line 3: no collective 'ALLTAKERS'"));
  wrong = whole;
  wrong.replace(wrong.find("4096"), 4, "4k96");
  EXPECT_THAT(ErrorOf(wrong, "simai"), HasSubstr("line 3: '4k96'"));
  EXPECT_THAT(ErrorOf(whole.substr(0, whole.find("b\t")), "simai"),
              HasSubstr("1 layers, and line 2 promises 2"));
}

TEST(SimAi, DamagedCopiesNeverCrash) {
  // Only a cut inside the last number or the newline after it may remain unnoticed.
  EXPECT_GE(ImportEveryTruncation(kWorkload, "simai"), std::string(kWorkload).size() - 3);
  EXPECT_GT(ImportFlippedCopies(kWorkload, "simai", 2000), 1000u);
}

}  // namespace
}  // namespace dynamiccl
