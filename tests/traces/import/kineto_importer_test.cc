// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/traces/import/import_data.h"
#include "traces/format/trace_calls.h"
#include "traces/format/trace_merge.h"
#include "traces/import/gzip_stream.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content) { std::ofstream(path_, std::ios::binary) << content; }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + fmt::format("kineto_{}.json", ::getpid());
};

std::string Decompressed(const std::string& path) {
  auto stream = GzipStream::Open(path);
  return {std::istreambuf_iterator<char>(stream->stream()), {}};
}

// An independent count of NCCL's kernels in the parsed file. Each call has one kernel.
struct KernelCount {
  size_t kernels = 0;
  int64_t nanoseconds = 0;
  uint64_t bytes = 0;  // of kernels that state sizes
};

KernelCount CountKernels(const std::string& text) {
  KernelCount count;
  const Json document = Json::parse(text);
  for (const Json& event : document["traceEvents"]) {
    if (event.value("cat", "") != "kernel" || event.value("name", "").find("nccl") != 0) continue;
    ++count.kernels;
    count.nanoseconds += std::llround(event["dur"].get<double>() * 1000);
    const auto& args = event["args"];
    if (args.contains("In msg nelems")) {
      const uint64_t element = args["dtype"] == "Float" || args["dtype"] == "Int" ? 4
                               : args["dtype"] == "Byte"                          ? 1
                                                                                  : 8;
      count.bytes += args["In msg nelems"].get<uint64_t>() * element;
    }
  }
  return count;
}

SectionCalls CallsOfFile(const std::string& path, Imported* imported = nullptr) {
  auto result = ImportFile(path, "");
  EXPECT_TRUE(result) << result.error().message;
  if (!result) return {};
  EXPECT_TRUE(result->trace);
  SectionCalls calls = CallsOf(result->trace->sections.at(0));
  if (imported != nullptr) *imported = std::move(*result);
  return calls;
}

int64_t SumOfDurations(const SectionCalls& calls) {
  int64_t sum = 0;
  for (const TraceCall& call : calls.calls) sum += std::max<int64_t>(call.issued.duration_ns, 0);
  return sum;
}

uint64_t SumOfBytes(const SectionCalls& calls) {
  uint64_t sum = 0;
  for (const TraceCall& call : calls.calls) sum += call.issued.call.bytes;
  return sum;
}

uint64_t CountOf(const Imported& imported, const std::string& field) {
  for (const UnfilledField& row : imported.unfilled) {
    if (row.field == field) return row.count;
  }
  return 0;
}

void ExpectNoAlgorithm(const SectionCalls& calls) {
  for (const TraceCall& call : calls.calls) {
    if (!call.decision) continue;
    EXPECT_EQ(call.decision->config.algorithm, Algorithm::kUndefined);
    EXPECT_EQ(call.decision->config.protocol, Protocol::kUndefined);
  }
}

TEST(KinetoData, NewFieldsAreTakenAndJoinedToKernels) {
  DYNAMICCL_NEED_DATA(path, "hta-kineto/nccl_parser_config_nccl_data.json.gz");
  const KernelCount count = CountKernels(Decompressed(path));
  Imported imported;
  const SectionCalls calls = CallsOfFile(path, &imported);
  EXPECT_EQ(calls.calls.size(), count.kernels);
  EXPECT_EQ(calls.calls.size(), 21u);
  EXPECT_EQ(SumOfDurations(calls), count.nanoseconds);
  EXPECT_EQ(SumOfBytes(calls), count.bytes);
  EXPECT_EQ(CountOf(imported, "bytes"), 0u);
  EXPECT_EQ(calls.steps.size(), 3u);
  ASSERT_EQ(calls.communicators.size(), 1u);
  EXPECT_EQ(calls.communicators.at(0).n_ranks, 2);
  EXPECT_EQ(calls.communicators.at(0).rank, 0);
  ExpectNoAlgorithm(calls);
  EXPECT_EQ(imported.trace->sections[0].library, "NCCL 2.17.1");
  EXPECT_TRUE(imported.trace->sections[0].mirrored());
}

