// SPDX-License-Identifier: Apache-2.0
// The table of recordings with the generators' settings that reproduce them, and the labelling rules.
#include "studies/agents/structure/recorded_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "agents/structure/framework_sequences.h"
#include "src/fingerprint/call_token.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl::agents {
namespace {

// Number of copies of the step in a sequence.
constexpr int kRepeats = 8;
// The step that is repeated. It is not the first, because frameworks learn from the steps before it.
constexpr size_t kSteadyStep = 2;
// The model of all recordings.
constexpr char kModel[] = "gpt:layers=4,hidden=256,vocabulary=8192,sequence=64";

// A recording, the generator of its framework, and the settings that it was recorded with.
struct WireRecording {
  const char* file;
  const char* framework;
  SettingTexts settings;
};

const std::vector<WireRecording>& Recordings() {
  static const std::vector<WireRecording> recordings = {
      {"trace_pt_ddp_n2", "ddp", {}},
      {"trace_pt_ddp_small_n2", "ddp", {{"bucket_bytes", "4194304"}}},
      {"trace_pt_zero1_n2", "zero-redundancy", {}},
      {"trace_pt_fsdp2_n2", "fsdp2", {}},
      {"trace_ds_s1_n2", "deepspeed1", {{"dtype", "float32"}}},
      {"trace_ds_s1_small_bf16_n2", "deepspeed1", {{"reduce_bucket_size", "1000000"}}},
      {"trace_ds_s1_small_bf16_accum2_n2",
       "deepspeed1",
       {{"reduce_bucket_size", "1000000"}, {"accumulation_steps", "2"}}},
      {"trace_ds_s2_small_bf16_n2", "deepspeed2", {{"reduce_bucket_size", "1000000"}}},
      {"trace_ds_s2_small_bf16_ov_accum2_n2",
       "deepspeed2",
       {{"reduce_bucket_size", "1000000"}, {"accumulation_steps", "2"}}},
      {"trace_ds_s3_bf16_n2", "deepspeed3", {}},
      {"trace_ds_s3_small_bf16_n2",
       "deepspeed3",
       {{"reduce_bucket_size", "1000000"},
        {"prefetch_bucket_size", "1000000"},
        {"max_live_parameters", "2000000"},
        {"max_reuse_distance", "500000"}}},
  };
  return recordings;
}

Role RoleOf(const IssuedCall& issued, const KnownJob& job) {
  const CollectiveCall& call = issued.call;
  switch (call.collective) {
    case Collective::kAllReduce:
      if (call.bytes <= kTinyBytes) return Role::kScalar;
      break;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kReduce:
      break;
    default:
      return Role::kOther;
  }
  if (job.tensor_ranks != 0 && call.n_ranks == job.tensor_ranks) return Role::kActivation;
  if (call.collective != Collective::kAllGather) return Role::kGradientReduce;
  return job.stage == ZeroStage::kStage3 ? Role::kParameterGather : Role::kPostStepGather;
}

void Label(const KnownJob& job, bool types_are_told, CallSequence& sequence) {
  for (IssuedCall& issued : sequence.calls) {
    issued.labelled_role = RoleOf(issued, job);
    const bool tells_stage = issued.call.n_ranks != job.tensor_ranks;
    issued.labelled_stage = tells_stage ? job.stage : ZeroStage::kUnknown;
    if (!types_are_told && issued.call.bytes > kTinyBytes) issued.call.data_type = DataType::kFloat16;
  }
}

void RepeatOnlyStep(CallSequence& sequence) {
  if (sequence.step_begins.size() != 1) return;
  const auto begin = sequence.calls.begin() + static_cast<std::ptrdiff_t>(sequence.step_begins.front());
  const std::vector<IssuedCall> step(begin, sequence.calls.end());
  for (int repeat = 1; repeat < 4 && !step.empty(); ++repeat) {
    sequence.step_begins.push_back(sequence.calls.size());
    const uint64_t offset = sequence.calls.back().call.call_number + 1 - step.front().call.call_number;
    for (IssuedCall issued : step) {
      issued.call.call_number += offset;
      sequence.calls.push_back(issued);
    }
  }
}

std::string FileName(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace

std::vector<CallSequence> WireSequences() {
  std::vector<CallSequence> all;
  for (const WireRecording& recording : Recordings()) {
    auto run = RunOf({recording.framework, kModel, {.data = 2}, recording.settings}, kSteadyStep + 1);
    if (!run) throw std::logic_error(run.error().message);
    run->construction.clear();
    run->steps.assign(kRepeats, run->steps[kSteadyStep]);
    for (CallSequence& sequence : SequencesOf(*run, recording.file)) all.push_back(std::move(sequence));
  }
  return all;
}

Result<KnownJob> ParseKnownJob(const std::string& text) {
  const size_t equals = text.find('=');
  const auto wrong = [&] {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "--job {}: not 'stageN=FILE'", text),
                    "for instance stage3=L7B.ctrace, or stage1/8=G13B.ctrace with 8 tensor-parallel ranks");
  };
  if (equals == std::string::npos || !text.starts_with("stage") || equals < 6) return wrong();
  KnownJob job;
  const int stage = text[5] - '0';
  if (stage < 0 || stage > 3) return wrong();
  job.stage = static_cast<ZeroStage>(stage);
  if (equals > 6) {
    const auto [end, error] = std::from_chars(text.data() + 7, text.data() + equals, job.tensor_ranks);
    if (text[6] != '/' || error != std::errc() || end != text.data() + equals) return wrong();
  }
  job.path = text.substr(equals + 1);
  return job;
}

std::vector<CallSequence> LabelKnownJob(const Trace& trace, const KnownJob& job) {
  const auto untold = [](const TraceSection& section) { return section.writer == "aicb"; };
  const bool types_are_told = std::none_of(trace.sections.begin(), trace.sections.end(), untold);
  std::vector<CallSequence> sequences;
  for (CallSequence& sequence : AllSequencesOf(trace, FileName(job.path))) {
    Label(job, types_are_told, sequence);
    RepeatOnlyStep(sequence);
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

Result<std::vector<CallSequence>> ReadKnownJob(const KnownJob& job) {
  DYNAMICCL_TRY(const Trace trace, ReadTrace(job.path));
  return LabelKnownJob(trace, job);
}

}  // namespace dynamiccl::agents
