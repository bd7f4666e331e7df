// SPDX-License-Identifier: Apache-2.0
#include "zero_workloads/trainer.h"

#include <ATen/Parallel.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <exception>

#include "src/base/clock.h"
#include "zero_workloads/data/batch_loader.h"
#include "zero_workloads/evaluation.h"
#include "zero_workloads/optimizer/learning_rate_schedule.h"
#include "zero_workloads/parallel/process_group.h"
#include "zero_workloads/progress.h"
#include "zero_workloads/zero/zero_engine.h"

namespace dynamiccl::zero {
namespace {

struct Run {
  const TrainingSettings& settings;
  const TextDataset& text;
  ProcessGroup* group;
  Progress* progress;
  at::Device device;
};

struct MicroSteps {
  int64_t step;
  int64_t count;  // in each step
};

// Gives the communicator up when an exception leaves its scope.
class AbortOnException {
 public:
  explicit AbortOnException(ProcessGroup* group) : group_(group), exceptions_(std::uncaught_exceptions()) {}
  ~AbortOnException() {
    if (std::uncaught_exceptions() > exceptions_) group_->Abort();
  }

 private:
  ProcessGroup* group_;
  int exceptions_;
};

EngineSettings EngineSettingsOf(const Run& run) {
  const TrainingSettings& settings = run.settings;
  EngineSettings engine;
  engine.stage = settings.stage;
  engine.bucket_bytes = settings.bucket_bytes;
  engine.overlap = settings.overlap;
  engine.prefetch = settings.prefetch;
  engine.micro_steps = settings.micro_steps;
  engine.seed = settings.seed;
  engine.type = settings.dtype == "bf16" ? at::kBFloat16 : at::kFloat;
  engine.device = run.device;
  engine.clip_norm = settings.clip_norm;
  engine.adamw.weight_decay = settings.weight_decay;
  return engine;
}

// Forward and backward passes of a step's micro-steps; returns the mean of their losses.
at::Tensor RunPasses(const Gpt& model, ZeroEngine* engine, const BatchLoader& loader,
                     const MicroSteps& micro_steps) {
  at::Tensor sum;
  for (int64_t micro = 0; micro < micro_steps.count; ++micro) {
    const Batch batch = loader.TrainingBatch(micro_steps.step * micro_steps.count + micro);
    const at::Tensor loss = model.MeanLoss(batch.tokens, batch.targets, engine);
    engine->Backward(loss);
    sum = micro == 0 ? loss.detach() : sum.add(loss.detach());
  }
  return micro_steps.count == 1 ? sum : sum.div(micro_steps.count);
}

void RunSteps(const Run& run) {
  const TrainingSettings& settings = run.settings;
  const int64_t start = MonotonicNanoseconds();
  Gpt model(settings.model);
  const std::unique_ptr<ZeroEngine> engine = ZeroEngine::Create(&model, run.group, EngineSettingsOf(run));
  const BatchShape shape{settings.batch, settings.model.sequence, run.group->rank(), run.group->world()};
  const BatchLoader loader(run.text.train, shape, settings.seed, run.device);
  const LearningRateSchedule schedule{settings.learning_rate, settings.warmup_steps, settings.steps};
  const EvaluationShape evaluation{.sequence = settings.model.sequence, .device = run.device};
  RunReport report;

  // Before the tensors of this scope go away, no collective may use them any more.
  const AbortOnException abort(run.group);
  run.progress->Begin(engine->ParameterCount(), run.text, run.device.str());
  for (int64_t step = 0; step < settings.steps; ++step) {
    const int64_t begin = MonotonicNanoseconds();
    run.group->SetStep(step);
    const at::Tensor loss = RunPasses(model, engine.get(), loader, {step, settings.micro_steps});
    const double learning_rate = schedule.At(step);
    const StepOutcome outcome = engine->Step(loss, learning_rate);
    const int64_t waited = TakeComputeWaitNanoseconds();
    run.progress->Step(
        {step, outcome.loss, outcome.gradient_norm, learning_rate, MonotonicNanoseconds() - begin, waited});

    const bool last = step + 1 == settings.steps;
    const bool due = settings.eval_every > 0 && (step + 1) % settings.eval_every == 0;
    if (due || (last && settings.evaluate_at_end)) {
      report.held_out_bits_per_byte =
          BitsPerByte(model, engine.get(), run.group, run.text.held_out, evaluation);
      run.progress->Evaluated(step, report.held_out_bits_per_byte);
    }
  }
  report.parameters_sha256 = engine->ParameterDigest();
  report.nanoseconds = MonotonicNanoseconds() - start;
  run.progress->End(report);
}

// What must be equal on all ranks: settings and text.
uint64_t RunFingerprint(const TrainingSettings& settings, const TextDataset& text) {
  const std::string canonical = settings.Canonical();
  const uint64_t seed = XXH3_64bits(canonical.data(), canonical.size());
  return XXH3_64bits_withSeed(text.train.data(), text.train.size(), seed);
}

}  // namespace

Status Train(const TrainingSettings& settings) {
  DYNAMICCL_CHECK_OK(Validate(settings));
  DYNAMICCL_TRY(const RankEnvironment environment, ReadRankEnvironment());
  DYNAMICCL_TRY(const TextDataset text, LoadText(settings.text));
  DYNAMICCL_CHECK_OK(ValidateForRun(settings, environment.world, text));
  DYNAMICCL_TRY(Progress progress, Progress::Open(settings, environment.rank, environment.world));
  DYNAMICCL_TRY(const at::Device device, SelectDevice(environment.local_rank));
  at::set_num_threads(settings.threads);
  const JoinSettings join{std::chrono::seconds(settings.join_timeout_seconds),
                          RunFingerprint(settings, text)};
  DYNAMICCL_TRY(const std::unique_ptr<ProcessGroup> group,
                ProcessGroup::Create(environment, settings.stage, join));
  try {
    RunSteps({settings, text, group.get(), &progress, device});
  } catch (const CollectiveFailure& failure) {
    return MakeError(ErrorKind::kPeerFailed, "{}", failure.what());
  } catch (const std::exception& failure) {
    return MakeError(ErrorKind::kInternal, "{}", failure.what());
  }
  return {};
}

}  // namespace dynamiccl::zero
