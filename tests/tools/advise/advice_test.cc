// SPDX-License-Identifier: Apache-2.0
// The tests make traces of a known job on a known system. Reading, fitting and predicting must give that job
// again.
#include "tools/advise/advice.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <regex>

#include "src/simulator/event_simulation.h"
#include "tests/traces/any_trace.h"
#include "tools/advise/trainer_options.h"
#include "tools/simulate/step_program.h"
#include "traces/generators/generated_trace.h"

namespace dynamiccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSteps = 6;

System Ethernet() {
  System system{.name = "ethernet", .source = "made up", .ranks_per_node = 1, .max_channels = 1};
  system.path(Algorithm::kRing, Protocol::kSimple) = {60, 0, 80, 0.5, 0.5, 0};
  return system;
}

AdvisedJob Trainer(const SettingTexts& settings, WorldShape world = {2, 1, 0}) {
  AdvisedJob job{.framework = std::string(kTrainer)};
  job.model = *ParseModel("gpt:layers=4,hidden=128,sequence=64,vocabulary=256,head_bias=true");
  job.world = world;
  job.settings = settings;
  return job;
}

Trace Generated(const AdvisedJob& job, int ranks_per_node) {
  const auto run = GenerateRun(job.framework, job.model, job.world, job.settings, kSteps);
  EXPECT_TRUE(run.has_value()) << (run ? "" : run.error().message);
  return run ? TraceOf(*run, ranks_per_node) : Trace{};
}

bool IsCall(const TraceRecord& record) {
  return record.kind == static_cast<uint16_t>(RecordKind::kCollective);
}

// Returns the generated trace with the times that a simulation gives its calls.
Trace Recorded(const AdvisedJob& job, const System& system, const TrainerCompute& compute) {
  Trace trace = Generated(job, system.ranks_per_node);
  SystemDemands demands(system);
  auto program = ProgramOfTrainer(job, compute, kSteps, system.ranks_per_node, demands);
  SimulatedJob simulated;
  simulated.n_ranks = job.world.Ranks();
  simulated.ranks_per_node = system.ranks_per_node;
  simulated.port_gbps = PortGbps(system);
  simulated.network_gbps = NetworkGbps(system);
  simulated.layouts = LayoutsOf(job.world);
  simulated.programs.push_back(std::move(program->program));
  const auto result = Simulate(simulated);
  for (TraceSection& section : trace.sections) {
    section.flags &= ~static_cast<uint32_t>(kTraceOrderOnly);
    size_t call = 0;
    for (TraceRecord& record : section.records) {
      if (!IsCall(record)) continue;
      const CollectiveTiming& timing = result->observed[0].collectives[call++];
      record.issued_ns = timing.issued_ns;
      record.duration_ns = static_cast<uint32_t>(timing.ended_ns - timing.started_ns);
      record.duration_source = static_cast<uint8_t>(DurationSource::kKernelStamps);
      Seal(record);
    }
  }
  return trace;
}

// Removes the labels. The result is like a trace from an importer that knows neither steps nor roles.
Trace WithoutLabels(Trace trace) {
  for (TraceSection& section : trace.sections) {
    std::erase_if(section.records, [](const TraceRecord& record) {
      return record.kind == static_cast<uint16_t>(RecordKind::kStep);
    });
    for (TraceRecord& record : section.records) {
      record.labels = 0;
      record.labelled_stage = static_cast<uint8_t>(ZeroStage::kUnknown);
      Seal(record);
    }
  }
  return trace;
}

const AdvisedChange* Find(const Advice& advice, const std::string& words) {
  for (const AdvisedChange& one : advice.changes)
    if (one.change.what.find(words) != std::string::npos) return &one;
  return nullptr;
}

TEST(RecordedStep, IsFoundByMarksAndByRepetition) {
  const AdvisedJob job = Trainer({{"stage", "3"}, {"bucket_bytes", "262144"}});
  const auto operations = OperationsOf(job);
  const Trace trace = Recorded(job, Ethernet(), {20e6, 1});
  for (const bool marked : {true, false}) {
    const auto step = StepOf(marked ? trace : WithoutLabels(trace));
    ASSERT_TRUE(step.has_value());
    EXPECT_EQ(step->marked, marked);
    EXPECT_EQ(step->operations.size(), operations->size());
    EXPECT_EQ(step->ranks, 2);
    EXPECT_EQ(step->ranks_per_node, 1);
    EXPECT_GE(step->steps, 5u);
    const auto simulated = StepPrediction(Ethernet(), 1).Of(job, {20e6, 1});
    EXPECT_NEAR(static_cast<double>(step->step_ns), static_cast<double>(simulated->step_ns), 2e3);
  }
}

