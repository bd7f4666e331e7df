// SPDX-License-Identifier: Apache-2.0
// Tests an optimizer step in sub-groups. The numbers must be those of a step in one piece, and updated shards
// must be sent before the step ends.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <mutex>

#include "tests/zero_workloads/rank_processes.h"
#include "tests/zero_workloads/rank_threads.h"
#include "zero_workloads/data/batch_loader.h"
#include "zero_workloads/models/gpt.h"
#include "zero_workloads/offload/optimizer_offload.h"
#include "zero_workloads/parallel/partition.h"
#include "zero_workloads/zero/replicated_stages.h"

namespace dynamiccl::zero {
namespace {

constexpr int64_t kElements = 5 * 1024;
constexpr double kRate = 1e-2;

OptimizerOffload Offload(const TemporaryFolder& folder, bool in_files, int rank = 0) {
  OptimizerOffload offload;
  if (!in_files) return offload;
  offload.place = OptimizerOffload::Place::kNvme;
  offload.folder = (folder / "").string();
  offload.rank_name = "rank-" + std::to_string(rank);
  offload.buffer_bytes = 4096;  // 1024 elements, the smallest sub-group
  return offload;
}

// Returns an optimizer. All optimizers have the same first values and gradients.
std::unique_ptr<AdamW> Optimizer(const OptimizerOffload& offload) {
  std::unique_ptr<AdamW> optimizer = MakeAdamW(kElements, offload, {}, at::kCPU);
  optimizer->master().copy_(at::arange(kElements, at::kFloat).mul(0.01).sin());
  return optimizer;
}

at::Tensor Gradients(int step) {
  return at::arange(kElements, at::kFloat).mul(0.37 * (step + 1)).cos();
}

// Returns the parameters after each step in one piece.
std::vector<at::Tensor> InOnePiece(int steps) {
  const std::unique_ptr<AdamW> optimizer = Optimizer({});
  std::vector<at::Tensor> parameters;
  for (int step = 0; step < steps; ++step) {
    parameters.push_back(at::empty({kElements}, at::kBFloat16));
    optimizer->Step(Gradients(step), kRate, parameters.back());
  }
  return parameters;
}

// Requires at each report that the elements from `begin` on are final and all others are as before the step.
void ExpectSameInSubGroups(const OptimizerOffload& offload, const std::vector<int64_t>& begins,
                           const std::vector<int64_t>& reported) {
  const std::vector<at::Tensor> expected = InOnePiece(3);
  const std::unique_ptr<AdamW> optimizer = Optimizer(offload);
  const at::Tensor parameters = at::full({kElements}, -1.0, at::kBFloat16);
  for (int step = 0; step < 3; ++step) {
    const at::Tensor before = parameters.clone();
    std::vector<int64_t> seen;
    SubGroups groups{begins, [&](int64_t begin) {
                       seen.push_back(begin);
                       const int64_t rest = kElements - begin;
                       EXPECT_TRUE(at::equal(parameters.narrow(0, begin, rest),
                                             expected[static_cast<size_t>(step)].narrow(0, begin, rest)));
                       EXPECT_TRUE(at::equal(parameters.narrow(0, 0, begin), before.narrow(0, 0, begin)));
                     }};
    optimizer->Step(Gradients(step), kRate, parameters, groups);
    EXPECT_EQ(seen, reported);
    EXPECT_TRUE(at::equal(parameters, expected[static_cast<size_t>(step)]));
  }
  EXPECT_EQ(optimizer->steps(), 3);
}

TEST(SubGroups, OfMemoryAreWhatTheCallerAsksFor) {
  ExpectSameInSubGroups({}, {4096, 1024, 128, 0}, {4096, 1024, 128, 0});
  ExpectSameInSubGroups({}, {0}, {0});
  ExpectSameInSubGroups({}, {2048}, {2048});  // the last sub-group is not reported
  ExpectSameInSubGroups({}, {}, {});
}

TEST(SubGroups, OfFilesAreTheFilesOwnTheLastFirst) {
  const TemporaryFolder folder;
  ExpectSameInSubGroups(Offload(folder, true), {4000, 0}, {4096, 3072, 2048, 1024, 0});
}

// Records how many bytes were sent when the optimizer reports a sub-group, before and after the stage
// receives the report.
class WatchedStage1 final : public Stage1 {
 public:
  using Stage1::Stage1;
  struct Report {
    int64_t begin, sent_before, sent_after;
  };
  std::vector<Report> reports;

 protected:
  SubGroups GroupsOfStep() override {
    SubGroups groups = Stage1::GroupsOfStep();
    if (!groups.updated) return groups;
    groups.updated = [this, stage = groups.updated](int64_t begin) {
      const int64_t before = group_->sent_bytes();
      stage(begin);
      reports.push_back({begin, before, group_->sent_bytes()});
    };
    return groups;
  }
};

struct Watched {
  std::vector<WatchedStage1::Report> reports;
  std::vector<int64_t> offsets, gather_bytes;  // by unit
};

// Runs one step of a small model on two ranks. Returns the reports of rank 0.
Watched Watch(bool in_files, bool overlap) {
  const TemporaryFolder folder;
  Watched watched;
  RunRankThreads(2, 1, [&](ProcessGroup* group) {
    Gpt model({.layers = 3, .hidden = 16, .heads = 2, .sequence = 8});
    EngineSettings settings;
    settings.stage = 1;
    settings.overlap = overlap;
    settings.offload = Offload(folder, in_files, group->rank());
    WatchedStage1 engine(model.Units(), group, settings);
    const std::vector<uint8_t> text(100, 'a');
    const BatchLoader loader(text, {4, 8, group->rank(), 2}, 1, at::kCPU);
    const Batch batch = loader.TrainingBatch(0);
    const at::Tensor loss = model.MeanLoss(batch.tokens, batch.targets, &engine);
    engine.Backward(loss);
    engine.Step(loss, kRate);
    for (int unit = 0; unit < engine.units(); ++unit) engine.BeforeForward(unit);
    if (group->rank() > 0) return;
    std::vector<int64_t> elements;
    for (int unit = 0; unit < engine.units(); ++unit) elements.push_back(engine.parameters(unit).elements());
    const Partition partition(elements, 2);
    for (int unit = 0; unit < partition.units(); ++unit) {
      watched.offsets.push_back(partition.unit(unit).arena_offset);
      watched.gather_bytes.push_back(4 * partition.flat_elements(unit) / 2);
    }
    watched.reports = engine.reports;
  });
  return watched;
}

TEST(SubGroups, UpdatedShardsAreGatheredDuringTheStep) {
  for (const bool in_files : {false, true}) {
    const Watched watched = Watch(in_files, true);
    ASSERT_GT(watched.reports.size(), 3u);
    size_t unit = 0;
    for (const WatchedStage1::Report& report : watched.reports) {
      int64_t sent = 0;
      for (; unit < watched.offsets.size() && watched.offsets[unit] >= report.begin; ++unit)
        sent += watched.gather_bytes[unit];
      EXPECT_EQ(report.sent_after - report.sent_before, sent) << "files " << in_files << " " << report.begin;
    }
    EXPECT_EQ(unit, watched.offsets.size());
  }
}

TEST(SubGroups, WithoutOverlapNobodyIsTold) {
  EXPECT_TRUE(Watch(false, false).reports.empty());
}

}  // namespace
}  // namespace dynamiccl::zero
