// SPDX-License-Identifier: Apache-2.0
// Compares the generators with AICB's published workloads (github.com/aliyun/aicb, workload/). Other people
// made these from the sources of the same frameworks. $DYNAMICCL_DATA names the folder that contains aicb/.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>

#include "tests/traces/import/import_data.h"
#include "traces/generators/framework_generator.h"

namespace dynamiccl {
namespace {

struct Row {
  Collective collective;
  int64_t bytes;
  std::string part;  // "forward", "backward", "step", "forward_step"

  // The part is not compared, because AICB counts the last bucket of a backward pass under "step".
  friend bool operator==(const Row& a, const Row& b) {
    return a.collective == b.collective && a.bytes == b.bytes;
  }
  friend void PrintTo(const Row& row, std::ostream* out) {
    *out << Name(row.collective) << " " << row.bytes << " " << row.part;
  }
};

// Reads the rows of one group, such as
// "CommType.all_gather,CommGroup.dp_group,128,8192,forward.allgather_fn,...". Leaves out rows of the
// construction and rows without a collective.
std::vector<Row> Read(const std::string& path, const std::string& group) {
  std::vector<Row> rows;
  const gzFile file = gzopen(path.c_str(), "r");
  char buffer[1024];
  while (file != nullptr && gzgets(file, buffer, sizeof buffer) != nullptr) {
    std::vector<std::string> fields(1);
    for (const char* c = buffer; *c != '\0'; ++c) {
      if (*c == ',')
        fields.emplace_back();
      else
        fields.back() += *c;
    }
    if (fields.size() < 5 || fields[1] != "CommGroup." + group || fields[4].starts_with("init")) continue;
    const auto collective = ParseCollective(fields[0].substr(fields[0].find('.') + 1));
    if (!collective) continue;
    rows.push_back({*collective, std::stoll(fields[3]), fields[4].substr(0, fields[4].find('.'))});
  }
  if (file != nullptr) gzclose(file);
  return rows;
}

std::vector<Row> Generated(const char* framework, const std::string& model, const WorldShape& world,
                           Axis axis, const SettingTexts& settings) {
  const auto shape = ParseModel(model);
  EXPECT_TRUE(shape) << shape.error().message;
  const auto run = GenerateRun(framework, *shape, world, settings, 1);
  EXPECT_TRUE(run) << run.error().message;
  std::vector<Row> rows;
  for (const WireOperation& operation : run->steps[0]) {
    if (operation.axis == axis)
      rows.push_back({operation.collective, static_cast<int64_t>(operation.Bytes()), "generated"});
  }
  return rows;
}

// AICB writes the first step of stage 3, in which each module's parameters are gathered separately. The parts
// of the step are the forward pass, the backward pass, flags, and parameters that stay gathered.
TEST(SecondWitness, DeepSpeedStage3OfLlama7And13) {
  DYNAMICCL_NEED_DATA(seven, "aicb/L7B-D1-C02_Llama7B_zero3_mbs1.csv.gz");
  DYNAMICCL_NEED_DATA(thirteen, "aicb/L13B-D1-C04_Llama13B_zero3_mbs1.csv.gz");
  const SettingTexts settings = {{"dtype", "float16"}, {"reduce_bucket_size", "1000000000"}};
  EXPECT_EQ(Generated("deepspeed3", "llama", {.data = 128}, Axis::kData, settings), Read(seven, "dp_group"));
  EXPECT_EQ(Generated("deepspeed3", "llama:layers=40,hidden=5120,feed_forward=13824,key_width=5120",
                      {.data = 128}, Axis::kData, settings),
            Read(thirteen, "dp_group"));
}

// AICB's gather is in pieces, as in releases without all_gather_into_tensor. AICB leaves out the norm.
TEST(SecondWitness, DeepSpeedStage2OfLlama7) {
  DYNAMICCL_NEED_DATA(path, "aicb/L7B-D1-C01_Llama7B_zero2_mbs1.csv.gz");
  std::vector<Row> expected = Read(path, "dp_group");
  int64_t gathered = 0;
  std::erase_if(expected, [&](const Row& row) {
    if (row.collective == Collective::kAllGather) gathered += row.bytes;
    return row.collective == Collective::kAllGather;
  });
  std::vector<Row> rows = Generated("deepspeed2", "llama", {.data = 128}, Axis::kData,
                                    {{"dtype", "float16"}, {"reduce_bucket_size", "1000000000"}});
  ASSERT_GT(rows.size(), 2u);
  const Row gather = rows.back();
  rows.resize(rows.size() - 2);  // drops the norm and the gather
  EXPECT_EQ(rows, expected);
  EXPECT_GE(gathered, gather.bytes);
  EXPECT_LE(gathered, gather.bytes + 6 * 2 * 2 * 128);  // six pieces, each padded to two elements per rank
}

// Compares embedding, layers and loss. AICB differs in four points: it leaves out the collectives of the
// output layer; it counts the gradients of the norms under "step"; it has an AllReduce in the backward pass
// of the embedding; it writes the parts of a layer's backward pass in another order.
TEST(SecondWitness, MegatronSequenceParallelOfGpt13) {
  DYNAMICCL_NEED_DATA(path, "aicb/G13B-M1-C02_GPT13B_megatron_tp8_pp1_mbs1_sp.csv.gz");
  std::vector<Row> expected = Read(path, "tp_group");
  const auto left_out = [](const Row& row) {
    return row.part == "step" || row.collective == Collective::kBroadcast;
  };
  std::erase_if(expected, left_out);
  std::vector<Row> rows =
      Generated("megatron", "gpt:layers=40,hidden=5120,sequence=2048,vocabulary=51200",
                {.data = 16, .tensor = 8}, Axis::kTensor, {{"sequence_parallel", "true"}});
  std::erase_if(rows, left_out);
  constexpr std::ptrdiff_t kHead = 1 + 2 * 2 * 40, kLoss = 3;  // the head comes after embedding and layers
  ASSERT_EQ(rows.size(), expected.size() + 4);
  rows.pop_back();  // the gradients of the norms
  rows.erase(rows.begin() + kHead + 1 + kLoss, rows.begin() + kHead + 1 + kLoss + 2);
  rows.erase(rows.begin() + kHead);
  const Row embedding = rows.back();
  EXPECT_EQ(embedding, (Row{Collective::kAllGather, expected.back().bytes, ""}));
  rows.back() = expected.back();
  const std::ptrdiff_t forward = kHead + kLoss;
  EXPECT_TRUE(std::equal(rows.begin(), rows.begin() + forward, expected.begin()));
  EXPECT_TRUE(
      std::is_permutation(rows.begin() + forward, rows.end(), expected.begin() + forward, expected.end()));
}

}  // namespace
}  // namespace dynamiccl
