// SPDX-License-Identifier: Apache-2.0
// Tests with random models what must hold for every generator. Volumes must follow the paper's formulas,
// every gradient must be reduced as often as intended, and buckets must keep their limits. Ranks must agree,
// and wrong input must be an error.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "traces/format/trace_calls.h"
#include "traces/format/trace_merge.h"
#include "traces/format/trace_reader.h"
#include "traces/format/trace_writer.h"
#include "traces/generators/generated_trace.h"
#include "traces/generators/gradient_buckets.h"

namespace dynamiccl {
namespace {

constexpr int kCases = 300;

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Coin() { return Between(0, 1) == 1; }
  template <typename T>
  T Of(std::initializer_list<T> values) {
    return values.begin()[Between(0, static_cast<int64_t>(values.size()) - 1)];
  }

 private:
  std::mt19937_64 engine_;
};

ModelShape Model(const std::string& text) {
  const auto model = ParseModel(text);
  EXPECT_TRUE(model) << model.error().message;
  return *model;
}

ModelShape RandomModel(Dice& dice) {
  const int64_t layers = dice.Between(1, 4), hidden = 8 * dice.Between(1, 12);
  const std::string sizes =
      fmt::format("layers={},hidden={},vocabulary={},sequence=16", layers, hidden, 8 * dice.Between(1, 40));
  switch (dice.Between(0, 4)) {
    case 0:
      return Model("gpt:" + sizes);
    case 1:
      return Model("bert:" + sizes);
    case 2:
      return Model(fmt::format("llama:{},feed_forward={},key_width={}", sizes, 3 * hidden, hidden));
    case 3:
      return Model("resnet:depth=18,width=8,classes=10");
    default:
      break;
  }
  ModelShape model{"list", {}, 0, 0, {}};
  for (int64_t i = dice.Between(1, 20); i > 0; --i)
    model.parameters.push_back({fmt::format("{}.{}.weight", dice.Coin() ? "a" : "b", 20 - i),
                                {dice.Between(1, 40), dice.Between(1, 40)}});
  return model;
}

GeneratedRun RunOf(const char* framework, const ModelShape& model, const WorldShape& world,
                   const SettingTexts& settings = {}) {
  const auto run = GenerateRun(framework, model, world, settings, 3);
  EXPECT_TRUE(run) << framework << ": " << (run ? "" : run.error().message);
  return run ? *run : GeneratedRun{};
}

int64_t Elements(const std::vector<WireOperation>& operations, Role role, Axis axis = Axis::kData) {
  int64_t sum = 0;
  for (const WireOperation& operation : operations) {
    if (operation.role == role && operation.axis == axis) sum += operation.elements;
  }
  return sum;
}

// Returns the volume in elements. An AllReduce counts twice, because it passes over the ring twice.
int64_t Volume(const std::vector<WireOperation>& operations) {
  int64_t sum = 0;
  for (const WireOperation& operation : operations) {
    if (operation.role == Role::kScalar || operation.role == Role::kOther) continue;
    sum += operation.elements * (operation.collective == Collective::kAllReduce ? 2 : 1);
  }
  return sum;
}

size_t Count(const std::vector<WireOperation>& operations, Collective collective, Phase phase) {
  return static_cast<size_t>(std::count_if(operations.begin(), operations.end(), [&](const WireOperation& o) {
    return o.collective == collective && o.phase == phase && o.role == Role::kActivation;
  }));
}

// ---- labels ----

TEST(GeneratorInvariants, AnAllReduceThatCannotBeToldFromAScalarIsOne) {
  const auto at_most = static_cast<int64_t>(kTinyBytes / sizeof(float));
  OperationList list;
  for (const int64_t elements : {at_most, at_most + 1})
    list.AllReduce(elements, DataType::kFloat32, ReduceOp::kSum, Role::kGradientReduce);
  list.ReduceScatter(at_most, DataType::kFloat32, ReduceOp::kSum, Role::kGradientReduce);
  const std::vector<WireOperation> operations = list.Take();
  EXPECT_EQ(operations[0].role, Role::kScalar);
  EXPECT_EQ(operations[1].role, Role::kGradientReduce);
  EXPECT_EQ(operations[2].role, Role::kGradientReduce) << "no scalar is scattered";
}

// ---- formulas ----

TEST(GeneratorInvariants, VolumesFollowTheFormulas) {
  struct Row {
    const char* framework;
    SettingTexts settings;
    int64_t psi;  // volume of a step, as a multiple of the model's parameters
  };
  const Row rows[] = {
      {"ddp", {}, 2},
      {"zero-redundancy", {}, 3},
      {"deepspeed1", {}, 3},  // it has an AllReduce in place of the paper's ReduceScatter
      {"deepspeed2", {}, 3},
      {"deepspeed3",
       {{"max_reuse_distance", "0"}, {"param_persistence_threshold", "0"}, {"prefetch_bucket_size", "0"}},
       3},
      {"fsdp2", {{"reshard_root", "true"}, {"clip", "false"}}, 3},
      {"fsdp2", {{"reshard_after_forward", "false"}, {"clip", "false"}}, 2},
      {"megatron", {}, 2},
      {"megatron", {{"use_distributed_optimizer", "false"}}, 2},
      {"colossalai", {}, 3},
      {"colossalai", {{"stage", "2"}}, 2},
      {"zero-paper", {{"stage", "1"}}, 2},
      {"zero-paper", {{"stage", "2"}}, 2},
      {"zero-paper", {{"stage", "3"}}, 3},
  };
  for (int seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(static_cast<uint64_t>(seed));
    const Row& row = rows[dice.Between(0, std::ssize(rows) - 1)];
    const ModelShape model = RandomModel(dice);
    const int ranks = static_cast<int>(dice.Between(1, 7));
    const int64_t volume = Volume(RunOf(row.framework, model, {.data = ranks}, row.settings).steps[2]);
    // FSDP2 pads the first dimensions of parameters. Megatron-LM pads parameters to 64, and the end to a
    // multiple of 128 and of the ranks. The other frameworks pad each parameter or only the end to the number
    // of ranks.
    int64_t padding = 128 * ranks;
    for (const ParameterShape& parameter : model.parameters)
      padding += 64 + ranks * (1 + parameter.Elements() / parameter.dims.front());
    EXPECT_GE(volume, row.psi * model.Elements()) << row.framework;
    EXPECT_LE(volume, row.psi * (model.Elements() + padding)) << row.framework;
    if (row.framework == std::string("ddp")) {
      EXPECT_EQ(volume, 2 * model.Elements());
    }
  }
}

TEST(GeneratorInvariants, EveryGradientIsReducedOnceAMicroStepOrOnceAStep) {
  const ModelShape model = Model("gpt:layers=2,hidden=32,vocabulary=64,sequence=16");
  const auto reduced = [&](const char* framework, const SettingTexts& settings) {
    return Elements(RunOf(framework, model, {.data = 1}, settings).steps[2], Role::kGradientReduce);
  };
  const int64_t psi = model.Elements();
  const SettingTexts thrice = {{"accumulation_steps", "3"}};
  EXPECT_EQ(reduced("ddp", thrice), psi);
  EXPECT_EQ(reduced("ddp", {{"accumulation_steps", "3"}, {"no_sync", "false"}}), 3 * psi);
  EXPECT_EQ(reduced("deepspeed1", thrice), psi);
  EXPECT_EQ(reduced("deepspeed2", thrice), 3 * psi);
  EXPECT_EQ(reduced("deepspeed2", {{"use_multi_rank_bucket_allreduce", "false"}}), psi);
  EXPECT_EQ(reduced("deepspeed3", thrice), 3 * psi);
  EXPECT_EQ(reduced("fsdp2", thrice), psi);
  EXPECT_EQ(reduced("fsdp2", {{"accumulation_steps", "3"}, {"gradient_sync", "every"}}), 3 * psi);
  EXPECT_EQ(reduced("colossalai", thrice), psi);
  EXPECT_EQ(reduced("colossalai", {{"accumulation_steps", "3"}, {"stage", "2"}}), 3 * psi);
}

TEST(GeneratorInvariants, DdpSendsOneBucketFirstThenAgreesOnNewOnes) {
  const ModelShape model = Model("gpt:layers=4,hidden=256,vocabulary=8192,sequence=64");
  const GeneratedRun run = RunOf("ddp", model, {.data = 2});
  EXPECT_EQ(run.steps[0].size(), 1u);
  ASSERT_EQ(run.steps[1].size(), 4u);
  EXPECT_EQ(run.steps[1][0].elements, 54);  // 53 parameters and the number of buckets
  EXPECT_EQ(run.steps[1][1].elements, 2);
  EXPECT_EQ(run.steps[2].size(), 2u);
  const GeneratedRun unused = RunOf("ddp", model, {.data = 2}, {{"find_unused_parameters", "true"}});
  EXPECT_EQ(unused.steps[0], unused.steps[2]);
  EXPECT_EQ(unused.steps[0].back().elements, 53);
}

// ---- buckets ----

TEST(GeneratorInvariants, BucketsKeepTheirLimitsAndTheOrder) {
  for (int seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(static_cast<uint64_t>(seed));
    std::vector<int64_t> sizes;
    for (int64_t i = dice.Between(0, 30); i > 0; --i) sizes.push_back(dice.Between(1, 100));
    const int64_t cap = dice.Between(1, 200), first = dice.Between(1, 200);
    size_t next = 0;
    const auto in_order = [&](const Bucket& bucket) {
      for (const size_t position : bucket) EXPECT_EQ(position, next++);
    };
    const auto within = BucketsWithin(sizes, cap);
    for (size_t b = 0; b < within.size(); ++b) {
      in_order(within[b]);
      EXPECT_TRUE(within[b].size() == 1 || SumOf(within[b], sizes) <= cap);
      if (b + 1 < within.size()) {
        EXPECT_GT(SumOf(within[b], sizes) + sizes[within[b + 1].front()], cap);
      }
    }
    EXPECT_EQ(next, sizes.size());
    next = 0;
    const auto reaching = BucketsThatReach(sizes, first, cap);
    for (size_t b = 0; b < reaching.size(); ++b) {
      in_order(reaching[b]);
      const int64_t limit = b == 0 ? first : cap, sum = SumOf(reaching[b], sizes);
      EXPECT_TRUE(sum >= limit || b + 1 == reaching.size());
      EXPECT_LT(sum - sizes[reaching[b].back()], limit);
    }
    EXPECT_EQ(next, sizes.size());
  }
}

// ---- DeepSpeed stage 3 ----

TEST(GeneratorInvariants, DeepSpeedGathersWhatIsUsedAndNoMoreThanTwice) {
  for (int seed = 0; seed < kCases; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(static_cast<uint64_t>(seed));
    const ModelShape model = RandomModel(dice);
    const int64_t threshold = dice.Between(0, 500);
    int64_t partitioned = 0;
    for (const ParameterShape& parameter : model.parameters)
      partitioned += parameter.Elements() > threshold ? parameter.Elements() : 0;
    const GeneratedRun run = RunOf("deepspeed3", model, {.data = 1},
                                   {{"param_persistence_threshold", fmt::format("{}", threshold)},
                                    {"prefetch_bucket_size", fmt::format("{}", dice.Between(0, 5000))},
                                    {"max_live_parameters", fmt::format("{}", dice.Between(1, 20000))},
                                    {"max_reuse_distance", fmt::format("{}", dice.Between(0, 10000))}});
    EXPECT_EQ(Elements(run.steps[0], Role::kParameterGather), 2 * model.Elements());  // recording: every use
    const int64_t gathered = Elements(run.steps[2], Role::kParameterGather);
    EXPECT_GE(gathered, partitioned);
    EXPECT_LE(gathered, 2 * partitioned);
    EXPECT_EQ(run.steps[1].size(), run.steps[2].size() + 3);  // the ranks compare what they recorded
  }
}

// ---- hybrid sharding, tensor parallelism ----

TEST(GeneratorInvariants, HybridShardingReducesBetweenTheCopies) {
  const ModelShape model = Model("gpt:layers=3,hidden=64,vocabulary=512,sequence=16");
  const WorldShape world{.data = 8, .shard = 4};
  for (const auto& [framework, settings] :
       {std::pair{"fsdp2", SettingTexts{}}, std::pair{"deepspeed3", SettingTexts{{"hybrid", "mics"}}}}) {
    const GeneratedRun run = RunOf(framework, model, world, settings);
    const int64_t scattered = Elements(run.steps[2], Role::kGradientReduce, Axis::kShard);
    EXPECT_EQ(scattered, model.Elements()) << framework;  // all sizes can be divided by 4
    EXPECT_EQ(Elements(run.steps[2], Role::kGradientReduce, Axis::kReplicate), scattered / 4) << framework;
    EXPECT_EQ(Elements(run.steps[2], Role::kParameterGather, Axis::kData), 0) << framework;
  }
  const GeneratedRun hpz =
      RunOf("deepspeed3", model, world, {{"hybrid", "hpz"}, {"max_reuse_distance", "0"}});
  for (const WireOperation& operation : hpz.steps[0]) {
    if (operation.role != Role::kParameterGather) continue;
    EXPECT_EQ(operation.axis, operation.phase == Phase::kForward ? Axis::kData : Axis::kShard);
  }
}

TEST(GeneratorInvariants, MegatronsActivationsCountAsItsLayersDo) {
  const ModelShape model =
      Model("gpt:layers=5,hidden=64,vocabulary=512,sequence=128");  // no activation looks like a scalar
  const WorldShape world{.data = 2, .tensor = 4};
  const auto plain = RunOf("megatron", model, world).steps[2];
  EXPECT_EQ(Count(plain, Collective::kAllReduce, Phase::kForward), 1u + 2 * 5 + 3);
  EXPECT_EQ(Count(plain, Collective::kAllReduce, Phase::kBackward), 1u + 2 * 5);
  const auto split = RunOf("megatron", model, world, {{"sequence_parallel", "true"}}).steps[2];
  EXPECT_EQ(Count(split, Collective::kAllGather, Phase::kForward), 2u * 5 + 1);
  EXPECT_EQ(Count(split, Collective::kReduceScatter, Phase::kForward), 2u * 5);
  EXPECT_EQ(Count(split, Collective::kAllGather, Phase::kBackward), 4u * 5 + 1 + 1);
  EXPECT_EQ(Count(split, Collective::kReduceScatter, Phase::kBackward), 2u * 5 + 1);
  const auto saved =
      RunOf("megatron", model, world,
            {{"recompute", "full"}, {"distribute_saved_activations", "true"}, {"micro_batch", "2"}})
          .steps[2];
  EXPECT_EQ(Count(saved, Collective::kAllGather, Phase::kBackward), 5u);  // P_a of the paper
  for (const WireOperation& operation : saved) {
    if (operation.collective == Collective::kAllGather && operation.role == Role::kActivation) {
      EXPECT_EQ(operation.elements, 2 * 128 * 64);
    }
  }
}

TEST(GeneratorInvariants, MegatronsOverlapMovesCallsAndChangesNone) {
  const ModelShape model = Model("gpt:layers=6,hidden=64,vocabulary=512,sequence=16");
  const SettingTexts buckets = {{"overlap_grad_reduce", "true"}, {"bucket_size", "60000"}};
  SettingTexts overlapped = buckets;
  overlapped["overlap_param_gather"] = "true";
  for (const int tensor : {1, 2}) {
    const WorldShape world{.data = 3, .tensor = tensor};
    const auto gathers = [&](const SettingTexts& settings) {
      const GeneratedRun run = RunOf("megatron", model, world, settings);
      std::vector<int64_t> sizes;
      for (const WireOperation& operation : run.steps[2]) {
        if (operation.role == Role::kPostStepGather) sizes.push_back(operation.elements);
      }
      return sizes;
    };
    EXPECT_GT(gathers(buckets).size(), 2u);
    EXPECT_EQ(gathers(buckets), gathers(overlapped));
    const GeneratedRun run = RunOf("megatron", model, world, overlapped);
    EXPECT_EQ(Elements(run.steps[0], Role::kPostStepGather), 0);  // no step has updated anything yet
    for (const WireOperation& operation : run.steps[2]) {
      if (operation.role == Role::kPostStepGather) {
        EXPECT_EQ(operation.phase, Phase::kForward);
      }
    }
  }
}

TEST(GeneratorInvariants, LlmcSendsTheTensorsOfItsModelInGroups) {
  const ModelShape model = Model("gpt:layers=3,hidden=64,vocabulary=512,sequence=16,tied_head=true");
  const GeneratedRun run = RunOf("llmc", model, {.data = 4});
  EXPECT_EQ(Elements(run.steps[2], Role::kGradientReduce), model.Elements());
  EXPECT_EQ(Elements(run.steps[2], Role::kPostStepGather), model.Elements());
  EXPECT_EQ(run.steps[2].front().group_size, 12);
  EXPECT_EQ(run.steps[2].size(), 3u * 12 + 1 + 4 + 1 + 12 * 3 + 4);
}

// ---- traces ----

TEST(GeneratorInvariants, TracesOfAllRanksAgreeAndAreWhole) {
  const char* const frameworks[] = {"ddp",   "zero-redundancy", "deepspeed1", "deepspeed2", "deepspeed3",
                                    "fsdp2", "megatron",        "colossalai", "zero-paper", "dynamiccl-zero"};
  for (int seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(static_cast<uint64_t>(seed));
    const char* const framework = frameworks[dice.Between(0, std::ssize(frameworks) - 1)];
    const ModelShape model = RandomModel(dice);
    WorldShape world{.data = static_cast<int>(dice.Between(1, 7))};
    if (framework == std::string("megatron") && model.transformer) world.tensor = dice.Of({1, 2, 4});
    if (framework == std::string("fsdp2") && world.data % 2 == 0) world.shard = world.data / 2;
    const GeneratedRun run = RunOf(framework, model, world);
    for (const auto& step : run.steps) {
      for (const WireOperation& operation : step) {
        EXPECT_GT(operation.elements, 0);
        EXPECT_NE(operation.role, Role::kUnknown);
        EXPECT_NE(operation.phase, Phase::kUnknown);
        EXPECT_LT(operation.root, world.RanksOn(operation.axis));
        const bool parts = operation.collective == Collective::kAllGather ||
                           operation.collective == Collective::kReduceScatter;
        if (parts) {
          EXPECT_EQ(operation.elements % world.RanksOn(operation.axis), 0);
        }
      }
    }
    const int nodes = static_cast<int>(dice.Between(0, 3));
    const Trace trace = TraceOf(run, nodes);
    const Status agree = CheckRanksAgree(trace);
    EXPECT_TRUE(agree) << agree.error().message;
    std::map<uint64_t, std::set<int32_t>> members;
    std::map<uint64_t, int32_t> sizes;
    for (const TraceSection& section : trace.sections) {
      const SectionCalls calls = CallsOf(section);
      EXPECT_EQ(calls.without_communicator, 0u);
      EXPECT_EQ(calls.steps.size(), 3u);
      for (const TraceCall& call : calls.calls) EXPECT_NE(call.issued.coverage, Coverage::kUnknown);
      for (const auto& [number, info] : calls.communicators) {
        EXPECT_TRUE(members[info.id].insert(info.rank).second);
        sizes[info.id] = info.n_ranks;
      }
    }
    for (const auto& [id, ranks] : members) EXPECT_EQ(std::ssize(ranks), sizes[id]);
    const auto read = ParseTrace(FormatTrace(trace), "trace", TraceReading::kStrict);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, TraceOf(RunOf(framework, model, world), nodes));  // the same input gives the same trace
  }
}

