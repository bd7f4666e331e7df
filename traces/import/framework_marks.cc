// SPDX-License-Identifier: Apache-2.0
// Two tables of names, and the rule for process groups. See framework_marks.h.
#include "traces/import/framework_marks.h"

#include <algorithm>

namespace dynamiccl {
namespace {

constexpr std::string_view kDdp = "PyTorch DDP", kFsdp = "PyTorch FSDP", kDeepSpeed = "DeepSpeed",
                           kMegatron = "Megatron-Core";

struct NamedMark {
  std::string_view text;
  std::string_view framework;
};
// Beginnings of event names: those of torch/nn/parallel/distributed.py, of DDP's reducer and of
// torch/distributed/fsdp (PyTorch 2.13), and DeepSpeed's engine as a module.
constexpr NamedMark kNames[] = {{"DistributedDataParallel.forward", kDdp},
                                {"torch.distributed.ddp.reducer::", kDdp},
                                {"FullyShardedDataParallel.", kFsdp},
                                {"FSDP::", kFsdp},
                                {"nn.Module: DeepSpeedEngine_", kDeepSpeed}};
// Parts of paths of Python files. A part begins the path or follows a slash. Each has two folders at least,
// because a user's own folder may be called like the framework.
constexpr NamedMark kFiles[] = {{"torch/nn/parallel/distributed.py", kDdp},
                                {"torch/distributed/fsdp/", kFsdp},
                                {"deepspeed/runtime/", kDeepSpeed},
                                {"megatron/core/", kMegatron}};

// True if the path has `part` at its beginning or behind a slash.
bool HasPart(std::string_view path, std::string_view part) {
  const size_t at = path.find(part);
  return at != path.npos && (at == 0 || path[at - 1] == '/');
}

}  // namespace

void FrameworkMarks::Add(std::string_view framework, std::string_view seen) {
  const bool known = std::ranges::count(marks_, framework, &FrameworkMark::framework) > 0;
  if (!known) marks_.push_back({std::string(framework), std::string(seen)});
}

void FrameworkMarks::NoteName(std::string_view name) {
  for (const NamedMark& mark : kNames) {
    if (name.starts_with(mark.text)) Add(mark.framework, name.substr(0, name.find(' ', mark.text.size())));
  }
  if (const size_t line = name.find(".py("); line != name.npos) NoteFile(name.substr(0, line + 3));
}

void FrameworkMarks::NoteFile(std::string_view path) {
  for (const NamedMark& mark : kFiles) {
    if (HasPart(path, mark.text)) Add(mark.framework, path.substr(path.find(mark.text)));
  }
}

// Megatron-Core describes its groups by the names of its variables, such as TENSOR_MODEL_PARALLEL_GROUP and
// DATA_PARALLEL_GROUP_WITH_CP (megatron/core/parallel_state.py).
void FrameworkMarks::NoteGroup(std::string_view description) {
  const bool capitals =
      std::ranges::all_of(description, [](char c) { return c == '_' || (c >= 'A' && c <= 'Z'); });
  if (capitals && description.find("_PARALLEL_GROUP") != description.npos) Add(kMegatron, description);
}

}  // namespace dynamiccl
