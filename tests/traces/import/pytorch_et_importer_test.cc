// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "tests/traces/import/damaged_copies.h"
#include "tests/traces/import/import_data.h"
#include "traces/format/trace_merge.h"
#include "traces/import/gzip_stream.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

const std::string kSample = DYNAMICCL_SOURCE_DIR "/traces/samples/execution_trace.json";

std::string Decompressed(const std::string& path) {
  auto stream = GzipStream::Open(path);
  return {std::istreambuf_iterator<char>(stream->stream()), {}};
}

size_t CountMatches(const std::string& text, const std::string& pattern) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(pattern, at)) != std::string::npos; ++at) ++count;
  return count;
}

SectionCalls Calls(const Result<Imported>& imported) {
  EXPECT_TRUE(imported) << imported.error().message;
  return imported ? CallsOf(imported->trace->sections.at(0)) : SectionCalls();
}

// The unpacked files of an archive, which exist while the object lives.
class Unpacked {
 public:
  explicit Unpacked(const std::string& archive)
      : folder_(testing::TempDir() + "/et-" + std::to_string(::getpid()) +
                std::filesystem::path(archive).stem().string()) {
    std::filesystem::create_directories(folder_);
    EXPECT_EQ(std::system(fmt::format("tar -xzf '{}' -C '{}'", archive, folder_).c_str()), 0);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (entry.is_regular_file()) files_.push_back(entry.path());
    }
    std::sort(files_.begin(), files_.end());
  }
  ~Unpacked() { std::filesystem::remove_all(folder_); }
  const std::vector<std::string>& files() const { return files_; }

 private:
  std::string folder_;
  std::vector<std::string> files_;
};

// Returns the moved data in order, without the names of the groups.
std::vector<std::tuple<Collective, DataType, uint64_t>> Moved(const SectionCalls& calls) {
  std::vector<std::tuple<Collective, DataType, uint64_t>> moved;
  for (const TraceCall& call : calls.calls)
    moved.emplace_back(call.issued.call.collective, call.issued.call.data_type, call.issued.call.bytes);
  return moved;
}

TEST(PyTorchEtData, TwoGpuResnet) {
  DYNAMICCL_NEED_DATA(path, "param-traces/resnet_2gpu_et.json.gz");
  const std::string text = Decompressed(path);
  const SectionCalls calls = Calls(ImportFile(path, ""));
  EXPECT_EQ(calls.calls.size(), CountMatches(text, "\"name\": \"nccl:"));
  EXPECT_EQ(calls.steps.size(), CountMatches(text, "\"name\": \"ProfilerStep#"));
  // The bytes of the tensors of the nccl:* nodes, which the importer does not read. A tensor is [id, storage,
  // offset, elements, bytes of an element].
  uint64_t bytes = 0;
  for (size_t at = 0; (at = text.find("\"name\": \"nccl:", at)) != std::string::npos; ++at) {
    const size_t tensor = text.find("\"values\": [[", at) + std::string_view("\"values\": [[").size();
    uint64_t elements = 0;
    uint64_t element_bytes = 0;
    ASSERT_EQ(std::sscanf(text.c_str() + tensor, "%*u, %*u, %*u, %lu, %lu", &elements, &element_bytes), 2);
    bytes += elements * element_bytes;
  }
  uint64_t imported = 0;
  for (const TraceCall& call : calls.calls) imported += call.issued.call.bytes;
  EXPECT_EQ(imported, bytes);
  ASSERT_EQ(calls.communicators.size(), 1u);
  EXPECT_EQ(calls.communicators.at(0).n_ranks, 2);
}

TEST(PyTorchEtData, OneGpuResnetOfALaterSchema) {
  DYNAMICCL_NEED_DATA(path, "param-traces/resnet_et.json.gz");
  EXPECT_EQ(Calls(ImportFile(path, "")).calls.size(), CountMatches(Decompressed(path), "\"name\": \"nccl:"));
}

TEST(PyTorchEtData, OldSchemaTellsTheSameAsTheProfilerOfThatRun) {
  DYNAMICCL_NEED_DATA(traces, "param-traces/dlrm_pytorch_et.tar.gz");
  DYNAMICCL_NEED_DATA(profiles, "param-traces/dlrm_kineto.tar.gz");
  const Unpacked nodes(traces);
  const Unpacked events(profiles);
  ASSERT_EQ(nodes.files().size(), 8u);
  ASSERT_EQ(events.files().size(), 8u);
  for (size_t rank = 0; rank < 8; ++rank) {
    auto imported = ImportFile(nodes.files()[rank], "");
    const SectionCalls calls = Calls(imported);
    EXPECT_EQ(Moved(calls), Moved(Calls(ImportFile(events.files()[rank], "")))) << rank;
    EXPECT_EQ(calls.calls.size(), 8u);
    ASSERT_EQ(calls.communicators.size(), 1u);
    EXPECT_EQ(calls.communicators.at(0).n_ranks, 8) << "by the splits of its all-to-alls";
  }
}