// ---- wrong input ----

std::string ErrorOf(const char* framework, const ModelShape& model, const WorldShape& world,
                    const SettingTexts& settings) {
  const auto run = GenerateRun(framework, model, world, settings, 1);
  return run ? "no error" : run.error().message + " | " + run.error().hint;
}

TEST(GeneratorErrors, SayWhatAndWhere) {
  const ModelShape model = Model("gpt:layers=2,hidden=24,vocabulary=512,sequence=16");
  const auto has = [&](const char* framework, const WorldShape& world, const SettingTexts& settings,
                       const char* text) {
    const std::string error = ErrorOf(framework, model, world, settings);
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  has("fsdp3", {}, {}, "one of: ddp,");
  has("ddp", {}, {{"bucket_mb", "25"}}, "no setting 'bucket_mb'");
  has("ddp", {}, {{"bucket_bytes", "25M"}}, "not a whole number from 1 to");
  has("ddp", {}, {{"no_sync", "yes"}}, "not true or false");
  has("ddp", {}, {{"dtype", "float12"}}, "not a type");
  has("megatron", {}, {{"recompute", "some"}}, "one of none,full");
  has("ddp", {.data = 4, .tensor = 2}, {}, "has no tensor parallelism");
  has("deepspeed2", {.data = 4, .shard = 2}, {}, "has no hybrid sharding");
  has("fsdp2", {.data = 4, .shard = 3}, {}, "does not divide 4");
  has("fsdp2", {.data = 0}, {}, "less than one rank");
  has("fsdp2", {.data = 40000}, {}, "at most 32767");
  has("deepspeed3", {.data = 4, .shard = 2}, {}, "hybrid=none");
  has("megatron", {.data = 2, .tensor = 5}, {}, "does not divide by 5");
  has("megatron", {}, {{"sequence_parallel", "true"}}, "one tensor-parallel rank");
  has("llmc", {}, {}, "gpt:tied_head=true");
  has("dynamiccl-zero", {.data = 4, .tensor = 2}, {}, "has no tensor parallelism");
  has("dynamiccl-zero", {.data = 4, .shard = 2}, {}, "stage 0 divides nothing");
  has("dynamiccl-zero", {}, {{"exchange", "owner"}}, "in stage 0 every rank owns everything");
  has("dynamiccl-zero", {}, {{"exchange", "all_reduce"}}, "is for stages 1 and 2");
  has("dynamiccl-zero", {}, {{"unit", "parameter"}, {"unit_blocks", "2"}}, "unit_blocks is for unit=block");
  has("dynamiccl-zero", {}, {{"stage", "3"}, {"exchange", "all_reduce"}}, "is for stages 1 and 2");
  has("dynamiccl-zero", {}, {{"stage", "1"}, {"accumulation", "sharded"}}, "is for stages 2 and 3");
  has("dynamiccl-zero", {.data = 4}, {{"stage", "3"}, {"hybrid", "hpz"}}, "a --shard-group smaller");
  has("dynamiccl-zero", {.data = 4, .shard = 2}, {{"stage", "2"}, {"hybrid", "hpz"}}, "set stage=3");
  has("dynamiccl-zero", {}, {{"stage", "4"}}, "one of 0,1,2,3");
}

TEST(GeneratorErrors, ModelsFromText) {
  const auto error = [](const char* text) {
    const auto model = ParseModel(text);
    return model ? std::string("no error") : model.error().message + " | " + model.error().hint;
  };
  EXPECT_NE(error("gtp").find("no preset 'gtp'"), std::string::npos);
  EXPECT_NE(error("gpt:layers").find("'layers' is not name=value"), std::string::npos);
  EXPECT_NE(error("gpt:layers=2,layers=3").find("given twice"), std::string::npos);
  EXPECT_NE(error("gpt:heads=2").find("no setting 'heads'"), std::string::npos);
  EXPECT_NE(error("resnet:depth=51").find("18,34,50,101,152"), std::string::npos);
  EXPECT_EQ(Model("resnet:depth=18").Elements(), 11'689'512);  // as torchvision counts
  EXPECT_EQ(Model("resnet:depth=152").Elements(), 60'192'808);
  EXPECT_EQ(Model("gpt:vocabulary=50257,tied_head=true").Elements(), 124'439'808);  // GPT-2
  EXPECT_EQ(Model("bert").Elements(), 109'482'240);                                 // bert-base-uncased
  EXPECT_EQ(Model("llama").Elements(), 6'738'415'616);                              // LLaMA 7B
}

TEST(GeneratorErrors, ParameterLists) {
  const std::string path = testing::TempDir() + "parameters.txt";
  const auto read = [&](const std::string& text) {
    std::FILE* const file = std::fopen(path.c_str(), "w");
    std::fputs(text.c_str(), file);
    std::fclose(file);
    return ReadParameterList(path);
  };
  const auto model = read("# a comment\n\nfc.0.weight 10x20\nfc.0.bias 10\n");
  ASSERT_TRUE(model);
  EXPECT_EQ(model->Elements(), 210);
  for (const char* wrong :
       {"fc.weight", "fc.weight 10y2", "fc.weight 0x2", "a 1\na 1", "a 9999999999x999999", "a 10x", " 10"}) {
    const auto refused = read(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(refused.error().message.find("line "), std::string::npos);
  }
  EXPECT_FALSE(read("# nothing\n"));
  EXPECT_FALSE(ReadParameterList(path + ".missing"));
}

}  // namespace
}  // namespace dynamiccl