TEST(KinetoData, WithoutShapesSaysThatBytesAreMissing) {
  DYNAMICCL_NEED_DATA(path, "hta-kineto/df_index_resolver_df_index_resolver.json.gz");
  const KernelCount count = CountKernels(Decompressed(path));
  Imported imported;
  const SectionCalls calls = CallsOfFile(path, &imported);
  EXPECT_EQ(calls.calls.size(), count.kernels);
  EXPECT_EQ(calls.calls.size(), 2020u);
  EXPECT_EQ(SumOfDurations(calls), count.nanoseconds);
  EXPECT_EQ(CountOf(imported, "bytes"), 2020u);
  EXPECT_EQ(calls.communicators.at(0).rank, 1);
}

TEST(KinetoData, OldAnnotationsGiveSizes) {
  DYNAMICCL_NEED_DATA(path, "hta-kineto/timeline_analysis_sampled_rank-0.json.gz");
  const KernelCount count = CountKernels(Decompressed(path));
  Imported imported;
  const SectionCalls calls = CallsOfFile(path, &imported);
  EXPECT_EQ(count.kernels, 10u);
  EXPECT_EQ(calls.calls.size(), 10u);
  EXPECT_EQ(SumOfDurations(calls), count.nanoseconds);
  size_t gathers = 0;
  for (const TraceCall& call : calls.calls) {
    gathers += call.issued.call.collective == Collective::kAllGather;
    EXPECT_EQ(call.issued.call.n_ranks, 128);
  }
  EXPECT_EQ(gathers, 2u);
  EXPECT_EQ(CountOf(imported, "group size"), 1u);
}

TEST(KinetoData, EightRanksOfOneStepMergeAndAgree) {
  DYNAMICCL_NEED_DATA(archive, "param-traces/dlrm_kineto.tar.gz");
  const std::string folder = testing::TempDir() + fmt::format("dlrm_{}", ::getpid());
  std::filesystem::create_directory(folder);
  ASSERT_EQ(std::system(fmt::format("tar -xzf '{}' -C '{}'", archive, folder).c_str()), 0);
  std::vector<Trace> traces;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const KernelCount count = CountKernels(Decompressed(entry.path()));
    Imported imported;
    const SectionCalls calls = CallsOfFile(entry.path(), &imported);
    EXPECT_EQ(calls.calls.size(), count.kernels);
    EXPECT_EQ(calls.calls.size(), 8u);
    EXPECT_EQ(SumOfDurations(calls), count.nanoseconds);
    traces.push_back(std::move(*imported.trace));
  }
  std::filesystem::remove_all(folder);
  ASSERT_EQ(traces.size(), 8u);
  const auto merged = MergeTraces(std::move(traces));
  ASSERT_TRUE(merged) << merged.error().message;
  const Status agree = CheckRanksAgree(*merged);
  EXPECT_TRUE(agree) << agree.error().message;
  EXPECT_FALSE(merged->sections[0].mirrored()) << "all ranks are here: nothing is to be mirrored";
}

TEST(KinetoData, WithoutCollectivesIsAnError) {
  DYNAMICCL_NEED_DATA(path, "param-traces/resnet_kineto.json.gz");
  const auto imported = ImportFile(path, "kineto");
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message, HasSubstr("no collectives"));
}

TEST(KinetoData, EveryTruncationIsAnErrorWithAnOffset) {
  DYNAMICCL_NEED_DATA(path, "hta-kineto/timeline_analysis_sampled_rank-0.json.gz");
  std::ifstream stream(path, std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(stream), {});
  for (const size_t length : {size_t{0}, size_t{1}, size_t{10}, size_t{1000}, whole.size() / 2,
                              whole.size() - 9, whole.size() - 1}) {
    const TemporaryFile cut(std::string_view(whole).substr(0, length));
    const auto imported = ImportFile(cut.path(), "kineto");
    ASSERT_FALSE(imported) << "length " << length;
    EXPECT_THAT(imported.error().message, HasSubstr("byte ")) << "length " << length;
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 10; ++i) {
    std::string damaged = whole;
    for (int flip = 0; flip < 3; ++flip)
      damaged[10 + random() % (whole.size() - 10)] ^= static_cast<char>(1 + random() % 255);
    const TemporaryFile file(damaged);
    EXPECT_FALSE(ImportFile(file.path(), "kineto"));
  }
}

// ---- the sample in the tree ----

