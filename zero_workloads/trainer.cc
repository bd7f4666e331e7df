// SPDX-License-Identifier: Apache-2.0
// Assembles a run from its parts (model, engine, hooks, data, checkpoints, progress) and runs the steps. A
// step is: batch size, forward and backward passes, optimizer, reports, checkpoint, evaluation.
#include "zero_workloads/trainer.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "src/base/clock.h"
#include "zero_workloads/checkpoint/training_checkpoints.h"
#include "zero_workloads/data/batch_loader.h"
#include "zero_workloads/evaluation.h"
#include "zero_workloads/memory/memory_counters.h"
#include "zero_workloads/optimizer/learning_rate_schedule.h"
#include "zero_workloads/parallel/grid.h"
#include "zero_workloads/progress.h"
#include "zero_workloads/resolve_checkpoints.h"
#include "zero_workloads/zero/parameter_units.h"
#include "zero_workloads/zero/unit_groups.h"
#include "zero_workloads/zero/zero_engine.h"
#include "zero_workloads/zero_r/checkpointed_units.h"

namespace dynamiccl::zero {
namespace {

// The parts of a run that the functions below share. The object lives in Train().
struct Run {
  const TrainingSettings& settings;
  const TextDataset& text;
  Grid* grid;
  Progress* progress;
  at::Device device;
  OptimizerOffload offload;
};

// Aborts the communicators when an exception leaves the object's scope, so that peers and threads do not
// hang.
class AbortOnException {
 public:
  explicit AbortOnException(Grid* grid) : grid_(grid), exceptions_(std::uncaught_exceptions()) {}
  ~AbortOnException() {
    if (std::uncaught_exceptions() > exceptions_) grid_->Abort();
  }

