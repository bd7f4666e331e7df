// SPDX-License-Identifier: Apache-2.0
// Compares the generators with recorded calls of the frameworks: those in traces/samples/wire_sequences
// (PyTorch and DeepSpeed on two ranks) and a public profile of a ResNet-50 under DDP.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "traces/generators/framework_generator.h"

namespace dynamiccl {
namespace {

struct Call {
  Collective collective;
  DataType data_type;
  ReduceOp op;
  int64_t elements;

  friend bool operator==(const Call&, const Call&) = default;
  friend void PrintTo(const Call& call, std::ostream* out) {
    *out << Name(call.collective) << " " << call.elements << " " << Name(call.data_type) << " "
         << Name(call.op);
  }
};

// ---- the recorded files ----

// Returns the text between `before` and the next '"', ',' or ']'.
std::string Field(const std::string& line, const std::string& before, size_t from = 0) {
  const size_t begin = line.find(before, from);
  if (begin == std::string::npos) return {};
  const size_t at = begin + before.size();
  return line.substr(at, line.find_first_of("\",]", at) - at);
}

Collective CollectiveOf(const std::string& function) {
  if (function.starts_with("all_gather") || function.starts_with("_allgather")) return Collective::kAllGather;
  if (function.starts_with("reduce_scatter") || function.starts_with("_reduce_scatter"))
    return Collective::kReduceScatter;
  if (function.starts_with("broadcast")) return Collective::kBroadcast;
  EXPECT_TRUE(function.starts_with("all_reduce")) << function;
  return Collective::kAllReduce;
}

// Adds a call of a line such as `2x {"ph": "bwd", "fn": "all_reduce", "t": [[789760, "float32"], ...], "op":
// "SUM", ...}`. If there are two tensors, the larger one is the whole.
void AddWrappedCall(const std::string& line, std::vector<Call>& calls) {
  const Collective collective = CollectiveOf(Field(line, "\"fn\": \""));
  const size_t tensors = line.find("\"t\": [[");
  const size_t second = line.find("], [", tensors);
  int64_t elements = std::stoll(Field(line, "\"t\": [["));
  if (second != std::string::npos)
    elements = std::max<int64_t>(elements, std::stoll(Field(line, "], [", tensors)));
  const std::string op = Field(line, "\"op\": \"");
  const Call call{collective, ParseDataType(Field(line, ", \"", tensors)).value(),
                  op.empty() ? ReduceOp::kSum : ParseReduceOp(op).value(), elements};
  calls.insert(calls.end(), std::stoul(line), call);
}

int64_t ProductOf(const std::string& line) {
  int64_t product = 1;
  for (size_t at = line.find("[["); at != std::string::npos && line[at] != ']';
       at = line.find_first_of(",]", at + 1))
    product *= std::stoll(line.substr(line.find_first_of("0123456789", at)));
  return product;
}

// "gloo:all_reduce [[4, 256]]" is an AllReduce of 1024 elements. gloo implements a ReduceScatter by an
// AllReduce, so an AllReduce after a reduce_scatter belongs to it.
void AddProfiledCall(const std::string& line, std::string& pending, std::vector<Call>& calls) {
  const auto starts = [&](const char* text) { return line.starts_with(text); };
  if (starts("c10d::_reduce_scatter")) pending = line;
  if (!starts("gloo:")) return;
  const std::string function = line.substr(5, line.find(' ') - 5);
  if (!pending.empty()) {
    calls.push_back({Collective::kReduceScatter, DataType::kFloat32, ReduceOp::kAvg, ProductOf(line)});
    pending.clear();
    return;
  }
  const Collective collective = CollectiveOf(function);
  calls.push_back({collective, DataType::kFloat32, ReduceOp::kSum,
                   ProductOf(line) * (collective == Collective::kAllGather ? 2 : 1)});
}

struct Recording {
  std::vector<Call> wrapped;   // calls of the framework
  std::vector<Call> profiled;  // calls in the profile; empty without a profile
};

Recording Read(const std::string& name) {
  const std::string path = std::string(DYNAMICCL_SOURCE_DIR) + "/traces/samples/wire_sequences/" + name;
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  Recording recording;
  std::string line, pending;
  while (std::getline(file, line)) {
    if (line.find("x {") != std::string::npos && line.front() != '#')
      AddWrappedCall(line, recording.wrapped);
    else
      AddProfiledCall(line, pending, recording.profiled);
  }
  return recording;
}

// ---- the generators ----

std::vector<Call> Generated(const char* framework, const std::string& model, const SettingTexts& settings,
                            size_t step = 2) {
  const auto shape = ParseModel(model);
  EXPECT_TRUE(shape) << shape.error().message;
  const auto run = GenerateRun(framework, *shape, {.data = 2}, settings, static_cast<int>(step) + 1);
  EXPECT_TRUE(run) << run.error().message;
  std::vector<Call> calls;
  for (const WireOperation& operation : run->steps[step])
    calls.push_back({operation.collective, operation.data_type, operation.op, operation.elements});
  return calls;
}

const std::string kModel = "gpt:layers=4,hidden=256,vocabulary=8192,sequence=64";
const SettingTexts kSmallBuckets = {{"reduce_bucket_size", "1000000"}};

SettingTexts With(SettingTexts texts, const SettingTexts& more) {
  texts.insert(more.begin(), more.end());
  return texts;
}

TEST(GoldenSequences, TheModelIsTheRecordedOne) {
  EXPECT_EQ(ParseModel(kModel)->Elements(), 7'370'240);
  EXPECT_EQ(ParseModel(kModel)->parameters.size(), 53u);
}

TEST(GoldenSequences, DistributedDataParallel) {
  EXPECT_EQ(Generated("ddp", kModel, {}), Read("trace_pt_ddp_n2.txt").profiled);
  EXPECT_EQ(Generated("ddp", kModel, {{"bucket_bytes", "4194304"}}),
            Read("trace_pt_ddp_small_n2.txt").profiled);
}

// The numbers are those of a middle step in traces/samples/ddp_resnet_2_ranks.pt.trace.json.
TEST(GoldenSequences, DistributedDataParallelOfAResnet) {
  const auto broadcast = [](DataType type, int64_t elements) {
    return Call{Collective::kBroadcast, type, ReduceOp::kSum, elements};
  };
  std::vector<Call> expected = {broadcast(DataType::kFloat32, 53'120), broadcast(DataType::kInt64, 53)};
  for (const int64_t elements : {2'049'000, 7'875'584, 6'563'840, 6'637'568, 2'431'040})
    expected.push_back({Collective::kAllReduce, DataType::kFloat32, ReduceOp::kSum, elements});
  EXPECT_EQ(Generated("ddp", "resnet:depth=50", {}), expected);
}

TEST(GoldenSequences, ZeroRedundancyOptimizer) {
  const Recording recording = Read("trace_pt_zero1_n2.txt");
  EXPECT_EQ(Generated("zero-redundancy", kModel, {}), recording.profiled);
  const std::vector<Call> all = Generated("zero-redundancy", kModel, {});
  EXPECT_EQ(std::vector<Call>(all.begin() + 2, all.end()), recording.wrapped);  // without the two AllReduces
}

TEST(GoldenSequences, Fsdp2) {
  const Recording recording = Read("trace_pt_fsdp2_n2.txt");
  EXPECT_EQ(Generated("fsdp2", kModel, {}), recording.profiled);
  EXPECT_EQ(Generated("fsdp2", kModel, {{"clip", "false"}}), recording.wrapped);
}

TEST(GoldenSequences, DeepSpeedStage1) {
  EXPECT_EQ(Generated("deepspeed1", kModel, {{"dtype", "float32"}}), Read("trace_ds_s1_n2.txt").wrapped);
  EXPECT_EQ(Generated("deepspeed1", kModel, kSmallBuckets), Read("trace_ds_s1_small_bf16_n2.txt").wrapped);
  EXPECT_EQ(Generated("deepspeed1", kModel, With(kSmallBuckets, {{"accumulation_steps", "2"}})),
            Read("trace_ds_s1_small_bf16_accum2_n2.txt").wrapped);
}

TEST(GoldenSequences, DeepSpeedStage2) {
  EXPECT_EQ(Generated("deepspeed2", kModel, kSmallBuckets), Read("trace_ds_s2_small_bf16_n2.txt").wrapped);
  EXPECT_EQ(Generated("deepspeed2", kModel, With(kSmallBuckets, {{"accumulation_steps", "2"}})),
            Read("trace_ds_s2_small_bf16_ov_accum2_n2.txt").wrapped);
}

TEST(GoldenSequences, DeepSpeedStage3) {
  EXPECT_EQ(Generated("deepspeed3", kModel, {}), Read("trace_ds_s3_bf16_n2.txt").wrapped);
  EXPECT_EQ(Generated("deepspeed3", kModel,
                      With(kSmallBuckets, {{"prefetch_bucket_size", "1000000"},
                                           {"max_live_parameters", "2000000"},
                                           {"max_reuse_distance", "500000"}})),
            Read("trace_ds_s3_small_bf16_n2.txt").wrapped);
}

}  // namespace
}  // namespace dynamiccl