// FSDP2's root stays gathered after the forward pass. In this model it has most of the elements.
TEST(RecognisedJobs, UnitsThatAreGatheredTwiceAreSeenBesideARootThatIsNot) {
  AdvisedJob job{.framework = "fsdp2"};
  job.model = *ParseModel("gpt:layers=4,hidden=128,sequence=64,vocabulary=50000");
  job.world = {2, 1, 0};
  for (const char* const reshard : {"true", "false"}) {
    job.settings = {{"reshard_after_forward", reshard}};
    const auto step = StepOf(WithoutLabels(Generated(job, 2)));
    ASSERT_TRUE(step.has_value());
    const auto recognised = RecogniseJob(*step);
    ASSERT_TRUE(recognised.has_value()) << recognised.error().message;
    EXPECT_EQ(recognised->job.settings.at("reshard_after_forward"), reshard) << recognised->what;
    EXPECT_GT(ShareOfCalls(recognised->job, *step).value_or(0), 0.9) << recognised->what;
  }
}

// One rank comes 5 ms early and waits inside the call. When the other rank comes, the data are already there.
TEST(RecordedStep, TimesBeginWhenTheLastRankComes) {
  const AdvisedJob job = Trainer({{"stage", "0"}, {"bucket_bytes", "17592186044416"}});
  Trace trace = Recorded(job, Ethernet(), {20e6, 1});
  const auto shift = [&](size_t rank, int64_t early_ns, int64_t longer_ns) {
    for (TraceRecord& record : trace.sections[rank].records) {
      if (!IsCall(record) || record.bytes == 8) continue;
      record.issued_ns -= early_ns;
      record.duration_ns = static_cast<uint32_t>(record.duration_ns + longer_ns);
      Seal(record);
    }
  };
  shift(0, 0, -200'000);
  shift(1, 5'000'000, 5'000'000);
  const auto step = StepOf(trace);
  ASSERT_TRUE(step.has_value());
  const CollectiveTimes times(Ethernet(), 2, 2);
  ASSERT_FALSE(step->times.empty());
  for (const TimedCell& cell : step->times)
    EXPECT_NEAR(cell.us, times.Microseconds(cell.collective, cell.bytes, {}), 0.01);
}

TEST(RecordedStep, WithoutCollectivesIsAnError) {
  EXPECT_FALSE(StepOf(Trace{}).has_value());
}

TEST(RecogniseJob, ReadsTheTrainersSettingsOffItsCalls) {
  const std::vector<SettingTexts> cases = {
      {{"stage", "1"}, {"bucket_bytes", "262144"}},
      {{"stage", "2"}, {"bucket_bytes", "100000"}, {"micro_steps", "3"}},
      {{"stage", "2"}, {"dtype", "bfloat16"}, {"reduce_type", "float32"}},
      {{"stage", "1"}, {"bucket_bytes", "262144"}, {"exchange", "all_reduce"}},
      {{"stage", "3"}, {"bucket_bytes", "262144"}, {"prefetch", "false"}},
      {{"stage", "3"}, {"bucket_bytes", "262144"}, {"micro_steps", "2"}},
      {{"stage", "3"}, {"bucket_bytes", "262144"}, {"prefetch_units", "2"}},
      {{"stage", "3"}, {"bucket_bytes", "1000000"}, {"prefetch_units", "3"}, {"micro_steps", "2"}},
      {{"stage", "0"}, {"bucket_bytes", "262144"}},
  };
  for (const SettingTexts& settings : cases) {
    const AdvisedJob job = Trainer(settings);
    const auto step = StepOf(Generated(job, 1));
    ASSERT_TRUE(step.has_value());
    const auto found = RecogniseJob(*step);
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_TRUE(found->job.IsTrainer());
    EXPECT_EQ(SettingOf(found->job, "stage"), SettingOf(job, "stage"));
    EXPECT_EQ(SettingOf(found->job, "dtype"), SettingOf(job, "dtype"));
    EXPECT_DOUBLE_EQ(*ShareOfCalls(found->job, *step), 1) << SettingOf(job, "stage");
  }
}

TEST(RecogniseJob, KnowsHybridSharding) {
  const AdvisedJob job = Trainer({{"stage", "3"}, {"bucket_bytes", "262144"}}, {4, 1, 2});
  const auto step = StepOf(Generated(job, 2));
  const auto found = RecogniseJob(*step);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->job.world.shard, 2);
  EXPECT_DOUBLE_EQ(*ShareOfCalls(found->job, *step), 1);
}