 private:
  Grid* grid_;
  int exceptions_;
};

TensorSplit SplitOf(const Run& run) {
  return {run.grid->tensor(), run.settings.sequence_parallel};
}

EngineSettings EngineSettingsOf(const Run& run) {
  const TrainingSettings& settings = run.settings;
  EngineSettings engine;
  engine.stage = settings.stage;
  engine.bucket_bytes = settings.bucket_bytes;
  engine.bucket_memory = BufferMemoryOf(settings.bucket_memory);
  engine.bucket_per_unit = settings.unit == "parameter";
  engine.whole_units = settings.exchange == "layer_owner";
  engine.all_reduce_gradients = settings.exchange == "all_reduce";
  engine.overlap = settings.overlap;
  engine.units_ahead = settings.units_ahead();
  engine.micro_steps = settings.micro_steps;
  engine.seed = settings.seed;
  engine.accumulate_locally = settings.accumulates_locally();
  engine.type = settings.type();
  engine.rounds_master_weights = !settings.master_weights;
  engine.reduce_type = settings.reduce_type == "fp32" ? at::kFloat : engine.type;
  engine.accumulation_type = settings.accumulation_type == "fp32" ? at::kFloat : engine.type;
  engine.loss_scale = settings.LossScaling();
  engine.tensor = SplitOf(run);
  engine.world = run.grid->world();
  engine.replicas = run.grid->replicas();
  engine.secondary = run.grid->secondary();
  engine.device = run.device;
  engine.clip_norm = settings.clip_norm;
  engine.contiguous_gradients = settings.residual.contiguous_pools;
  engine.adamw = settings.adamw;
  engine.offload = run.offload;
  return engine;
}

at::Tensor ForwardPass(const Gpt& model, UnitHooks* hooks, const Batch& batch) {
  const CountAs category(MemoryCategory::kActivations);
  const at::Tensor loss = model.MeanLoss(batch.tokens, batch.targets, hooks);
  NoteActivationsKept();
  return loss;
}

// Runs the forward and backward passes of a step's micro-steps and returns the mean of their losses, a
// scalar.
at::Tensor RunPasses(const Gpt& model, ZeroEngine* engine, UnitHooks* hooks, const BatchLoader& loader,
                     const StepSamples& samples, int64_t micro_steps) {
  at::Tensor sum;
  for (int64_t micro = 0; micro < micro_steps; ++micro) {
    const Batch batch = loader.Samples(samples.first + micro * samples.rows, samples.rows);
    const at::Tensor loss = ForwardPass(model, hooks, batch);
    engine->Backward(loss);
    sum = micro == 0 ? loss.detach() : sum.add(loss.detach());
  }
  return micro_steps == 1 ? sum : sum.div(micro_steps);
}

// Tells the user which gradient overflowed. A rank sees only its own part of the gradients, so each rank that
// has such a gradient reports it.
void ReportOverflow(int rank, int64_t step, const StepOutcome& outcome) {
  fmt::print(stderr, "rank {}: step {} skipped: gradients overflow at loss scale {}, first in {}\n", rank,
             step, outcome.loss_scale, outcome.overflow_in);
}

CheckpointedRun CheckpointedRunOf(const Run& run, ZeroEngine* engine) {
  const TrainingSettings& settings = run.settings;
  const uint64_t text = XXH3_64bits(run.text.train.data(), run.text.train.size());
  CheckpointedRun checkpointed{run.grid->world(), engine, run.device};
  checkpointed.writes_whole_parameters = run.grid->tensor_rank() == 0;
  checkpointed.rows_per_step = settings.batch * settings.micro_steps;
  checkpointed.values = {{"settings", settings.Canonical()},
                         {"text.xxh3", fmt::format("{:016x}", text)},
                         {"world", std::to_string(run.grid->world()->world())}};
  return checkpointed;
}

// Returns the step at which the run begins. Throws CheckpointFailure if the checkpoint is beyond the run's
// last step.
int64_t BeginAt(TrainingCheckpoints* checkpoints, int64_t steps) {
  const int64_t done = checkpoints->Begin();
  if (done <= steps) return done;
  throw CheckpointFailure({ErrorKind::kInvalidArgument,
                           fmt::format("the checkpoint is of step {}, beyond --steps {}", done, steps),
                           "give more --steps, or --resume with an earlier step"});
}

// Most windows that a rank evaluates at a time. More would not make an evaluation faster.
constexpr int64_t kMaxEvaluationRows = 16;

// `rows` is the number of sequences of a micro-step, over all ranks. A rank evaluates at most as many windows
// at a time as it trains on, so that an evaluation never needs more memory than a step.
EvaluationShape EvaluationShapeOf(const Run& run, int64_t rows) {
  const int64_t rows_of_rank = rows / run.grid->data()->world();
  return {run.settings.model.sequence, std::clamp<int64_t>(rows_of_rank, 1, kMaxEvaluationRows), run.device};
}

MeasuredGroups MeasuredGroupsOf(const Grid& grid) {
  return {grid.world(), grid.data(), grid.shard(), grid.tensor()};
}

// The hooks that a run's forward passes use: the engine's own hooks, or activation checkpointing, which calls
// the engine's hooks.
class Checkpointing {
 public:
  Checkpointing(const Run& run, UnitHooks* engine) : hooks_(engine) {
    const at::TensorOptions options = at::TensorOptions().dtype(run.settings.type()).device(run.device);
    const CheckpointChoice choice = ResolveCheckpoints(run.settings, MeasuredGroupsOf(*run.grid), options);
    if (run.grid->world()->rank() == 0 && !choice.reason.empty()) fmt::print("{}\n", choice.reason);
    if (choice.checkpoints == Checkpoints::kNone) return;
    // If the sequence is split, a rank has only its slice of an input, so the input is not divided again.
    const TensorSplit split = SplitOf(run);
    ProcessGroup* const divide_over = split.splits_sequence() ? nullptr : split.group;
    ActivationStoreSettings store =
        StoreSettingsOf(run.settings, choice.checkpoints, choice.batch, divide_over, options);
    if (split.splits_sequence()) store.input_elements = split.share(store.input_elements);
    store_.emplace(store);
    units_.emplace(engine, &*store_);
    hooks_ = &*units_;
  }

  UnitHooks* hooks() const { return hooks_; }
  void CheckGuards() const {
    if (store_) store_->CheckGuards();
  }

