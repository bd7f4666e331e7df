// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/process_runtime.h"

#include <cstdlib>
#include <utility>

#include "plugin/border/no_throw.h"
#include "plugin/border/real_nccl.h"
#include "plugin/runtime/runtime_instance.h"
#include "src/base/log.h"

namespace dynamiccl {

ProcessRuntime::ProcessRuntime()
    : settings_(ReadJobSettings()),
      choices_(settings_, computed_entries_),
      samples_memory_(accounts_for_calls() || choices_.RulesNeedMemory()),
      plugins_(settings_),
      files_(settings_, choices_, computed_entries_),
      tables_(settings_, choices_.policy(), [this] { return ValuesOfThisProcess(); }),
      rendezvous_(settings_, choices_, [this] { return tables_.NewLeadership(); }) {
  if (TimesCalls(settings_)) StartTiming();
  if (settings_.mode == Mode::kObserve && !AccountsForCalls(settings_)) {
    Log(LogLevel::kWarn, "mode observe without DYNAMICCL_TRACE or DYNAMICCL_METRICS: nothing is recorded");
  }
}

void ProcessRuntime::StartTiming() {
  times_ = std::make_unique<CollectiveTimes>(settings_.times == Timed::kAll);
  static const CollectiveTimes* at_exit = nullptr;
  at_exit = times_.get();
  ::atexit([] { NoThrow([] { Log(LogLevel::kInfo, "{}", at_exit->Summary()); }); });
}

void ProcessRuntime::OpenFiles(int rank) {
  if (files_.Open(rank, Metrics)) RuntimeInstance::SaveAtExit();
}

// Ranks agree on the level of memory pressure only if rules need it, since every change of the level is a
// table version of its own.
AgreedValues ProcessRuntime::ValuesOfThisProcess() const {
  const int pressure = memory_.pressure();
  if (pressure < 0 || !choices_.RulesNeedMemory()) return {};
  return {{std::string(kMemoryPressureValue), pressure}};
}

// The thread that writes the metrics calls this function. It runs only in a process that has a runtime and is
// not a forked child.
MetricsSource ProcessRuntime::Metrics() {
  const ProcessRuntime& runtime = *RuntimeInstance::GetIfCreated();
  auto calls = std::make_shared<CallLedger>();
  calls->Add(runtime.unattributed_ledger_);
  runtime.communicators_.AddLedgersTo(*calls);
  const Recorder* const recorder = runtime.recorder();
  return {.rank = runtime.files_.rank(),
          .mode = Name(runtime.settings_.mode),
          .policy_hash = runtime.choices_.policy_hash(),
          .calls = std::move(calls),
          .entries = &runtime.computed_entries_,
          .times = runtime.times_.get(),
          .guard = GuardsTables(runtime.settings_) ? &runtime.tables_.totals() : nullptr,
          .values = runtime.tables_.Values(),
          .memory_pressure = runtime.memory_.pressure(),
          .records_lost = recorder == nullptr ? 0 : recorder->lost()};
}

// Without a server here no ranks meet at this process, so it leads none.
bool ProcessRuntime::GuardTable(GuardSubject subject) {
  ControlServer* const server = rendezvous_.server();
  if (server == nullptr) return false;
  subject.store = files_.site_store();
  subject.all_timed = settings_.times == Timed::kAll;
  subject.recorder = recorder();
  subject.place.nccl_version = static_cast<uint32_t>(NcclVersion());
  return tables_.Guard(*server, std::move(subject));
}

void ProcessRuntime::Release(Communicator& communicator) {
  communicator.gone.store(true);
  if (communicator.switching.tables) tables_.switch_thread().Leave(communicator.switching.tables);
  rendezvous_.ReleaseGone();
}

void ProcessRuntime::SaveAtExit() noexcept {
  files_.SaveDecisions();
  NoThrow([this] {
    ControlServer* const server = rendezvous_.server();
    const bool learns = tables_.has_guards() && !settings_.site_store_path.empty();
    if (server != nullptr && learns) server->SaveResults();
  });
}

}  // namespace dynamiccl