TEST(KinetoSample, ImportsAsGolden) {
  const std::string path = DYNAMICCL_SOURCE_DIR "/traces/samples/ddp_resnet_2_ranks.pt.trace.json";
  const KernelCount count = CountKernels(Decompressed(path));
  Imported imported;
  const SectionCalls calls = CallsOfFile(path, &imported);
  ASSERT_EQ(calls.calls.size(), 21u);
  EXPECT_EQ(count.kernels, 21u);
  EXPECT_EQ(SumOfDurations(calls), count.nanoseconds);
  EXPECT_EQ(SumOfBytes(calls), count.bytes);
  size_t broadcasts = 0;
  for (const TraceCall& call : calls.calls)
    broadcasts += call.issued.call.collective == Collective::kBroadcast;
  EXPECT_EQ(broadcasts, 6u);
  EXPECT_EQ(calls.steps.size(), 3u);
  EXPECT_EQ(OperationHash(calls), 6559765265761396210u);
}

// ---- small files, each with one feature ----

std::string Document(const std::string& events, const std::string& more = "") {
  return "{\"schemaVersion\": 1," + more + "\"traceEvents\": [" + events + "]}";
}

constexpr const char* kTwoRanks =
    R"("distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "pg_config": [
  {"pg_name": "0", "pg_size": 8, "ranks": [0,1,2,3,4,5,6,7]}, {"pg_name": "7", "pg_size": 2, "ranks": [2,3]}]},
  "baseTimeNanoseconds": 1000000000,)";

std::string Comm(const std::string& name, int64_t ts, const std::string& more) {
  return fmt::format(
      R"({{"ph":"X","cat":"cpu_op","name":"record_param_comms","tid":1,"ts":{},"dur":10,"args":{{"Collective name":"{}"{}}}}})",
      ts, name, more);
}