TEST(PyTorchEt, SampleIsTakenInOrderOfIds) {
  const auto imported = ImportFile(kSample, "");
  const SectionCalls calls = Calls(imported);
  ASSERT_EQ(calls.calls.size(), 3u);
  EXPECT_EQ(calls.calls[0].issued.call.collective, Collective::kAllReduce);
  EXPECT_EQ(calls.calls[0].issued.call.bytes, 4000u);
  EXPECT_EQ(calls.calls[0].step, 4);
  EXPECT_EQ(calls.calls[1].issued.call.collective, Collective::kAllGather);
  EXPECT_EQ(calls.calls[1].issued.call.bytes, 400u) << "what all ranks have in the end";
  EXPECT_EQ(calls.calls[1].issued.call.data_type, DataType::kBfloat16);
  EXPECT_EQ(calls.calls[2].issued.call.collective, Collective::kSend);
  EXPECT_EQ(calls.calls[2].issued.call.bytes, 48u);
  EXPECT_EQ(calls.calls[2].issued.root_or_peer, 1);
  ASSERT_EQ(calls.communicators.size(), 2u);
  EXPECT_EQ(calls.communicators.at(0).n_ranks, 4);
  EXPECT_EQ(calls.communicators.at(0).rank, 1);
  EXPECT_EQ(calls.communicators.at(1).n_ranks, 2);
  EXPECT_EQ(imported->trace->sections[0].rank, 1);
  EXPECT_EQ(imported->trace->sections[0].process_id, 4321);
  EXPECT_EQ(CountOf(*imported, "time of issue"), 3u);
  EXPECT_EQ(CountOf(*imported, "duration"), 3u);
  EXPECT_THAT(imported->notes, testing::Contains(HasSubstr("1 node 'wait'")));
}

TEST(PyTorchEt, WithoutCollectivesIsAnError) {
  EXPECT_THAT(ErrorOf(R"({"schema": "1.0.1", "nodes": []})", "pytorch-et"), HasSubstr("no collectives"));
}

TEST(PyTorchEt, EveryTruncationIsRefused) {
  const std::string text = ContentOf(kSample);
  EXPECT_EQ(ImportEveryTruncation(text, "pytorch-et"), text.find_last_of('}') + 1);
}

TEST(PyTorchEt, DamagedCopiesNeverCrash) {
  EXPECT_GT(ImportFlippedCopies(ContentOf(kSample), "pytorch-et", 1000), 50u);
}

// A trace of schema 1.0.2. The call's group is a name, or a number in the table of groups.
std::string OldTrace(const std::string& table, const std::string& group, const std::string& group_type) {
  return R"json({"schema": "1.0.2-chakra.0.0.4", "pid": 7, "nodes": [
    {"id": 3, "name": "## process_group:init ##", "inputs": {"values": [")json" +
         table +
         R"json("], "shapes": [[]], "types": ["String"]}, "outputs": {"values": [], "shapes": [], "types": []}, "attrs": []},
    {"id": 9, "name": "record_param_comms", "inputs": {"values": [[1,2,0,64,4,"cuda:0"], 5, )json" +
         group + R"json(, 1, "allreduce", [], []], "shapes": [[64], [], [], [], [], [], []],
      "types": ["Tensor(float)", "Int", ")json" +
         group_type + R"json(", "Int", "String", "GenericList[]", "GenericList[]"]},
      "outputs": {"values": [], "shapes": [], "types": []}, "attrs": []}]})json";
}

TEST(PyTorchEt, OldTablesTellTheSizeOfGroups) {
  const std::tuple<const char*, const char*, const char*> traces[] = {
      {R"([{\"pg_id\": 77, \"backend_id\": 78, \"ranks\": {\"0\": 0, \"1\": 1, \"2\": 2, \"3\": 3}}])", "77",
       "Int"},
      {R"([{\"pg_name\": \"0\", \"backend_id\": 78, \"ranks\": [], \"group_size\": 4}])", "78", "Int"},
      {R"([{\"pg_name\": \"0\", \"ranks\": [0, 1, 2, 3], \"group_size\": 4}])", "\"0\"", "String"},
      {R"([{\"pg_name\": \"0\", \"ranks\": [], \"group_size\": 4}])", R"(["0", "default_pg"])",
       "Tuple[String,String]"}};
  for (const auto& [table, group, type] : traces) {
    SCOPED_TRACE(group);
    const auto imported = ImportText(OldTrace(table, group, type), "");
    const SectionCalls calls = Calls(imported);
    ASSERT_EQ(calls.calls.size(), 1u);
    EXPECT_EQ(calls.calls[0].issued.call.bytes, 256u);
    EXPECT_EQ(calls.communicators.at(0).n_ranks, 4);
    EXPECT_EQ(calls.communicators.at(0).rank, 1);
    EXPECT_EQ(CountOf(*imported, "group size"), 0u);
    EXPECT_TRUE(imported->trace->order_only());
  }
}

}  // namespace
}  // namespace dynamiccl