 private:
  std::optional<ActivationStore> store_;
  std::optional<CheckpointedUnits> units_;
  UnitHooks* hooks_;
};

// Creates the StepBatch. Parsing `memory_taken` cannot fail here, because Validate has done it before.
StepBatch StepBatchOf(const Run& run) {
  const TrainingSettings& settings = run.settings;
  return {{settings.batch, settings.micro_steps, run.grid->data()->world(), settings.residual.memory_cap,
           run.device},
          *TakenMemory::Parse(settings.memory_taken),
          run.grid->world()};
}

// Returns the settings of the next step. With --live, values that the ranks have agreed on replace the
// options. A number that is no valid setting is ignored on all ranks.
LiveSettings LiveSettingsOf(const Run& run) {
  const TrainingSettings& settings = run.settings;
  LiveSettings live{settings.bucket_bytes, settings.units_ahead()};
  if (!settings.live) return live;
  const ProcessGroup* const world = run.grid->world();
  const int64_t bytes = world->AgreedValue("bucket_bytes", live.bucket_bytes);
  if (bytes > 0) live.bucket_bytes = std::min(bytes, kOneBucketForAll);
  const int64_t units = world->AgreedValue("prefetch", live.units_ahead);
  if (units >= 0) live.units_ahead = units;
  return live;
}

// Begins a step: changes the engine to its live settings, and tells the user what has changed.
void BeginStep(const Run& run, int64_t step, ZeroEngine* engine) {
  run.grid->SetStep(step);
  // Time waited since the last step belongs to an evaluation or a checkpoint, not to this step.
  TakeComputeWaitNanoseconds();
  const LiveSettings live = LiveSettingsOf(run);
  if (live == engine->live()) return;
  engine->SetLive(live);
  run.progress->Tell(fmt::format("from step {} on: buckets of {} bytes, prefetch of {} unit(s)", step,
                                 live.bucket_bytes, live.units_ahead));
}

// The engine's units, as --unit and --unit-blocks define them, and the hooks that translate the model's
// events into the engine's.
class EngineUnits {
 public:
  EngineUnits(const TrainingSettings& settings, std::vector<ModelUnit> model)
      : settings_(settings), model_(std::move(model)) {}

  std::vector<ModelUnit> Units() const {
    if (settings_.unit == "parameter") return UnitPerParameter(model_);
    return settings_.unit_blocks > 1 ? GroupUnits(model_, settings_.unit_blocks) : model_;
  }
  // The result lives as long as this object and the engine.
  UnitHooks* HooksOf(ZeroEngine* engine) {
    if (settings_.unit == "parameter") {
      hooks_ = std::make_unique<ParameterUnitHooks>(model_, engine);
    } else if (settings_.unit_blocks > 1) {
      hooks_ = std::make_unique<GroupedUnitHooks>(model_, settings_.unit_blocks, engine);
    }
    return hooks_ == nullptr ? engine : hooks_.get();
  }

