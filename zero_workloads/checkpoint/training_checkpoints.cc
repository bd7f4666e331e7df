// SPDX-License-Identifier: Apache-2.0
// Every decision that all ranks must share goes through Sum() or Agree(). A save proceeds in these steps:
// collect the content, write in the background, agree on all ranks that every part is written, commit.
#include "zero_workloads/checkpoint/training_checkpoints.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <numeric>
#include <set>

#include "zero_workloads/checkpoint/resume_check.h"

namespace dynamiccl::zero {
namespace {

// Longest time between two collectives with which ranks that wait for a save ask each other whether it is
// done. hostccl regards 30 s without progress as a hang (HOSTCCL_TIMEOUT_MS). Ten short collectives per
// second cost nothing compared with the writing.
constexpr std::chrono::milliseconds kAskPeriod(100);

int64_t Product(std::span<const int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

// The whole parameter's shape with as many dimensions as a slice has. With tensor parallelism, a layer may
// split its first dimension into several (query, key and value; heads). The checkpoint has one dimension in
// both cases.
std::vector<int64_t> WholeShape(const ParameterSlot& slot) {
  if (!slot.sliced()) return slot.shape;
  const size_t merged = slot.global_shape.size() - slot.shape.size();
  std::vector<int64_t> shape(slot.global_shape.begin() + static_cast<ptrdiff_t>(merged),
                             slot.global_shape.end());
  shape.front() *= Product(std::span(slot.global_shape).first(merged));
  return shape;
}

// Converts the place of the slot's slice to the form that the checkpoint's index uses.
TensorSlice SliceOf(const ParameterSlot& slot) {
  const int64_t elements = slot.Elements();
  if (!slot.sliced()) return {elements, elements, 0};
  const std::span whole(slot.global_shape);
  const size_t dimension = static_cast<size_t>(slot.slice_dimension);
  return {elements / Product(whole.first(dimension)), Product(whole.subspan(dimension)), slot.GlobalIndex(0)};
}

}  // namespace

TrainingCheckpoints::TrainingCheckpoints(const CheckpointSettings& settings, const CheckpointedRun& run,
                                         std::function<void(const std::string&)> tell)
    : settings_(settings),
      run_(run),
      tell_(std::move(tell)),
      folder_(settings.directory),
      retention_{.keep = settings.keep} {}

int64_t TrainingCheckpoints::Sum(int64_t number) const {
  // A double represents every step number and every number of ranks exactly.
  const at::Tensor sum =
      at::full({1}, static_cast<double>(number), at::TensorOptions().dtype(at::kDouble).device(run_.device));
  run_.group->AwaitOnHost(run_.group->AllReduce(sum, {DYNAMICCL_PHASE_OTHER, DYNAMICCL_ROLE_SCALAR}));
  return static_cast<int64_t>(sum.item<double>());
}

void TrainingCheckpoints::AwaitAll(const std::function<bool(std::chrono::milliseconds)>& wait) const {
  bool mine = false;
  do {
    mine = mine || wait(kAskPeriod);
  } while (Sum(mine ? 0 : 1) > 0);
}

void TrainingCheckpoints::Agree(const Status& own, const char* what) const {
  const int64_t failed = Sum(own ? 0 : 1);
  if (!own) throw CheckpointFailure(own.error());
  if (failed == 0) return;
  throw CheckpointFailure({ErrorKind::kUnavailable,
                           fmt::format("{} of {} ranks could not {}", failed, run_.group->world(), what),
                           "their own messages say why"});
}

int64_t TrainingCheckpoints::Begin() {
  if (settings_.directory.empty()) return 0;
  Status claimed = is_first() ? folder_.Claim() : Status();
  if (claimed && is_first() && settings_.resume.empty()) claimed = CheckEmpty();
  Agree(claimed, "take the folder of checkpoints");
  return settings_.resume.empty() ? 0 : Resume();
}

Status TrainingCheckpoints::CheckEmpty() const {
  DYNAMICCL_TRY(const std::vector<int64_t> steps, folder_.Steps());
  if (steps.empty()) return {};
  return WithHint(
      MakeError(ErrorKind::kInvalidArgument, "--checkpoint-dir {}: has checkpoints, up to step {}",
                settings_.directory, steps.back()),
      "go on from them with --resume, or name another folder");
}

int64_t TrainingCheckpoints::Candidate(int64_t below) const {
  const Result<std::vector<int64_t>> steps =
      is_first() ? folder_.Steps() : Result<std::vector<int64_t>>(std::vector<int64_t>());
  Agree(steps ? Status() : tl::unexpected<Error>(steps.error()), "list the checkpoints");
  const auto end = std::lower_bound(steps->begin(), steps->end(), below);
  const int64_t newest = end == steps->begin() ? -1 : *(end - 1);
  return Sum(is_first() ? newest : 0);
}

int64_t TrainingCheckpoints::Resume() {
  const bool named = settings_.resume != "latest";
  int64_t below = std::numeric_limits<int64_t>::max();
  for (bool damaged = false;; damaged = true) {
    const int64_t step = named ? std::stoll(settings_.resume) : Candidate(below);
    if (step < 0) {
      if (damaged) {
        throw CheckpointFailure({ErrorKind::kCorrupt, settings_.directory + ": no checkpoint is intact",
                                 "to start anew, name another --checkpoint-dir"});
      }
      if (is_first()) tell_("no checkpoint in " + settings_.directory + " yet: starting at step 0");
      return 0;
    }
    const Result<Loaded> loaded = Load(step);
    // Only a damaged checkpoint is skipped. A checkpoint that cannot be read at the moment, or that this run
    // may not use, is still the newest state of the run, and a later save would set it aside.
    const bool refused = !loaded && loaded.error().kind != ErrorKind::kCorrupt;
    const Status outcome = loaded ? Status() : tl::unexpected<Error>(loaded.error());
    if (named || Sum(refused ? 1 : 0) > 0) Agree(outcome, "go on from the checkpoint");
    if (Sum(loaded ? 0 : 1) == 0) {
      Adopt(step, *loaded);
      return step;
    }
    if (!loaded) {
      std::fputs(fmt::format("rank {}: {}", run_.group->rank(), Describe(loaded.error())).c_str(), stderr);
    }
    if (is_first()) tell_(fmt::format("the checkpoint of step {} is damaged and passed over", step));
    below = step;
  }
}

Result<TrainingCheckpoints::Loaded> TrainingCheckpoints::Load(int64_t step) {
  DYNAMICCL_CHECK_OK(folder_.CheckHas(step));
  const std::string path = folder_.PathOf(step);
  DYNAMICCL_TRY(CheckpointReader reader, CheckpointReader::Open(path));
  if (reader.step() != step) {
    return MakeError(ErrorKind::kCorrupt, "{}: the index is of step {}", path, reader.step());
  }
  auto changed = CheckResumable(reader.index().values, ValuesAt(step));
  if (!changed) return Wrap(changed.error(), path);
  const Status sound = CheckEngineValues(reader.index().values);
  if (!sound) return Wrap(sound.error(), path + "/" + kIndexFile);
  DYNAMICCL_CHECK_OK(CheckParameters(reader.index()));
  for (const StateTensor& state : run_.engine->StateTensors()) DYNAMICCL_CHECK_OK(LoadState(state, &reader));
  StateValues values = reader.index().values;
  DropFixedLossScale(values);
  return Loaded{std::move(values), std::move(*changed), reader.index().files.size()};
}

Status TrainingCheckpoints::CheckParameters(const CheckpointIndex& index) const {
  std::set<std::string> own;
  for (int unit = 0; unit < run_.engine->units(); ++unit) {
    for (const ParameterSlot& slot : run_.engine->parameters(unit).unit().parameters) own.insert(slot.name);
  }
  for (const CheckpointTensor& tensor : index.tensors) {
    if (own.contains(tensor.name)) continue;
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "{} of the checkpoint is no parameter of this run's model", tensor.name),
                    "give the --layers of the model that the checkpoint has");
  }
  return {};
}