TEST(Kineto, CountsPerGroupAndTotalBytes) {
  const std::string sizes =
      R"(,"dtype":"BFloat16","In msg nelems":100,"Out msg nelems":200,"Process Group Name":"7","Group size":2)";
  const std::string reduce =
      R"(,"dtype":"BFloat16","In msg nelems":200,"Out msg nelems":100,"Process Group Name":"7","Group size":2)";
  const std::string world =
      R"(,"dtype":"Float","In msg nelems":5,"Out msg nelems":5,"Process Group Name":"0","Group size":8)";
  const TemporaryFile file(Document(Comm("wait", 5, "") + "," + Comm("_allgather_base", 20, sizes) + "," +
                                        Comm("allreduce", 40, world) + "," +
                                        Comm("_reduce_scatter_base", 60, reduce),
                                    kTwoRanks));
  const SectionCalls calls = CallsOfFile(file.path());
  ASSERT_EQ(calls.calls.size(), 3u);
  EXPECT_EQ(calls.calls[0].issued.call.collective, Collective::kAllGather);
  EXPECT_EQ(calls.calls[0].issued.call.bytes, 400u);
  EXPECT_EQ(calls.calls[0].issued.call.n_ranks, 2);
  EXPECT_EQ(calls.calls[0].issued.rank, 1);
  EXPECT_EQ(calls.calls[0].issued.issued_ns, 20'000);
  EXPECT_EQ(calls.calls[1].issued.call.bytes, 20u);
  EXPECT_EQ(calls.calls[1].issued.rank, 3);
  EXPECT_EQ(calls.calls[1].issued.call.call_number, 0u);
  EXPECT_EQ(calls.calls[2].issued.call.collective, Collective::kReduceScatter);
  EXPECT_EQ(calls.calls[2].issued.call.bytes, 400u);
  EXPECT_EQ(calls.calls[2].issued.call.call_number, 1u);
}

// Tests the names that PyTorch's nccl2/ProcessGroupNCCL.cpp writes into record_param_comms. For a gather into
// a list, it states the outputs as inputs and the input as output.
TEST(Kineto, NamesOfTheNccl2BackendAreCalls) {
  struct Named {
    const char* name;
    int in_elements, out_elements;
    Collective collective;
    uint64_t bytes;
  };
  constexpr Named kNamed[] = {{"all_reduce", 6, 6, Collective::kAllReduce, 24},
                              {"all_gather", 16, 2, Collective::kAllGather, 64},
                              {"allGatherSingleImpl", 2, 16, Collective::kAllGather, 64},
                              {"reduce_scatter", 16, 2, Collective::kReduceScatter, 64},
                              {"reduceScatterSingleImpl", 16, 2, Collective::kReduceScatter, 64},
                              {"broadcast", 3, 3, Collective::kBroadcast, 12},
                              {"reduce", 3, 3, Collective::kReduce, 12},
                              {"barrier", 1, 1, Collective::kAllReduce, 4},
                              {"send", 5, 5, Collective::kSend, 20},
                              {"recv", 5, 5, Collective::kRecv, 20},
                              {"all_to_all", 16, 16, Collective::kAllToAll, 64},
                              {"allToAllSingleImpl", 16, 16, Collective::kAllToAll, 64},
                              {"all_to_all_v_single", 16, 16, Collective::kAllToAll, 64},
                              {"gather", 5, 40, Collective::kGather, 20},
                              {"scatter", 40, 5, Collective::kScatter, 160},
                              {"batch_op_issue", 5, 5, Collective::kSendRecv, 20}};
  std::string events = Comm("wait", 5, "");
  int64_t ts = 0;
  for (const Named& call : kNamed)
    events +=
        "," + Comm(call.name, ts += 20,
                   fmt::format(R"(,"dtype":"Float","In msg nelems":{},"Out msg nelems":{},"Group size":8)",
                               call.in_elements, call.out_elements));
  const TemporaryFile file(Document(events, kTwoRanks));
  Imported imported;
  const SectionCalls calls = CallsOfFile(file.path(), &imported);
  ASSERT_EQ(calls.calls.size(), std::size(kNamed));
  for (size_t i = 0; i < std::size(kNamed); ++i) {
    EXPECT_EQ(calls.calls[i].issued.call.collective, kNamed[i].collective) << kNamed[i].name;
    EXPECT_EQ(calls.calls[i].issued.call.bytes, kNamed[i].bytes) << kNamed[i].name;
  }
  EXPECT_EQ(imported.trace->sections[0].library, "") << "a backend of NCCL is no other backend";
}

// In every importer and in the recorder, a send or receive has the number of the next collective.
TEST(Kineto, SendsDoNotAdvanceTheCallNumber) {
  const std::string size =
      R"(,"dtype":"Float","In msg nelems":5,"Out msg nelems":5,"Process Group Name":"0")";
  const TemporaryFile file(
      Document(Comm("allreduce", 20, size) + "," + Comm("send", 40, size + R"(,"Dst Rank":2)") + "," +
                   Comm("recv", 60, size + R"(,"Src Rank":1)") + "," + Comm("allreduce", 80, size) + "," +
                   Comm("all_to_all", 100, size) + "," + Comm("broadcast", 120, size),
               kTwoRanks));
  const SectionCalls calls = CallsOfFile(file.path());
  std::vector<uint64_t> numbers;
  for (const TraceCall& call : calls.calls) numbers.push_back(call.issued.call.call_number);
  EXPECT_EQ(numbers, (std::vector<uint64_t>{0, 1, 1, 1, 2, 2}));
  EXPECT_EQ(calls.calls.at(1).issued.call.collective, Collective::kSend);
  EXPECT_EQ(calls.calls.at(1).issued.root_or_peer, 2);
}

TEST(Kineto, KeepsNanosecondsOfLargeTimes) {
  const TemporaryFile file(
      Document(Comm("allreduce", 1, R"(,"dtype":"Float","In msg nelems":5,"Out msg nelems":5)")));
  std::ifstream stream(file.path());
  std::string text(std::istreambuf_iterator<char>(stream), {});
  text.replace(text.find("\"ts\":1,"), 7, "\"ts\":1711964646123456.789,");
  const TemporaryFile exact(text);
  EXPECT_EQ(CallsOfFile(exact.path()).calls.at(0).issued.issued_ns, 1711964646123456789);
}

TEST(Kineto, SkipsInitAndWaitAndSaysSo) {
  const TemporaryFile file(Document(Comm("init", 1, "") + "," + Comm("wait", 20, "") + "," +
                                    Comm("allreduce", 40, R"(,"dtype":"Float","In msg nelems":5)")));
  Imported imported;
  EXPECT_EQ(CallsOfFile(file.path(), &imported).calls.size(), 1u);
  EXPECT_THAT(imported.notes, testing::Contains(HasSubstr("'wait'")));
}

std::string AnnotationOf(const std::string& name, int64_t ts) {
  return fmt::format(R"({{"ph":"X","cat":"user_annotation","name":"{}","tid":1,"ts":{},"dur":9.5,)"
                     R"("args":{{"Input type":["float"],"Input Dims":[[131584]]}}}})",
                     name, ts);
}

TEST(Kineto, CallsOfAnotherBackendAreCallsWithTheHostsTimes) {
  for (const std::string backend : {"gloo", "dynamiccl"}) {
    const TemporaryFile file(
        Document(AnnotationOf(backend + ":all_reduce", 20) + "," + AnnotationOf(backend + ":broadcast", 40),
                 kTwoRanks));
    Imported imported;
    const SectionCalls calls = CallsOfFile(file.path(), &imported);
    ASSERT_EQ(calls.calls.size(), 2u);
    EXPECT_EQ(calls.calls[0].issued.call.collective, Collective::kAllReduce);
    EXPECT_EQ(calls.calls[0].issued.call.bytes, 131584u * 4);
    EXPECT_EQ(calls.calls[0].issued.call.n_ranks, 8);
    EXPECT_EQ(calls.calls[0].issued.duration_ns, 9'500);
    EXPECT_EQ(imported.trace->sections[0].library, backend);
    EXPECT_THAT(imported.notes, testing::Contains(HasSubstr("the backend " + backend + ", not of NCCL")));
  }
}

TEST(Kineto, AnnotationsOfBothBackendsOfNcclAreCalls) {
  for (const std::string backend : {"nccl", "nccl2"}) {
    const TemporaryFile file(Document(AnnotationOf(backend + ":all_reduce", 20), kTwoRanks));
    const SectionCalls calls = CallsOfFile(file.path());
    ASSERT_EQ(calls.calls.size(), 1u) << backend;
    EXPECT_EQ(calls.calls[0].issued.call.collective, Collective::kAllReduce);
    EXPECT_EQ(calls.calls[0].issued.duration_ns, -1) << "the host's time is no duration of NCCL";
  }
}

TEST(Kineto, CallsOfAnotherBackendBesideNcclAreCounted) {
  const TemporaryFile file(
      Document(AnnotationOf("gloo:all_reduce", 20) + "," +
               Comm("allreduce", 40, R"(,"dtype":"Float","In msg nelems":5,"Out msg nelems":5)")));
  Imported imported;
  EXPECT_EQ(CallsOfFile(file.path(), &imported).calls.size(), 1u);
  EXPECT_EQ(imported.trace->sections[0].library, "");
  EXPECT_THAT(imported.notes, testing::Contains(HasSubstr("1 call of the backend gloo beside NCCL")));
}

TEST(Kineto, AProfileWithoutCallsShowsItsDeviceWhereCallsAreNotNeeded) {
  const TemporaryFile file(
      Document(R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10,"dur":30,"args":{}},)"
               R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":50,"dur":30,"args":{}})"));
  EXPECT_FALSE(ImportFile(file.path(), ""));
  const auto imported = ImportFile(file.path(), "", {.needs_calls = false});
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_FALSE(imported->trace || imported->measurements);
  ASSERT_TRUE(imported->device);
  EXPECT_EQ(imported->device->computing_ns, 60'000);
  EXPECT_EQ(imported->device->idle_ns, 10'000);
}

TEST(Kineto, ATarArchiveIsNamedWithItsFirstFile) {
  std::string archive(1024, '\0');
  archive.replace(0, 10, "trace.json");
  archive.replace(257, 5, "ustar");
  archive += Document(AnnotationOf("nccl:all_reduce", 20));
  const TemporaryFile file(archive);
  const auto imported = ImportFile(file.path(), "");
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message,
              HasSubstr("a tar archive, which is not read; it begins with 'trace.json'"));
  EXPECT_THAT(imported.error().hint, HasSubstr("tar -xf"));
}

TEST(Kineto, NeverReadsAProtocolFromAKernelsName) {
  const std::string kernel =
      R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_bf16_RING_LL","ts":60,"dur":7.5,"tid":9,)"
      R"("args":{"correlation":4,"stream":7,"grid":[24,1,1]}})";
  const std::string launch =
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernelExC","ts":45,"dur":1,"tid":1,"args":{"correlation":4}})";
  const TemporaryFile file(
      Document(Comm("allreduce", 40, R"(,"dtype":"Float","In msg nelems":5)") + "," + launch + "," + kernel));
  const SectionCalls calls = CallsOfFile(file.path());
  ASSERT_EQ(calls.calls.size(), 1u);
  EXPECT_EQ(calls.calls[0].issued.duration_ns, 7'500);
  EXPECT_EQ(calls.calls[0].duration_source, DurationSource::kImported);
  EXPECT_EQ(calls.calls[0].stream, 7u);
  ASSERT_TRUE(calls.calls[0].decision);
  EXPECT_EQ(calls.calls[0].decision->config.channels, 24);
  ExpectNoAlgorithm(calls);
}

TEST(Kineto, EveryTruncationOfTextIsRefused) {
  const std::string text =
      Document(Comm("allreduce", 40,
                    R"(,"dtype":"Float","In msg nelems":5,"Input Dims":[[3,4],[5]],"odd \" key":"\u00e9")"),
               kTwoRanks);
  for (size_t length = 0; length < text.size(); ++length) {
    const TemporaryFile cut(std::string_view(text).substr(0, length));
    const auto imported = ImportFile(cut.path(), "kineto");
    ASSERT_FALSE(imported) << "length " << length;
    EXPECT_THAT(imported.error().message, HasSubstr("byte ")) << "length " << length;
  }
  const TemporaryFile whole(text);
  EXPECT_EQ(CallsOfFile(whole.path()).calls.size(), 1u);
}

// The reader reads in pieces. Events, strings and escapes cross the borders of pieces, and one event is
// longer than a piece.
TEST(Kineto, EventsOfAnyLengthAreWhole) {
  std::mt19937_64 random(3);
  std::string events;
  for (int64_t i = 0; i < 2000; ++i) {
    const size_t length = i == 1000 ? 700'000 : random() % 1500;
    std::string noise;
    while (noise.size() < length) noise += random() % 4 == 0 ? "\\\\\\\"}]" : "noise ";
    events += Comm("allreduce", 20 * i,
                   fmt::format(R"(,"Call stack":"{}","dtype":"Float","In msg nelems":{})", noise, i + 1)) +
              (i == 1999 ? "" : ",\n");
  }
  const TemporaryFile file(Document(events));
  const SectionCalls calls = CallsOfFile(file.path());
  EXPECT_EQ(calls.calls.size(), 2000u);
  EXPECT_EQ(SumOfBytes(calls), 4u * 2000 * 2001 / 2);
}

TEST(Kineto, DamagedTextNeverCrashes) {
  const std::string text = Document(
      Comm("allreduce", 40, R"(,"dtype":"Float","In msg nelems":5,"Input Dims":[[3,4],[5]])"), kTwoRanks);
  std::mt19937_64 random(2);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    for (int flip = 0; flip < 3; ++flip)
      damaged[random() % damaged.size()] = static_cast<char>(random() % 128);
    const TemporaryFile file(damaged);
    (void)ImportFile(file.path(), "kineto");
  }
}

TEST(Kineto, UnknownFormatsAreAnErrorWithAHint) {
  const TemporaryFile file("hello");
  const auto imported = ImportFile(file.path(), "");
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().hint, HasSubstr("kineto"));
  EXPECT_FALSE(ImportFile(file.path(), "excel"));
  EXPECT_EQ(ImportFile("/nonexistent", "").error().kind, ErrorKind::kNotFound);
}

TEST(Kineto, DeeplyNestedArgumentsTakeLinearTime) {
  const size_t depth = 300'000;
  const std::string nested = std::string(depth, '[') + "7" + std::string(depth, ']');
  const std::string text =
      R"({"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 1, "dur": 1, "tid": 1, "args": {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 64, "Out msg nelems": 64, "Group size": )" +
      nested + "}}]}";
  const TemporaryFile file(text);
  const auto begin = std::chrono::steady_clock::now();
  const auto imported = ImportFile(file.path(), "kineto");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(CallsOf(imported->trace->sections[0]).communicators.at(0).n_ranks, 7);
  EXPECT_LT(seconds.count(), 5) << "the square of the depth takes minutes";
}

}  // namespace
}  // namespace dynamiccl