TEST(RecogniseJob, SaysDataParallelismOrShardsWithoutLabels) {
  AdvisedJob ddp = Trainer({{"bucket_bytes", "300000"}, {"broadcast_buffers", "false"}});
  ddp.framework = "ddp";
  const auto reduced = StepOf(WithoutLabels(Generated(ddp, 1)));
  const auto as_ddp = RecogniseJob(*reduced);
  ASSERT_TRUE(as_ddp.has_value()) << as_ddp.error().message;
  EXPECT_EQ(as_ddp->job.framework, "ddp");
  EXPECT_DOUBLE_EQ(*ShareOfCalls(as_ddp->job, *reduced), 1);

  AdvisedJob sharded = Trainer({{"clip", "false"}, {"param_dtype", "bfloat16"}, {"reduce_dtype", "float32"}});
  sharded.framework = "fsdp2";
  const auto gathered = StepOf(WithoutLabels(Generated(sharded, 1)));
  const auto as_fsdp = RecogniseJob(*gathered);
  ASSERT_TRUE(as_fsdp.has_value()) << as_fsdp.error().message;
  EXPECT_EQ(as_fsdp->job.framework, "fsdp2");
  EXPECT_EQ(as_fsdp->job.model.parameters.size(), UnitsOf(sharded.model).size());
}

// The prediction reproduces the recorded step, and it also predicts steps that were not recorded.
TEST(Advise, PredictsWhatWasNotRecorded) {
  const TrainerCompute truth{25e6, 1.2};
  for (const char* const stage : {"1", "2", "3"}) {
    const AdvisedJob job = Trainer({{"stage", stage}, {"bucket_bytes", "1048576"}});
    const auto step = StepOf(Recorded(job, Ethernet(), truth));
    ASSERT_TRUE(step.has_value());
    // The last step has no successor, and a long trace begins with two warm-up steps.
    EXPECT_EQ(step->timed_steps, step->steps - (step->steps > 4 ? 3 : 1));
    RecognisedJob known;
    known.job = job;
    const auto advice = Advise(*step, known, Ethernet(), 0);
    ASSERT_TRUE(advice.has_value()) << advice.error().message;
    EXPECT_DOUBLE_EQ(advice->share_of_calls, 1);
    EXPECT_NEAR(static_cast<double>(advice->simulated.step_ns), static_cast<double>(step->step_ns), 1e4);
    EXPECT_GT(advice->changes.size(), 8u);
    for (const AdvisedChange& one : advice->changes) {
      const auto direct = StepPrediction(Ethernet(), 1).Of(one.change.job, truth);
      EXPECT_NEAR(static_cast<double>(one.predicted.step_ns) / static_cast<double>(direct->step_ns), 1, 0.01)
          << "stage " << stage << ": " << one.change.what;
    }
  }
}

TEST(Advise, OrdersByGainAndTellsWhatItCosts) {
  const AdvisedJob job =
      Trainer({{"stage", "2"}, {"bucket_bytes", "65536"}, {"dtype", "bfloat16"}, {"reduce_type", "float32"}});
  RecognisedJob known;
  known.job = job;
  const auto advice = Advise(*StepOf(Recorded(job, Ethernet(), {5e6, 1})), known, Ethernet(), 0);
  ASSERT_TRUE(advice.has_value()) << advice.error().message;
  for (size_t i = 1; i < advice->changes.size(); ++i)
    EXPECT_LE(advice->changes[i - 1].predicted.step_ns, advice->changes[i].predicted.step_ns);
  const AdvisedChange* const halves = Find(*advice, "reduce_type float32 -> bfloat16");
  ASSERT_NE(halves, nullptr);
  EXPECT_LT(halves->predicted.step_ns, advice->simulated.step_ns);
  EXPECT_FALSE(halves->change.remark.empty());
  EXPECT_EQ(halves->change.how, "--reduce-type model");
  // Stage 3 keeps only half of the 16-bit parameters, and it holds the gathered root and two blocks.
  const AdvisedChange* const shards = Find(*advice, "stage 2 -> 3");
  ASSERT_NE(shards, nullptr);
  double root = 0, block = 0;
  const auto units = UnitsOf(job.model);
  for (const size_t index : units[0]) root += static_cast<double>(job.model.parameters[index].Elements());
  for (const size_t index : units[1]) block += static_cast<double>(job.model.parameters[index].Elements());
  EXPECT_DOUBLE_EQ(shards->change.memory_bytes,
                   2 * (root + 2 * block) - static_cast<double>(job.model.Elements()));
}

