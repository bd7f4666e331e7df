// SPDX-License-Identifier: Apache-2.0
// Reading a live value enters the communicator's next call, before that call is issued. CallGate::Begin may
// be repeated with the same number. Once a number has begun, no rank can pledge a boundary at or before it.
// So the next call uses the same version as the read.
#include "plugin/interpose/agreed_value.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "plugin/border/first_time.h"
#include "plugin/border/no_throw.h"
#include "plugin/interpose/call_stream.h"
#include "plugin/runtime/process_runtime.h"
#include "plugin/runtime/runtime_instance.h"
#include "src/base/log.h"
#include "src/decision/agreed_values.h"

namespace dynamiccl {
namespace {

void LogOnce(const std::string& why) {
  if (FirstTime(why)) Log(LogLevel::kWarn, "live values stay as the program has them: {}", why);
}

// Returns the reason why values do not change on the communicator. The reason is equal on all ranks of the
// communicator.
std::string WhyNot(const ProcessRuntime& runtime, const Communicator& communicator) {
  if (runtime.settings().mode != Mode::kAdaptive) return "DYNAMICCL_MODE is not adaptive";
  if (!communicator.config.blocking) return "the communicator is non-blocking";
  return "the ranks of the communicator did not agree to change anything";
}

// Keeps the communicator alive while a value is read. A group that the thread has open on the communicator
// has entered the communicator already, and leaves it at the group's end.
class Visit {
 public:
  Visit(Communicator& communicator, IssuingThread& thread)
      : communicator_(communicator),
        in_group_(std::any_of(thread.calls.begin(), thread.calls.end(),
                              [&](const PendingCall& call) { return call.communicator == &communicator; })),
        entered_(communicator.in_flight_calls.Enter(&thread)) {}
  ~Visit() {
    if (!in_group_) communicator_.in_flight_calls.Leave();
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  bool entered() const { return entered_; }

 private:
  Communicator& communicator_;
  const bool in_group_;
  const bool entered_;
};

// Returns the communicator of a handle that the program passed; null if it is not known. A null handle means
// the first communicator of all ranks.
Communicator* CommunicatorOf(ProcessRuntime& runtime, ncclComm_t comm) {
  CommunicatorRegistry& registry = runtime.communicators();
  if (comm != nullptr) return registry.Find(comm);
  const int world = runtime.settings().world;
  if (world == 0) LogOnce("WORLD_SIZE is not set, so the communicator of all ranks is not known");
  return world == 0 ? nullptr : registry.FirstOfSize(world);
}

}  // namespace

bool ReadAgreedValue(ncclComm_t comm, const char* name, int64_t fallback, int64_t* value) noexcept {
  if (value == nullptr) return false;
  *value = fallback;
  bool agreed = false;
  NoThrow([&] {
    ProcessRuntime* const runtime = RuntimeInstance::GetIfWatching();
    if (runtime == nullptr || name == nullptr) return;
    Communicator* const communicator = CommunicatorOf(*runtime, comm);
    if (communicator == nullptr) return;
    const Visit visit(*communicator, IssuingThread::Current());
    if (!visit.entered()) return;
    const std::shared_ptr<SwitchableTables> tables = communicator->switching.tables;
    if (!tables) return LogOnce(WhyNot(*runtime, *communicator));
    EnterVersion(*communicator, communicator->issuing.next_call);
    if (tables->values() == nullptr) return;
    const auto found = tables->values()->find(std::string_view(name));
    if (found == tables->values()->end()) return;
    *value = found->second;
    agreed = true;
  });
  return agreed;
}

bool ProposeAgreedValue(ncclComm_t comm, const char* name, int64_t value) noexcept {
  bool proposed = false;
  NoThrow([&] {
    ProcessRuntime* const runtime = RuntimeInstance::GetIfWatching();
    if (runtime == nullptr || name == nullptr) return;
    if (!IsValueName(name)) return LogOnce(fmt::format("'{:.40}' is no name of a value", name));
    const Communicator* const communicator = CommunicatorOf(*runtime, comm);
    if (communicator == nullptr) return;
    proposed = runtime->tables().Propose(communicator->identity.token, {name, value});
    if (!proposed) LogOnce(WhyNot(*runtime, *communicator));
  });
  return proposed;
}

}  // namespace dynamiccl