 private:
  const TrainingSettings& settings_;
  const std::vector<ModelUnit> model_;
  std::unique_ptr<UnitHooks> hooks_;
};

// Adds memory, traffic and the digest of the parameters after the last step. The digest is a collective call.
void AddCounters(const Run& run, ZeroEngine* engine, RunReport* report) {
  report->memory = ReadMemoryCounters();
  report->host_memory = ReadHostMemoryCounters();
  if (const OffloadTraffic* traffic = engine->offload_traffic()) report->offload = *traffic;
  report->sent_bytes = run.grid->sent_bytes();
  report->parameters_sha256 = engine->ParameterDigest();
}

void RunSteps(const Run& run) {
  const TrainingSettings& settings = run.settings;
  const int64_t start = MonotonicNanoseconds();
  Gpt model(settings.model, SplitOf(run),
            settings.unit == "half_block" ? BlockUnits::kHalves : BlockUnits::kWhole);
  ProcessGroup* const data = run.grid->data();
  EngineUnits units(settings, model.Units());
  if (settings.exchange == "owner") run.grid->shard()->SetExchange(Exchange::kOwner);
  const std::unique_ptr<ZeroEngine> engine =
      ZeroEngine::Create(units.Units(), run.grid->shard(), EngineSettingsOf(run));
  UnitHooks* const engine_hooks = units.HooksOf(engine.get());
  Checkpointing checkpointing(run, engine_hooks);
  const BatchShape shape{settings.batch, settings.model.sequence, data->rank(), data->world()};
  const BatchLoader loader(run.text.train, shape, settings.seed, run.device);
  const LearningRateSchedule schedule{settings.learning_rate, settings.warmup_steps, settings.steps};
  StepBatch batch = StepBatchOf(run);
  RunReport report;

  TrainingCheckpoints checkpoints(settings.checkpoint, CheckpointedRunOf(run, engine.get()),
                                  [&](const std::string& line) { run.progress->Tell(line); });

  // This object is declared last, so that it is destroyed first: no collective may still use this scope's
  // tensors when the tensors are destroyed.
  const AbortOnException abort(run.grid);
  run.progress->Begin(engine->ParameterCount(), run.text, run.device.str());
  const auto evaluate = [&](int64_t step, int64_t rows) {
    report.held_out_bits_per_byte =
        BitsPerByte(model, engine_hooks, data, run.text.held_out, EvaluationShapeOf(run, rows));
    run.progress->Evaluated(step, report.held_out_bits_per_byte);
  };
  const int64_t first_step = BeginAt(&checkpoints, settings.steps);
  if (first_step == settings.steps && settings.evaluate_at_end) evaluate(first_step - 1, settings.batch);
  for (int64_t step = first_step; step < settings.steps; ++step) {
    const int64_t begin = MonotonicNanoseconds();
    BeginStep(run, step, engine.get());
    const StepSamples samples = batch.Begin(step);
    const at::Tensor loss =
        RunPasses(model, engine.get(), checkpointing.hooks(), loader, samples, settings.micro_steps);
    const StepOutcome outcome = engine->Step(loss, schedule.At(step));
    checkpointing.CheckGuards();
    const int64_t waited = TakeComputeWaitNanoseconds();
    if (!outcome.overflow_in.empty()) ReportOverflow(run.grid->world()->rank(), step, outcome);
    batch.End();
    run.progress->Step({step, samples, outcome.loss, outcome.gradient_norm, outcome.loss_scale,
                        outcome.skipped, schedule.At(step), MonotonicNanoseconds() - begin, waited,
                        engine->live()});

    const bool last = step + 1 == settings.steps;
    checkpoints.AfterStep(step + 1, last);
    const bool due = settings.eval_every > 0 && (step + 1) % settings.eval_every == 0;
    if (due || (last && settings.evaluate_at_end)) evaluate(step, samples.rows);
  }
  AddCounters(run, engine.get(), &report);
  report.steps = settings.steps - first_step;
  report.nanoseconds = MonotonicNanoseconds() - start;
  run.progress->End(report);
}

Result<OptimizerOffload> OffloadOf(const TrainingSettings& settings, const RankEnvironment& environment) {
  DYNAMICCL_TRY(OptimizerOffload offload, OptimizerOffload::Parse(settings.offload_optimizer));
  DYNAMICCL_CHECK_OK(offload.CheckFolder());
  offload.rank_name = fmt::format("rank-{}", environment.rank);
  offload.buffer_bytes = settings.offload_buffer_bytes;
  return offload;
}

Status CapMemory(const ResidualSettings& residual) {
  if (residual.memory_cap == 0) return {};
  return CapDeviceMemory(residual.memory_cap, residual.memory_allocator == "caching"
                                                  ? MemoryAllocator::kCaching
                                                  : MemoryAllocator::kFirstFit);
}

// Hash of the settings and the text, which must be equal on all ranks. Ranks with held-out texts of different
// lengths would make different numbers of calls in an evaluation.
uint64_t RunFingerprint(const TrainingSettings& settings, const TextDataset& text) {
  const std::string canonical = settings.Canonical() + settings.checkpoint.Canonical();
  uint64_t hash = XXH3_64bits(canonical.data(), canonical.size());
  for (const std::vector<uint8_t>* part : {&text.train, &text.held_out})
    hash = XXH3_64bits_withSeed(part->data(), part->size(), hash);
  return hash;
}

}  // namespace

Status Train(const TrainingSettings& settings) {
  DYNAMICCL_CHECK_OK(Validate(settings));
  DYNAMICCL_TRY(const RankEnvironment environment, ReadRankEnvironment());
  DYNAMICCL_TRY(const TextDataset text, LoadText(settings.text));
  DYNAMICCL_CHECK_OK(ValidateForRun(settings, environment.world, text));
  DYNAMICCL_TRY(Progress progress, Progress::Open(settings, environment.rank, environment.world));
  DYNAMICCL_TRY(const at::Device device, SelectDevice(environment.local_rank));
  DYNAMICCL_CHECK_OK(CheckMemoryIsKnown(settings.residual));
  DYNAMICCL_CHECK_OK(CapMemory(settings.residual));
  DYNAMICCL_TRY(const OptimizerOffload offload, OffloadOf(settings, environment));
  CountDeviceMemory();
  at::set_num_threads(settings.threads);
  const JoinSettings join{std::chrono::seconds(settings.join_timeout_seconds),
                          RunFingerprint(settings, text)};
  DYNAMICCL_TRY(const std::unique_ptr<Grid> grid,
                Grid::Create(environment, settings.groups(), settings.stage, join));
  try {
    RunSteps({settings, text, grid.get(), &progress, device, offload});
  } catch (const CheckpointFailure& failure) {
    return tl::unexpected<Error>(failure.error());
  } catch (const CollectiveFailure& failure) {
    return MakeError(ErrorKind::kPeerFailed, "{}", failure.what());
  } catch (const c10::OutOfMemoryError& failure) {
    return WithHint(MakeError(ErrorKind::kUnavailable, "{}", failure.what_without_backtrace()),
                    "a smaller --batch or model, more ranks, or a higher --stage take less");
  } catch (const std::exception& failure) {
    return MakeError(ErrorKind::kInternal, "{}", failure.what());
  }
  return {};
}

}  // namespace dynamiccl::zero