// FSDP2 keeps its shards beside the units that it does not free after the forward.
TEST(Advise, GatheredUnitsThatStayTakeMemory) {
  AdvisedJob job = Trainer({});
  job.framework = "fsdp2";
  job.settings = {{"reshard_after_forward", "true"}};
  const double frees = MemoryOf(job);
  job.settings = {{"reshard_after_forward", "false"}};
  EXPECT_GT(MemoryOf(job), frees);
  for (const PossibleChange& change : PossibleChanges(job, 1)) {
    if (change.what.find("reshard_after_forward") != std::string::npos) {
      EXPECT_LT(change.memory_bytes, 0) << change.what;
    }
  }
}

// DistributedDataParallel refuses bf16_compress_hook in a build of PyTorch without GPUs, and a mesh of CPUs
// is called "cpu".
TEST(Advise, PrescribesNothingThatTheDeviceRefuses) {
  AdvisedJob job = Trainer({});
  job.framework = "ddp";
  job.settings = {};
  job.world = {4, 1, 0};
  const auto hooks = [&](TensorsOn device) {
    const auto changes = PossibleChanges(job, 2, device);
    return std::ranges::count_if(changes, [](const PossibleChange& change) {
      return change.how.find("bf16_compress_hook") != std::string::npos;
    });
  };
  EXPECT_EQ(hooks(TensorsOn::kGpus), 1);
  EXPECT_EQ(hooks(TensorsOn::kCpus), 0);
  job.framework = "fsdp2";
  EXPECT_EQ(PossibleChanges(job, 2, TensorsOn::kGpus).back().how,
            "fully_shard(mesh=init_device_mesh(\"cuda\", (copies, 2)))");
  EXPECT_EQ(PossibleChanges(job, 2, TensorsOn::kCpus).back().how,
            "fully_shard(mesh=init_device_mesh(\"cpu\", (copies, 2)))");
}

TEST(RecordedStep, CountsCallsBetweenRanksThatItLeavesOut) {
  Trace trace = Recorded(Trainer({{"stage", "3"}}), Ethernet(), {5e6, 1});
  int left = 2;
  for (TraceRecord& record : trace.sections[0].records) {
    if (!IsCall(record) || left-- <= 0) continue;
    record.collective = static_cast<uint8_t>(Collective::kSendRecv);
    Seal(record);
  }
  EXPECT_EQ(StepOf(trace)->between_two, (std::map<Collective, size_t>{{Collective::kSendRecv, 2}}));
  EXPECT_THAT(CallsNotSimulated(*StepOf(trace)),
              AllOf(HasSubstr("2 SendRecv ("), HasSubstr("are not simulated")));
  EXPECT_EQ(CallsNotSimulated(RecordedStep()), "");
}

// The page's tables have the predicted and the measured step in columns 3 and 4.
TEST(Advise, TheIntervalHoldsWhatThePageOfResultsMeasured) {
  std::ifstream page(ADVISE_RESULTS);
  const std::regex row(R"(\| [^|]+ \| [0-9.]+ \| ([0-9.]+) \| ([0-9.]+) \| [0-9.]+ to [0-9.]+ \| .*)");
  size_t rows = 0, held = 0;
  std::smatch found;
  for (std::string line; std::getline(page, line);) {
    if (!std::regex_match(line, found, row)) continue;
    ++rows;
    const StepInterval interval = MeasuredInterval(static_cast<int64_t>(1e6 * std::stod(found[1])));
    const auto measured = static_cast<int64_t>(1e6 * std::stod(found[2]));
    held += interval.low_ns <= measured && measured <= interval.high_ns;
  }
  EXPECT_EQ(rows, 18u);
  EXPECT_EQ(held, 17u);
}

