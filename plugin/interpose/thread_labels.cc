// SPDX-License-Identifier: Apache-2.0
#include "plugin/interpose/thread_labels.h"

#include "plugin/runtime/issuing_thread.h"
#include "plugin/runtime/process_runtime.h"
#include "plugin/runtime/runtime_instance.h"

namespace dynamiccl {

void MarkPhaseOfThisThread(int phase, int zero_stage, long long step) noexcept {
  ProcessRuntime* runtime = RuntimeInstance::GetIfWatching();
  if (runtime == nullptr) return;
  IssuingThread& thread = IssuingThread::Current();
  CallLabels& labels = thread.labels;
  labels.phase = phase >= 0 && phase < kPhases ? static_cast<Phase>(phase) : Phase::kUnknown;
  labels.stage =
      zero_stage >= 0 && zero_stage < kZeroStages ? static_cast<ZeroStage>(zero_stage) : ZeroStage::kUnknown;
  if (Recorder* recorder = runtime->recorder()) {
    recorder->Append(
        StepRecord({thread.clock.Now(), static_cast<uint64_t>(step), labels.phase, labels.stage}));
  }
}

void MarkRoleOfThisThread(int role) noexcept {
  IssuingThread::Current().labels.role =
      role >= 0 && role < kLabelledRoles ? static_cast<Role>(role) : Role::kUnknown;
}

void MarkMemoryOfThisProcess(long long free_bytes, long long total_bytes) noexcept {
  ProcessRuntime* runtime = RuntimeInstance::GetIfWatching();
  if (runtime == nullptr || free_bytes < 0 || total_bytes < free_bytes || total_bytes == 0) return;
  const MemoryView memory{IssuingThread::Current().clock.Now(), static_cast<uint64_t>(free_bytes),
                          static_cast<uint64_t>(total_bytes)};
  runtime->memory().Report({memory.free_bytes, memory.total_bytes});
  if (Recorder* recorder = runtime->recorder()) recorder->Append(MemoryRecord(memory));
}

void MarkSamplesOfThisProcess(long long samples) noexcept {
  ProcessRuntime* runtime = RuntimeInstance::GetIfWatching();
  if (runtime == nullptr || samples < 1) return;
  if (Recorder* recorder = runtime->recorder())
    recorder->Append(SamplesRecord({IssuingThread::Current().clock.Now(), static_cast<uint64_t>(samples)}));
}

}  // namespace dynamiccl