void TrainingCheckpoints::Adopt(int64_t step, const Loaded& loaded) {
  run_.engine->StateReplaced(loaded.values);
  retention_.newest_own = step;
  if (!is_first()) return;
  tell_(
      fmt::format("resumed from {}: {} steps done, in {} file(s)", folder_.PathOf(step), step, loaded.files));
  for (const std::string& setting : loaded.changed) tell_("  changed since: " + setting);
}

Status TrainingCheckpoints::LoadState(const StateTensor& state, CheckpointReader* reader) const {
  if (reader->index().StateNumber(state.name) < 0) {
    // Imported weights have no moments, so the moments start at zero.
    if (state.name == "master" || !reader->index().values.contains("imported")) {
      return MakeError(ErrorKind::kCorrupt, "the checkpoint has no {}", state.name);
    }
    state.values.zero_();
    return {};
  }
  for (const StateRange& range : run_.engine->StateRanges()) {
    DYNAMICCL_CHECK_OK(LoadRange(range, state, reader));
  }
  return {};
}

Status TrainingCheckpoints::LoadRange(const StateRange& range, const StateTensor& state,
                                      CheckpointReader* reader) const {
  const CheckpointIndex& index = reader->index();
  const ParameterSlot& slot = *range.parameter;
  const int64_t tensor = index.TensorNumber(slot.name);
  const CheckpointTensor own{slot.name, WholeShape(slot)};
  if (tensor < 0 || index.tensors[static_cast<size_t>(tensor)] != own) {
    const std::string saved =
        tensor < 0
            ? "is not there"
            : fmt::format("has shape {}", fmt::join(index.tensors[static_cast<size_t>(tensor)].shape, "x"));
    return MakeError(ErrorKind::kInvalidArgument, "{} {} in the checkpoint, the model wants {}", slot.name,
                     saved, fmt::join(own.shape, "x"));
  }
  const at::Tensor place = state.values.narrow(0, range.offset, range.end - range.begin);
  const at::Tensor host = place.is_cpu() ? place : at::empty(place.sizes(), at::kFloat);
  DYNAMICCL_CHECK_OK(reader->Read(tensor, index.StateNumber(state.name), SliceOf(slot), range.begin,
                                  range.end, host.data_ptr<float>()));
  if (!place.is_cpu()) place.copy_(host);
  return {};
}