// A trace without measured times gives no step time.
TEST(RecordedStep, ATraceWithoutTimesHasNoLength) {
  EXPECT_EQ(StepOf(Generated(Trainer({{"stage", "3"}}), 1))->step_ns, 0);
}

TEST(Advise, FitsASystemToRecordedTimes) {
  const AdvisedJob job = Trainer({{"stage", "3"}, {"bucket_bytes", "262144"}});
  const auto step = StepOf(Recorded(job, Ethernet(), {25e6, 1}));
  const auto system = SystemOfTimes(*step);
  ASSERT_TRUE(system.has_value()) << system.error().message;
  const CollectiveTimes fitted(*system, 2, 2), truth(Ethernet(), 2, 2);
  for (const TimedCell& cell : step->times)
    EXPECT_NEAR(fitted.Microseconds(cell.collective, cell.bytes, {}) /
                    truth.Microseconds(cell.collective, cell.bytes, {}),
                1, 0.1);
  EXPECT_FALSE(SystemOfTimes(*StepOf(Generated(job, 1))).has_value());
}

TEST(Advise, SaysWhatIsMissing) {
  const AdvisedJob job = Trainer({{"stage", "3"}});
  auto step = StepOf(Generated(job, 1));
  step->step_ns = 0;
  RecognisedJob known;
  known.job = job;
  EXPECT_FALSE(Advise(*step, known, Ethernet(), 0).has_value());
  EXPECT_TRUE(Advise(*step, known, Ethernet(), 50'000'000).has_value());
}

TEST(TrainerOptions, BecomeSettingsAndOptionsAgain) {
  const std::vector<std::string> given = {
      "--stage",        "3",  "--layers=2",      "--hidden", "64", "--no-prefetch",
      "--bucket-bytes", "1M", "--learning-rate", "1e-3"};
  const auto job = TrainerJobOf(given, 4);
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(SettingOf(*job, "stage"), "3");
  EXPECT_EQ(SettingOf(*job, "prefetch"), "false");
  EXPECT_EQ(SettingOf(*job, "bucket_bytes"), "1048576");
  EXPECT_EQ(job->model.transformer->layers, 2);
  AdvisedJob changed = *job;
  changed.settings["prefetch"] = "true";
  changed.settings["bucket_bytes"] = "17592186044416";
  changed.world.shard = 2;
  const auto options = OptionsFor(*job, changed);
  const auto again = TrainerJobOf(Replaced(given, options), 4);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->settings, changed.settings);
  EXPECT_EQ(again->world.shard, 2);
  EXPECT_FALSE(TrainerJobOf({"--tensor-parallel", "2"}, 4).has_value());
}

// Returns a trace of two ranks without marks and labels. They reduce 64 MiB in 20 ms at each of the times
// `issued_ms`.
Trace EqualCalls(const std::vector<int64_t>& issued_ms) {
  Trace trace;
  for (int rank = 0; rank < 2; ++rank) {
    SectionBuilder builder(rank, 2);
    for (size_t i = 0; i < issued_ms.size(); ++i) {
      builder.Call(static_cast<uint32_t>(i), Collective::kAllReduce, 64 << 20);
      TraceRecord& record = builder.section().records.back();
      record.issued_ns = issued_ms[i] * 1'000'000;
      record.duration_ns = 20'000'000;
      record.duration_source = static_cast<uint8_t>(DurationSource::kKernelStamps);
      Seal(record);
    }
    trace.sections.push_back(builder.section());
  }
  return trace;
}

TEST(Advise, AStepOfOneCallIsFoundByItsPaceAndDivided) {
  std::vector<int64_t> issued_ms;
  for (int64_t i = 0; i < 20; ++i) issued_ms.push_back(100 * i + (i * 7) % 5);
  const auto step = StepOf(EqualCalls(issued_ms));
  ASSERT_TRUE(step.has_value());
  EXPECT_TRUE(step->paced);
  EXPECT_EQ(step->steps, 20u);
  EXPECT_NEAR(static_cast<double>(step->step_ns), 100e6, 5e6);
  const auto job = RecogniseJob(*step);
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->job.framework, "ddp");
  EXPECT_EQ(job->what, "data parallelism: 1 AllReduce of 64M");
  EXPECT_DOUBLE_EQ(*ShareOfCalls(job->job, *step), 1);
  const auto system = SystemOfTimes(*step);
  ASSERT_TRUE(system.has_value());
  const auto advice = Advise(*step, *job, *system, 0);
  ASSERT_TRUE(advice.has_value()) << advice.error().message;
  const AdvisedChange* const buckets = Find(*advice, "bucket_bytes all -> 5M");
  ASSERT_NE(buckets, nullptr);
  EXPECT_LT(buckets->predicted.step_ns, advice->simulated.step_ns) << "buckets hide behind the backward pass";
}

