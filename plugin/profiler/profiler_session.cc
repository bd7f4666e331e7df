// SPDX-License-Identifier: Apache-2.0
#include "plugin/profiler/profiler_session.h"

#include "plugin/border/first_time.h"
#include "plugin/border/no_throw.h"
#include "plugin/border/real_nccl.h"
#include "plugin/runtime/issuing_thread.h"
#include "plugin/runtime/process_runtime.h"
#include "plugin/runtime/runtime_instance.h"
#include "src/base/clock.h"

namespace dynamiccl {
namespace {

// True if the calls that this thread is issuing are captured into a CUDA graph. Only version 5 and later
// report it.
thread_local bool t_captured = false;

CollectiveTimes* TimesOfProcess() noexcept {
  ProcessRuntime* runtime = RuntimeInstance::Get();
  return runtime == nullptr ? nullptr : runtime->times();
}

// Adds the time of a callback, from construction to destruction, to the cost of timing.
class Charged {
 public:
  explicit Charged(CollectiveTimes& times) : times_(times), begun_ns_(MonotonicNanoseconds()) {}
  ~Charged() { times_.Charge(MonotonicNanoseconds() - begun_ns_); }
  Charged(const Charged&) = delete;
  Charged& operator=(const Charged&) = delete;

 private:
  CollectiveTimes& times_;
  const int64_t begun_ns_;
};

void WarnAboutMissingClock(int version) {
  if (!FirstTime("clock")) return;
  Log(LogLevel::kWarn,
      "nothing is timed: version {} of NCCL's profiler interface does not tell when kernels run; NCCL 2.26 "
      "and later do",
      version);
}

void SayThatStampsAreStray() {
  if (!FirstTime("stray stamps")) return;
  Log(LogLevel::kInfo,
      "calls are not timed: NCCL 2.31 and later report the times of other calls unless every call is timed "
      "(DYNAMICCL_TIMES=all)");
}

}  // namespace

const ChainedProfiler* ProfilerToChain(int newest) noexcept {
  static const ChainedProfiler* const found = [newest]() -> const ChainedProfiler* {
    const ChainedProfiler* plugin = nullptr;
    NoThrow([&] {
      ProcessRuntime* runtime = RuntimeInstance::Get();
      const std::optional<std::string> named =
          runtime == nullptr ? std::nullopt : runtime->plugins().profiler_to_chain();
      if (!named) return;
      auto chained = ChainedProfiler::Find(*named, newest);
      if (chained) {
        plugin = new ChainedProfiler(std::move(*chained));
      } else if (!named->empty()) {
        Log(LogLevel::kWarn, "NCCL_PROFILER_PLUGIN is not used: {}", chained.error().message);
      }
    });
    return plugin;
  }();
  return found;
}

EventPairs& PairsOfProcess() noexcept {
  // Never destroyed: NCCL's threads may stop events while the process ends.
  static EventPairs* const pairs = new EventPairs();
  return *pairs;
}

std::unique_ptr<ProfilerSession> ProfilerSession::Begin(const ProfilerInit& init) noexcept {
  std::unique_ptr<ProfilerSession> session;
  NoThrow([&] {
    CollectiveTimes* times = TimesOfProcess();
    if (times == nullptr || init.mask == nullptr) return;
    if (ClockOf(init.version) == KernelClock::kNone) return WarnAboutMissingClock(init.version);
    const bool needs_every_call = NeedsEveryCall(init.version) && !RunsOverHostccl();
    if (needs_every_call && !times->times_all()) return SayThatStampsAreStray();
    times->window().UseMask(init.mask);
    if (needs_every_call) times->window().KeepOpen();
    session.reset(new ProfilerSession(*times, init));
  });
  return session;
}

ProfilerSession::ProfilerSession(CollectiveTimes& times, const ProfilerInit& init)
    : times_(times), init_(init), clock_(ClockOf(init.version)) {}

void ProfilerSession::GroupBegins(bool captured) noexcept {
  t_captured = captured;
}

void* ProfilerSession::BeginCollective(const ProfiledCollective& event) noexcept {
  if (t_captured) return nullptr;
  // An event does not identify its call, so the call is searched among those that this thread is issuing.
  const Charged charged(times_);
  const size_t element = ElementBytes(event.data_type);
  IssuedEvent issued = IssuingThread::Current().EventOf(event.rank, event.collective, event.count * element);
  // A call that the interposer did not see is timed if a timing window is open on this thread. Up to version
  // 3 the number of ranks is only known for calls that the interposer saw.
  if (issued.handle == nullptr && (init_.n_ranks == 0 || !TimingWindow::OpenOnThisThread())) return nullptr;
  const uint64_t bytes = issued.handle != nullptr
                             ? issued.bytes
                             : TotalBytes(event.collective, event.count, element, init_.n_ranks);
  const uint64_t communicator = issued.handle != nullptr ? issued.communicator : init_.communicator;
  void* const handle = times_.kernels().BeginCollective(
      {communicator, event.collective, SizeClassOf(bytes), event.config}, event.config.channels, clock_,
      {issued.call_number, issued.report != nullptr ? *issued.report : nullptr});
  if (issued.handle != nullptr) *issued.handle = handle;
  return handle;
}

void* ProfilerSession::BeginChannel(void* collective, int64_t stamp) noexcept {
  if (collective == nullptr) return nullptr;
  const Charged charged(times_);
  return times_.kernels().BeginChannel(collective, stamp);
}

void ProfilerSession::StopStamp(void* handle, int64_t stamp) noexcept {
  CollectiveTimes* times = TimesOfProcess();
  if (times == nullptr || handle == nullptr) return;
  const Charged charged(*times);
  times->kernels().StopStamp(handle, stamp);
}

void ProfilerSession::End(void* handle) noexcept {
  CollectiveTimes* times = TimesOfProcess();
  if (times == nullptr || handle == nullptr) return;
  const Charged charged(*times);
  NoThrow([&] { times->kernels().End(handle); });
}

}  // namespace dynamiccl
