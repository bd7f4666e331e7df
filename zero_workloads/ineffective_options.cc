// SPDX-License-Identifier: Apache-2.0
// A table has a row for each option and each setting without which the option does nothing. The table lacks
// options of stage 3 and of partitioned checkpoints, and the size of buckets: scripts pass these options to
// all runs, also to those in which they do nothing.
#include "zero_workloads/ineffective_options.h"

namespace dynamiccl::zero {
namespace {

struct IneffectiveOption {
  const char* option;
  bool is_ineffective;
  const char* reason;
  const char* hint;
};

tl::unexpected<Error> Rejected(const IneffectiveOption& row) {
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "{} has no effect: {}", row.option, row.reason),
                  row.hint);
}

}  // namespace

Result<std::vector<std::string>> NotesOfIneffectiveOptions(
    const std::function<bool(const char* option)>& given,
    const std::map<std::string, std::string>& translated, const TrainingSettings& settings) {
  const bool fixed = !settings.scales_dynamically();
  const bool one_micro_step = settings.micro_steps == 1;
  const char* const scale = "the loss scale is fixed";
  const char* const dynamic = "add --loss-scale dynamic, or leave the option out";
  const char* const more = "add --micro-steps 2 or more, or leave the option out";
  const IneffectiveOption rows[] = {
      {"--first-loss-scale", fixed, scale, dynamic},
      {"--least-loss-scale", fixed, scale, dynamic},
      {"--loss-scale-growth", fixed, scale, dynamic},
      {"--loss-scale-hysteresis", fixed, scale, dynamic},
      {"--keep-checkpoints", settings.checkpoint.directory.empty(), "the run has no checkpoints",
       "add --checkpoint-dir, or leave the option out"},
      {"--accumulation", one_micro_step, "one micro-step adds up no gradients", more},
      {"--accumulation-type", one_micro_step, "one micro-step adds up no gradients", more},
      {"--accumulation-type",
       !one_micro_step && !settings.accumulates_locally() && settings.accumulation_type != "fp32",
       "sums of shards are in fp32", "add --accumulation local, or leave the option out"},
      {"--offload-buffer-bytes", settings.offload_optimizer == "none", "no states are offloaded",
       "add --offload-optimizer, or leave the option out"},
      {"--memory-allocator", settings.residual.memory_cap == 0, "no memory is capped",
       "add --memory-cap, or leave the option out"},
  };
  std::vector<std::string> notes;
  for (const IneffectiveOption& row : rows) {
    if (!row.is_ineffective || !given(row.option)) continue;
    const auto origin = translated.find(row.option);
    if (origin == translated.end()) return Rejected(row);
    notes.push_back(fmt::format("{}: makes no difference: {}", origin->second, row.reason));
  }
  return notes;
}

}  // namespace dynamiccl::zero