// A step has four equal buckets and a long pause. Nothing shows which bucket begins a step.
TEST(Advise, EqualCallsWithoutAPaceSayWhatIsMissing) {
  std::vector<int64_t> issued_ms;
  for (int64_t i = 0; i < 40; ++i) issued_ms.push_back(200 * (i / 4) + 3 * (i % 4));
  const auto step = StepOf(EqualCalls(issued_ms));
  ASSERT_TRUE(step.has_value());
  EXPECT_FALSE(step->paced);
  const auto job = RecogniseJob(*step);
  ASSERT_FALSE(job.has_value());
  EXPECT_NE(job.error().message.find("all 40 calls are AllReduce of 64M"), std::string::npos)
      << job.error().message;
  EXPECT_NE(job.error().hint.find("--step-ms"), std::string::npos);
}

TEST(Advise, EqualCallsThatAreActivationsAreNoSteps) {
  std::vector<int64_t> issued_ms;
  for (int64_t i = 0; i < 20; ++i) issued_ms.push_back(100 * i);
  auto step = StepOf(EqualCalls(issued_ms));
  ASSERT_TRUE(step.has_value());
  step->recognised_by = "p.dcpolicy";
  step->operations.front().role = Role::kActivation;
  EXPECT_FALSE(RecogniseJob(*step));
}

// Ten calls of one size may be gradients or activations. Only a recogniser can tell them apart.
TEST(RecognisedJob, RecognisedRolesDecideWhereCallsDoNot) {
  RecordedStep step{.ranks = 8};
  for (int i = 0; i < 10; ++i)
    step.operations.push_back({Collective::kAllReduce, DataType::kBfloat16, ReduceOp::kSum, Axis::kData,
                               1 << 20, -1, Role::kGradientReduce, Phase::kBackward, 0, 1});
  EXPECT_FALSE(RecogniseJob(step)) << "nobody recognised the roles";
  step.recognised_by = "p.dcpolicy";
  auto job = RecogniseJob(step);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->job.framework, "ddp");
  EXPECT_EQ(job->job.model.parameters.size(), 10u);
  EXPECT_NE(job->notes.back().find("p.dcpolicy"), std::string::npos);
  for (int i = 0; i < 4; ++i) step.operations[2 * i].role = Role::kActivation;
  job = RecogniseJob(step);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->job.model.parameters.size(), 6u);
  EXPECT_NE(job->notes.back().find("4 calls are activations"), std::string::npos);
  step.operations[1].role = Role::kUnknown;
  EXPECT_FALSE(RecogniseJob(step)) << "a large call of which nobody is sure";
}

// The recogniser does not know the first steps and sometimes errs later.
TEST(RecordedStep, HasTheRolesThatMostStepsHave) {
  AdvisedJob named{.framework = "fsdp2"};
  named.model = *ParseModel("gpt:layers=4,hidden=128,sequence=64,vocabulary=256");
  named.world = {8, 1, 0};
  Trace trace = Generated(named, 8);
  const Result<RecordedStep> labelled = StepOf(trace);
  ASSERT_TRUE(labelled && labelled->labelled);
  std::vector<TraceRecord>& records = trace.sections.front().records;
  for (size_t i = 0; i < records.size() / 3; ++i) {
    if (!IsCall(records[i])) continue;
    records[i].labels = 0;
    records[i].labelled_stage = static_cast<uint8_t>(ZeroStage::kUnknown);
    Seal(records[i]);
  }
  const Result<RecordedStep> step = StepOf(trace, "p.dcpolicy");
  ASSERT_TRUE(step);
  EXPECT_FALSE(step->labelled);
  EXPECT_EQ(step->recognised_by, "p.dcpolicy");
  EXPECT_EQ(step->stage, labelled->stage);
  for (size_t k = 0; k < step->operations.size(); ++k)
    EXPECT_EQ(step->operations[k].role, labelled->operations[k].role) << k;
}

}  // namespace
}  // namespace dynamiccl