StateValues TrainingCheckpoints::ValuesAt(int64_t steps_done) const {
  StateValues values = run_.values;
  values["step"] = std::to_string(steps_done);
  values["data.next_row"] = std::to_string(steps_done * run_.rows_per_step);
  return values;
}

PartContent TrainingCheckpoints::Content(int64_t steps_done) {
  PartContent content;
  content.header = {static_cast<uint64_t>(steps_done), static_cast<uint32_t>(run_.group->rank()),
                    static_cast<uint32_t>(run_.group->world())};
  content.values = ValuesAt(steps_done);
  content.values.merge(run_.engine->Values());
  int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
  for (const StateRange& range : run_.engine->StateRanges()) {
    const ParameterSlot& slot = *range.parameter;
    if (!range.owned || (!slot.sliced() && !run_.writes_whole_parameters)) continue;
    content.ranges.push_back(
        {{slot.name, WholeShape(slot)}, SliceOf(slot), range.begin, range.end, range.offset});
    first = std::min(first, range.offset);
    last = std::max(last, range.offset + range.end - range.begin);
  }
  for (OwnedRange& range : content.ranges) range.offset -= first;
  saved_.clear();
  for (const StateTensor& state : run_.engine->StateTensors()) {
    const at::Tensor own = state.values.narrow(0, std::min(first, last), std::max(last - first, int64_t{0}));
    // Without async saving, training waits for the save, so the numbers are written without copying them
    // first.
    saved_.push_back(own.to(at::kCPU, at::kFloat, /*non_blocking=*/false, /*copy=*/settings_.async));
    content.states.push_back(
        {state.name, {saved_.back().const_data_ptr<float>(), static_cast<size_t>(saved_.back().numel())}});
  }
  return content;
}

void TrainingCheckpoints::AfterStep(int64_t steps_done, bool last) {
  if (settings_.directory.empty()) return;
  if (save_ != nullptr) {
    const Status so_far = save_->Failure();
    if (!so_far) throw CheckpointFailure(so_far.error());
  }
  if (last || (settings_.every > 0 && steps_done % settings_.every == 0)) Save(steps_done);
  if (last || !settings_.async) FinishSave();
}

void TrainingCheckpoints::Save(int64_t steps_done) {
  FinishSave();
  save_ = std::make_unique<BackgroundSave>(folder_, retention_, Content(steps_done));
  retention_.newest_own = steps_done;
}

void TrainingCheckpoints::FinishSave() {
  if (save_ == nullptr) return;
  const std::unique_ptr<BackgroundSave> save = std::move(save_);
  AwaitAll([&](auto patience) { return save->WaitForPart(patience); });
  const Status written = save->WaitForPart();
  const bool all = Sum(written ? 0 : 1) == 0;
  if (!all && is_first()) folder_.DropPartial(save->step());
  if (!all) Agree(written, "write their part of the checkpoint");
  AwaitAll([&](auto patience) { return save->WaitForCommit(patience); });
  Agree(save->WaitForCommit(), "complete the checkpoint");
  if (is_first()) tell_(fmt::format("saved {}", folder_.PathOf(save->step())));
}

}  // namespace dynamiccl::zero
