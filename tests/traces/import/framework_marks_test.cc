// SPDX-License-Identifier: Apache-2.0
// A framework must be named if a file has names that only this framework writes, and in no other case.
#include "traces/import/framework_marks.h"

#include <gtest/gtest.h>

#include "tests/traces/import/damaged_copies.h"
#include "tests/traces/import/import_data.h"

namespace dynamiccl {
namespace {

using Marks = std::vector<FrameworkMark>;

TEST(FrameworkMarks, NamesOfEventsAndFrames) {
  const std::pair<const char*, FrameworkMark> named[] = {
      {"DistributedDataParallel.forward", {"PyTorch DDP", "DistributedDataParallel.forward"}},
      {"torch.distributed.ddp.reducer::copy_bucket_to_grad",
       {"PyTorch DDP", "torch.distributed.ddp.reducer::copy_bucket_to_grad"}},
      {"FSDP::pre_forward (layers.0)", {"PyTorch FSDP", "FSDP::pre_forward"}},
      {"FullyShardedDataParallel._pre_forward", {"PyTorch FSDP", "FullyShardedDataParallel._pre_forward"}},
      {"nn.Module: DeepSpeedEngine_0", {"DeepSpeed", "nn.Module: DeepSpeedEngine_0"}},
      {"deepspeed/runtime/engine.py(2000): forward", {"DeepSpeed", "deepspeed/runtime/engine.py"}},
      {"/opt/megatron/core/pipeline_parallel/schedules.py(1): forward_step",
       {"Megatron-Core", "megatron/core/pipeline_parallel/schedules.py"}}};
  for (const auto& [name, mark] : named) {
    FrameworkMarks marks;
    marks.NoteName(name);
    EXPECT_EQ(marks.marks(), Marks{mark}) << name;
  }
}

TEST(FrameworkMarks, OtherNamesShowNothing) {
  FrameworkMarks marks;
  for (const char* const name :
       {"aten::add", "forward", "nn.Module: DistributedDataParallel_0",
        "/home/me/deepspeed/train.py(3): main", "/home/me/notdeepspeed/runtime/engine.py(3): main",
        "DistributedDataParallel", "", "x.py("})
    marks.NoteName(name);
  for (const char* const group : {"default_pg", "mesh_dp", "undefined", "", "tensor_model_parallel_group"})
    marks.NoteGroup(group);
  EXPECT_EQ(marks.marks(), Marks{});
}

TEST(FrameworkMarks, GroupsOfMegatronAndTheFirstNameOfEach) {
  FrameworkMarks marks;
  marks.NoteGroup("DATA_PARALLEL_GROUP_WITH_CP");
  marks.NoteGroup("TENSOR_MODEL_PARALLEL_GROUP");
  marks.NoteFile("/opt/torch/distributed/fsdp/_runtime_utils.py");
  EXPECT_EQ(marks.marks(), (Marks{{"Megatron-Core", "DATA_PARALLEL_GROUP_WITH_CP"},
                                  {"PyTorch FSDP", "torch/distributed/fsdp/_runtime_utils.py"}}));
}

TEST(FrameworkMarks, FramesOfAFlightRecorder) {
  std::string text = ContentOf(DYNAMICCL_SOURCE_DIR "/traces/samples/flight_recorder_rank_1.json");
  EXPECT_EQ(ImportText(text, "flight-recorder", "trace_rank_1")->frameworks, Marks{});
  const std::string entry = "{\"collective_seq_id\":1,";
  text.replace(
      text.find(entry), entry.size(),
      entry + R"("frames":[{"name":"forward","filename":"/v/torch/nn/parallel/distributed.py","line":9}],)");
  EXPECT_EQ(ImportText(text, "flight-recorder", "trace_rank_1")->frameworks,
            (Marks{{"PyTorch DDP", "torch/nn/parallel/distributed.py"}}));
}

TEST(FrameworkMarksData, ProfilesAndExecutionTracesOfDdp) {
  for (const char* const name :
       {"hta-kineto/nccl_parser_config_nccl_data.json.gz",
        "hta-kineto/timeline_analysis_sampled_rank-0.json.gz", "param-traces/resnet_2gpu_et.json.gz"}) {
    DYNAMICCL_NEED_DATA(path, name);
    const auto imported = ImportFile(path, "");
    ASSERT_TRUE(imported) << imported.error().message;
    ASSERT_EQ(imported->frameworks.size(), 1u) << name;
    EXPECT_EQ(imported->frameworks[0].framework, "PyTorch DDP") << name;
  }
}

}  // namespace
}  // namespace dynamiccl
