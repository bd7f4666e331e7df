// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/traces/import/damaged_copies.h"
#include "tests/traces/import/import_data.h"

namespace dynamiccl {
namespace {

using testing::HasSubstr;

// ---- an independent encoder, for small files ----

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string Number(uint64_t field, uint64_t value) {
  return Varint(field << 3) + Varint(value);
}
std::string Bytes(uint64_t field, const std::string& bytes) {
  return Varint(field << 3 | 2) + Varint(bytes.size()) + bytes;
}
std::string Message(const std::string& fields) {
  return Varint(fields.size()) + fields;
}
std::string Attribute(const std::string& name, uint64_t field, uint64_t value) {
  return Bytes(10, Bytes(1, name) + Number(field, value));
}
std::string Node(uint64_t type, const std::string& fields) {
  return Message(Number(1, 7) + Bytes(2, "node") + Number(3, type) + fields);
}
std::string Collective_(uint64_t comm_type, uint64_t bytes, const std::string& more = "") {
  return Node(7, Attribute("comm_type", 9, comm_type) + Attribute("comm_size", 9, bytes) + more);
}
const std::string kMetadata = Message(Bytes(1, "0.0.4"));

SectionCalls CallsIn(const Imported& imported) {
  return CallsOf(imported.trace->sections.at(0));
}

// ---- real files ----

class ChakraData : public testing::Test {
 protected:
  void Unpack(const std::string& archive) {
    folder_ = testing::TempDir() + fmt::format("chakra_{}", ::getpid());
    std::filesystem::create_directories(folder_);
    ASSERT_EQ(std::system(fmt::format("tar -xzf '{}' -C '{}'", archive, folder_).c_str()), 0);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  std::string folder_;
};

// The path .../<collective>/<n>npus_1MB/<collective>.<rank>.et names what a micro-benchmark contains. Each
// rank makes one call of 1 MiB.
TEST_F(ChakraData, MicroBenchmarksAreWhatTheirPathsSay) {
  DYNAMICCL_NEED_DATA(archive, "chakra/astra_sim_microbench_et.tar.gz");
  Unpack(archive);
  const std::map<std::string, Collective> names = {{"all_gather", Collective::kAllGather},
                                                   {"all_reduce", Collective::kAllReduce},
                                                   {"all_to_all", Collective::kAllToAll},
                                                   {"reduce_scatter", Collective::kReduceScatter}};
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
    if (entry.path().extension() != ".et") continue;
    SCOPED_TRACE(entry.path());
    const auto imported = ImportFile(entry.path(), "");
    ASSERT_TRUE(imported) << imported.error().message;
    const SectionCalls calls = CallsIn(*imported);
    ASSERT_EQ(calls.calls.size(), 1u);
    const std::string stem = entry.path().stem();
    EXPECT_EQ(calls.calls[0].issued.call.bytes, 1u << 20);
    EXPECT_EQ(calls.calls[0].issued.call.collective, names.at(stem.substr(0, stem.find('.'))));
    EXPECT_EQ(imported->trace->sections[0].rank, std::stoi(stem.substr(stem.find('.') + 1)));
    ++files;
  }
  EXPECT_EQ(files, 112u);
}

// Chakra's own tests have the same trace as JSON. The test counts the collectives of the accelerator in it,
// by their kernel names.
TEST_F(ChakraData, ATraceOfPyTorchHasTheKernelsOfItsJson) {
  DYNAMICCL_NEED_DATA(archive, "chakra/feeder_tests_trace.tar.gz");
  DYNAMICCL_NEED_DATA(json_archive, "chakra/json_trace.tar.gz");
  Unpack(archive);
  Unpack(json_archive);
  const auto json = nlohmann::json::parse(std::ifstream(folder_ + "/jsonData/chakra.0.json"));
  size_t kernels = 0;
  int64_t runtime_us = 0;
  size_t nodes = 0;
  for (const auto& node : json["workload_graph"]) {
    ++nodes;
    if (node["Name"].get<std::string>().find("ncclKernel") == std::string::npos) continue;
    ++kernels;
    runtime_us += node["runtime"].get<int64_t>();
  }
  const auto imported = ImportFile(folder_ + "/tests/data/chakra.0.et", "");
  ASSERT_TRUE(imported) << imported.error().message;
  const SectionCalls calls = CallsIn(*imported);
  EXPECT_EQ(calls.calls.size(), kernels);
  EXPECT_EQ(kernels, 7u);
  int64_t duration_us = 0;
  for (const TraceCall& call : calls.calls) duration_us += call.issued.duration_ns / 1000;
  EXPECT_EQ(duration_us, runtime_us);
  EXPECT_THAT(imported->notes, testing::Contains(HasSubstr("14 communication nodes without a known")));
}

// ---- small files ----

TEST(Chakra, ExchangesKeepTheirNames) {
  const std::pair<uint64_t, Collective> types[] = {
      {3, Collective::kGather}, {4, Collective::kScatter}, {6, Collective::kAllToAll}};
  for (const auto& [type, collective] : types) {
    const auto imported = ImportText(kMetadata + Collective_(type, 4096), "", "run.0.et");
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(CallsIn(*imported).calls.at(0).issued.call.collective, collective);
    EXPECT_EQ(CallsIn(*imported).calls.at(0).issued.call.bytes, 4096u);
  }
}

TEST(Chakra, NodesBecomeCalls) {
  const std::string group = Bytes(10, Bytes(1, "pg_name") + Bytes(29, "dp"));
  const std::string file =
      kMetadata + Node(4, "") +
      Collective_(2, 4096, group + Attribute("pg_size", 13, 4) + Number(6, 50) + Number(7, 9)) +
      Collective_(9, 3, Number(6, 90)) +
      Node(5, Attribute("comm_size", 17, 2 * 600) + Attribute("comm_dst", 7, 3) + Number(6, 95)) +
      Node(6, Attribute("comm_size", 21 - 10, 8) + Attribute("comm_src", 7, 1) + Number(6, 99));
  const auto imported = ImportText(file, "", "run.2.et");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->trace->sections[0].rank, 2);
  const SectionCalls calls = CallsIn(*imported);
  ASSERT_EQ(calls.calls.size(), 4u);
  EXPECT_EQ(calls.calls[0].issued.call.bytes, 4u * 4096) << "the total of 4 ranks";
  EXPECT_EQ(calls.calls[0].issued.call.n_ranks, 4);
  EXPECT_EQ(calls.calls[0].issued.rank, 2);
  EXPECT_EQ(calls.calls[0].issued.issued_ns, 50'000);
  EXPECT_EQ(calls.calls[0].issued.duration_ns, 9'000);
  EXPECT_EQ(calls.calls[1].issued.call.collective, Collective::kAllReduce) << "a barrier";
  EXPECT_EQ(calls.calls[1].issued.call.data_type, DataType::kUint8);
  EXPECT_EQ(calls.calls[2].issued.call.bytes, 600u) << "zigzag";
  EXPECT_EQ(calls.calls[2].issued.root_or_peer, 3);
  EXPECT_EQ(calls.calls[3].issued.root_or_peer, 1);
  EXPECT_EQ(CountOf(*imported, "group size"), 1u);
  EXPECT_EQ(CountOf(*imported, "duration"), 3u);
  EXPECT_EQ(CountOf(*imported, "issue time"), 0u);
  EXPECT_FALSE(imported->trace->order_only());
}

// A file without pg_size does not state the size of the group. The user may state it.
TEST(Chakra, UnknownGroupSizesAreMarkedOrStated) {
  const std::string text = kMetadata + Collective_(2, 4096) + Collective_(0, 64);
  const auto untold = ImportText(text, "", "run.5.et");
  ASSERT_TRUE(untold) << untold.error().message;
  EXPECT_TRUE(untold->trace->sections[0].groups_unknown());
  const auto stated = ImportText(text, "", "run.5.et", {.group_size = 4});
  ASSERT_TRUE(stated) << stated.error().message;
  EXPECT_FALSE(stated->trace->sections[0].groups_unknown());
  const SectionCalls calls = CallsIn(*stated);
  EXPECT_EQ(calls.calls[0].issued.call.bytes, 4u * 4096) << "the total of 4 ranks";
  EXPECT_EQ(calls.calls[1].issued.call.n_ranks, 4);
  EXPECT_EQ(calls.calls[1].issued.rank, 1) << "rank 5 is the second of ranks 4 to 7";
  EXPECT_EQ(CountOf(*stated, "total bytes of an AllGather"), 0u);
  const auto told = ImportText(kMetadata + Collective_(0, 64, Attribute("pg_size", 13, 8)), "", "run.0.et",
                               {.group_size = 4});
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(CallsIn(*told).calls[0].issued.call.n_ranks, 8) << "the file has precedence";
}

TEST(Chakra, HostNodesThatRepeatTheAcceleratorsAreLeftOut) {
  const std::string host = Collective_(0, 64, Attribute("is_cpu_op", 27, 1));
  const std::string device = Collective_(0, 64, Attribute("is_cpu_op", 27, 0));
  const auto both = ImportText(kMetadata + host + device, "chakra");
  ASSERT_TRUE(both);
  EXPECT_EQ(CallsIn(*both).calls.size(), 1u);
  EXPECT_TRUE(both->trace->order_only()) << "no node has a start";
  EXPECT_THAT(both->notes, testing::Contains(HasSubstr("1 communication node of the host")));
  const auto alone = ImportText(kMetadata + host, "chakra");
  ASSERT_TRUE(alone);
  EXPECT_EQ(CallsIn(*alone).calls.size(), 1u);
}

TEST(Chakra, ErrorsSayTheByte) {
  EXPECT_THAT(ErrorOf("", "chakra"), HasSubstr("byte 0: the file is empty"));
  EXPECT_THAT(ErrorOf(kMetadata, "chakra"), HasSubstr("no communication node"));
  EXPECT_THAT(ErrorOf(Collective_(0, 64), "chakra"), HasSubstr("byte 1: the first message is not"));
  EXPECT_THAT(ErrorOf(kMetadata + "\x05", "chakra"), HasSubstr("byte 9: the file ends inside a message"));
  EXPECT_THAT(ErrorOf(kMetadata + "\x02\x12\x05", "chakra"), HasSubstr("byte 11: a field goes past the end"));
  EXPECT_THAT(ErrorOf(kMetadata + std::string(10, '\xff'), "chakra"), HasSubstr("more than 63 bits"));
  EXPECT_THAT(ErrorOf(kMetadata + "\xff\xff\xff\xff\xff\xff\xff\x7f!", "chakra"),
              HasSubstr("byte 17: the file ends inside a message"))
      << "and no memory is asked for";
}

TEST(Chakra, DamagedCopiesNeverCrash) {
  const std::string file = kMetadata + Collective_(0, 64) + Node(4, Bytes(8, "inputs")) +
                           Collective_(5, 4096, Attribute("pg_size", 7, 8) + Number(7, 12)) +
                           Node(5, Attribute("comm_size", 13, 600) + Attribute("comm_dst", 7, 3));
  // A cut after the first, second or third node leaves a valid, shorter file.
  EXPECT_EQ(ImportEveryTruncation(file, "chakra"), file.size() - 3);
  EXPECT_GT(ImportFlippedCopies(file, "chakra", 3000), 500u);
}

}  // namespace
}  // namespace dynamiccl
