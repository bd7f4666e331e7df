// SPDX-License-Identifier: Apache-2.0
// Tests what a call and a decision must not do once their situation is settled: allocate, take a lock, or
// enter the kernel. This program replaces the functions that allocate and lock. A seccomp filter kills the
// process at any system call except exit. Seccomp's strict mode is not used: it would also forbid reading the
// processor's clock, which every recorded call does.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "benchmarks/idle_nccl/idle_nccl.h"
#include "plugin/runtime/switchable_tables.h"
#include "src/cost_model/tuner_constants.h"
#include "src/decision/decision_engine.h"
#include "src/decision/mask_agreement.h"
#include "src/nccl_abi/nccl_api.h"
#include "src/nccl_abi/profiler_types.h"
#include "src/nccl_abi/profiler_v6.h"
#include "src/nccl_abi/tuner_v6.h"
#include "src/policy/policy_file.h"
#include "tests/support/child_process.h"
#include "tests/support/sample_policy.h"

namespace {

// Number of allocations of this thread. Other threads of the object may allocate.
thread_local long t_allocations = 0;
thread_local long t_locks = 0;

}  // namespace

extern "C" {
#define EXPORTED __attribute__((visibility("default")))
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);

EXPORTED void* malloc(size_t bytes) {
  ++t_allocations;
  return __libc_malloc(bytes);
}

EXPORTED void* calloc(size_t count, size_t bytes) {
  ++t_allocations;
  return __libc_calloc(count, bytes);
}

EXPORTED int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static const auto real = reinterpret_cast<Lock>(::dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  ++t_locks;
  return real(mutex);
}
}

namespace dynamiccl {
namespace {

using testing_support::InChildProcess;

constexpr int kKept = 3;
constexpr int kAllocated = 4;
constexpr int kLocked = 5;

// Makes every later system call except exit_group end the process with SIGSYS.
bool ForbidSystemCalls() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog filter{sizeof(program) / sizeof(program[0]), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Runs `path` and ends the process. The exit code is kKept if `path` did nothing forbidden. If it entered the
// kernel, a signal ends the process.
template <typename Path>
[[noreturn]] void RunForbidden(Path&& path) {
  const long allocations = t_allocations;
  const long locks = t_locks;
  if (!ForbidSystemCalls()) ::_exit(77);
  path();
  int code = kKept;
  if (t_locks != locks) code = kLocked;
  if (t_allocations != allocations) code = kAllocated;
  ::syscall(SYS_exit_group, code);
  __builtin_unreachable();
}

template <typename Body>
int StatusOfChild(Body&& body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) body();
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

void ExpectKept(int status) {
  ASSERT_TRUE(WIFEXITED(status)) << "entered the kernel: signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "this system has no seccomp";
  EXPECT_EQ(WEXITSTATUS(status), kKept) << "3: none, 4: it allocated, 5: it took a lock";
}

std::string PolicyPath() {
  return std::filesystem::temp_directory_path() / ("decision_path." + std::to_string(::getpid()));
}

ncclTunerConstants_v5_t Constants() {
  CostModelInput input;
  input.constants = NcclHopperConstants(1);
  input.fabric = {4, 1, 8, {1, 10}, {5, 5}};
  return ToTunerConstants(input);
}

// Returns the number of questions that got an answer.
int AskAll(const ncclTuner_v6_t& tuner, void* context) {
  int answered = 0;
  for (size_t bytes = 1; bytes < (size_t{1} << 30); bytes = bytes * 3 / 2 + 1) {
    float table[7][3];
    for (auto& row : table) std::fill(std::begin(row), std::end(row), 50.0f);
    int channels = 0;
    tuner.getCollInfo(context, ncclFuncAllReduce, bytes, 1, reinterpret_cast<float**>(&table), 7, 3, 0,
                      &channels);
    answered += table[1][2] == 0.0f ? 1 : 0;
  }
  return answered;
}

TEST(DecisionPath, WarmTunerNeitherAllocatesNorLocksNorEntersTheKernel) {
  const int status = StatusOfChild([] {
    const auto policy = test::MakePolicyThatPrefers(Algorithm::kRing, Protocol::kSimple);
    const auto digest = WritePolicyFile(PolicyPath(), *policy);
    if (!digest) ::_exit(1);
    ::setenv("DYNAMICCL_POLICY", PolicyPath().c_str(), 1);
    ::setenv("DYNAMICCL_POLICY_SHA256", ToHex(*digest).c_str(), 1);
    void* object = ::dlopen(DYNAMICCL_TEST_PRELOAD, RTLD_NOW | RTLD_LOCAL);
    if (object == nullptr) ::_exit(1);
    const auto& tuner = *static_cast<const ncclTuner_v6_t*>(::dlsym(object, "ncclTunerPlugin_v6"));
    ncclTunerConstants_v5_t constants = Constants();
    ncclNvlDomainInfo_v5_t domains{1, 4, 4};
    void* context = nullptr;
    tuner.init(&context, 17, 4, 1, nullptr, &domains, &constants);
    std::filesystem::remove(PolicyPath());
    if (AskAll(tuner, context) < 10) ::_exit(2);
    RunForbidden([&] { AskAll(tuner, context); });
  });
  ExpectKept(status);
}

// Loads the object between this program and an NCCL that does nothing. Use it in a child process.
class Calls {
 public:
  explicit Calls(const std::vector<std::pair<const char*, std::string>>& settings) {
    ::setenv("DYNAMICCL_NCCL_LIBRARY", DYNAMICCL_TEST_IDLE_NCCL, 1);
    for (const auto& [name, value] : settings) ::setenv(name, value.c_str(), 1);
    // RTLD_GLOBAL, because the idle NCCL looks for its tuner by name.
    object_ = ::dlopen(DYNAMICCL_TEST_PRELOAD, RTLD_NOW | RTLD_GLOBAL);
    idle_ = ::dlopen(DYNAMICCL_TEST_IDLE_NCCL, RTLD_NOW | RTLD_LOCAL);
    if (object_ == nullptr || idle_ == nullptr) ::_exit(1);
    all_reduce_ = Find<decltype(&ncclAllReduce)>(object_, "ncclAllReduce");
    group_start_ = Find<decltype(&ncclGroupStart)>(object_, "ncclGroupStart");
    group_end_ = Find<decltype(&ncclGroupEnd)>(object_, "ncclGroupEnd");
    ncclUniqueId id{};
    if (Find<decltype(&ncclGetUniqueId)>(object_, "ncclGetUniqueId")(&id) != ncclSuccess) ::_exit(1);
    if (Find<decltype(&ncclCommInitRank)>(object_, "ncclCommInitRank")(&comm_, 1, id, 0) != ncclSuccess)
      ::_exit(1);
    for (int i = 0; i < 3; ++i) Issue();
  }

  // Issues calls alone and in groups, of one size class and of several. There are more calls than between two
  // timing windows.
  void Issue() {
    for (size_t i = 0; i < 300; ++i) {
      const bool grouped = i % 3 == 0;
      if (grouped) group_start_();
      for (size_t call = 0; call < (grouped ? 4 : 1); ++call)
        all_reduce_(nullptr, nullptr, size_t{64} << ((i + call) % 16), ncclFloat32, ncclSum, comm_, nullptr);
      if (grouped) group_end_();
    }
  }

  // Returns for how many questions of an Issue() the tuner makes a choice.
  uint64_t Answered() {
    const auto time_questions = Find<decltype(&idleNcclTimeQuestions)>(idle_, "idleNcclTimeQuestions");
    time_questions(true);
    Issue();
    time_questions(false);
    return Find<decltype(&idleNcclQuestions)>(idle_, "idleNcclQuestions")().answered;
  }
  void* object() const { return object_; }
  void RunDuringCalls(void (*hook)()) const {
    Find<decltype(&idleNcclRunDuringCalls)>(idle_, "idleNcclRunDuringCalls")(hook);
  }

 private:
  template <typename Function>
  static Function Find(void* library, const char* name) {
    void* const found = ::dlsym(library, name);
    if (found == nullptr) ::_exit(1);
    return reinterpret_cast<Function>(found);
  }

  void* object_ = nullptr;
  void* idle_ = nullptr;
  ncclComm_t comm_ = nullptr;
  decltype(&ncclAllReduce) all_reduce_ = nullptr;
  decltype(&ncclGroupStart) group_start_ = nullptr;
  decltype(&ncclGroupEnd) group_end_ = nullptr;
};

std::string TracePath() {
  return PolicyPath() + ".ctrace";
}

// Returns false on a machine whose clock the kernel must read. A call cannot be recorded there without
// entering the kernel.
bool ClockIsInTheProgram() {
  const int status = StatusOfChild([] {
    timespec now;
    RunForbidden([&] { ::clock_gettime(CLOCK_MONOTONIC, &now); });
  });
  return WIFEXITED(status) && WEXITSTATUS(status) == kKept;
}

TEST(CallPath, ObservingNeitherAllocatesNorLocksNorEntersTheKernel) {
  if (!ClockIsInTheProgram()) GTEST_SKIP() << "reading this machine's clock enters the kernel";
  const int status = StatusOfChild([] {
    Calls calls({{"DYNAMICCL_TRACE", TracePath()}});
    if (std::filesystem::file_size(TracePath()) == 0) ::_exit(2);
    std::filesystem::remove(TracePath());
    RunForbidden([&] { calls.Issue(); });
  });
  ExpectKept(status);
}

// The path includes the steps of the LSTM and the recording of decisions. A communicator of one rank has
// nothing to gain from a policy, so a rule makes the choices.
TEST(CallPath, DecidingByAPolicyNeitherAllocatesNorLocksNorEntersTheKernel) {
  if (!ClockIsInTheProgram()) GTEST_SKIP() << "reading this machine's clock enters the kernel";
  const int status = StatusOfChild([] {
    const auto policy = test::MakePolicyThatPrefers(Algorithm::kRing, Protocol::kSimple);
    if (!WritePolicyFile(PolicyPath(), *policy)) ::_exit(1);
    const std::string rules = PolicyPath() + ".csv";
    std::ofstream(rules) << "allreduce,0,4194304,ring,simple,2,-1,-1\n";
    Calls calls(
        {{"DYNAMICCL_POLICY", PolicyPath()}, {"DYNAMICCL_RULES", rules}, {"DYNAMICCL_TRACE", TracePath()}});
    for (const std::string& path : {PolicyPath(), rules}) std::filesystem::remove(path);
    std::filesystem::remove(TracePath());
    if (calls.Answered() < 500) ::_exit(2);
    RunForbidden([&] { calls.Issue(); });
  });
  ExpectKept(status);
}

const ncclProfiler_v6_t* g_profiler = nullptr;
void* g_profiler_context = nullptr;
int g_timed = 0;

// Makes the profiler callbacks that NCCL makes for a call and its kernel.
void ProfileCall() {
  ncclProfilerEventDescr_v6_t event{};
  event.type = ncclProfileColl;
  event.coll.func = "AllReduce";
  event.coll.datatype = "ncclFloat32";
  event.coll.algo = "RING";
  event.coll.proto = "SIMPLE";
  event.coll.count = 64;
  event.coll.nChannels = 1;
  void *collective = nullptr, *channel = nullptr;
  g_profiler->startEvent(g_profiler_context, &collective, &event);
  ncclProfilerEventDescr_v6_t of_channel{};
  of_channel.type = ncclProfileKernelCh;
  of_channel.parentObj = collective;
  of_channel.kernelCh.pTimer = 1000;
  g_profiler->startEvent(g_profiler_context, &channel, &of_channel);
  g_timed += channel != nullptr ? 1 : 0;
  ncclProfilerEventStateArgs_v6_t stop{};
  stop.kernelCh.pTimer = 2000;
  g_profiler->recordEventState(channel, ncclProfilerKernelChStop, &stop);
  g_profiler->stopEvent(channel);
  g_profiler->stopEvent(collective);
}

// The callbacks may lock only their event slots, one thread after another, in at most 1 % of the calls.
TEST(CallPath, TimingNeitherAllocatesNorEntersTheKernel) {
  if (!ClockIsInTheProgram()) GTEST_SKIP() << "reading this machine's clock enters the kernel";
  const int status = StatusOfChild([] {
    Calls calls({{"DYNAMICCL_TRACE", TracePath()}, {"DYNAMICCL_TIMES", "1"}});
    std::filesystem::remove(TracePath());
    g_profiler = static_cast<const ncclProfiler_v6_t*>(::dlsym(calls.object(), "ncclProfiler_v6"));
    static int mask = 0;
    g_profiler->init(&g_profiler_context, 17, &mask, "", 1, 1, 0, nullptr);
    calls.RunDuringCalls(ProfileCall);
    calls.Issue();
    if (g_timed == 0) ::_exit(2);
    RunForbidden([&] { calls.Issue(); });
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == kLocked) return;
  ExpectKept(status);
}

// Issues calls on a communicator in mode adaptive. Its table changes at the call `boundary`.
void EnterCalls(uint64_t boundary, uint64_t first, uint64_t last) {
  const auto engine = [](const auto&, const auto&) {
    return std::make_shared<DecisionEngine>(EngineOptions{});
  };
  SwitchableTables tables(std::make_shared<DecisionEngine>(EngineOptions{}), engine);
  if (!tables.Offer(2, std::make_shared<const Policy>(), {})) ::_exit(2);
  CallGate& gate = tables.gate();
  gate.Arm(gate.calls() + boundary, 2);
  gate.Commit();
  tables.Committed(2);
  for (uint64_t call = 0; call < first; ++call) tables.Enter(call);
  RunForbidden([&] {
    for (uint64_t call = first; call < last; ++call) tables.Enter(call);
    if (tables.current().version != (last > boundary ? 2u : 1u)) ::syscall(SYS_exit_group, 2);
  });
}

TEST(CallPath, SwitchableTablesNeitherAllocateNorLockNorEnterTheKernel) {
  ExpectKept(StatusOfChild([] { EnterCalls(300, 0, 200); }));
  ExpectKept(StatusOfChild([] { EnterCalls(100, 200, 400); }));
}

// The call that takes a new table also takes the lock that guards the exchange of tables.
TEST(CallPath, TakingATableNeitherAllocatesNorEntersTheKernel) {
  const int status = StatusOfChild([] { EnterCalls(100, 0, 200); });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kLocked) << status;
}

class AgreesAtOnce final : public MaskExchange {
 public:
  std::shared_ptr<PendingVerdict> Pledge(const MaskPledge&) override {
    auto verdict = std::make_shared<PendingVerdict>();
    verdict->Resolve({.agreed = true});
    return verdict;
  }
};

TEST(DecisionPath, SettledMaskIsOneLoad) {
  const int status = StatusOfChild([] {
    MaskAgreement masks(std::make_unique<AgreesAtOnce>(), [](const CallSituation&, const Verdict&) {});
    const ConfigMask all = NcclConfigs(Collective::kAllReduce);
    const auto ask = [&](uint64_t first_call) {
      int agreed = 0;
      for (uint64_t call = first_call; call < first_call + 200; ++call) {
        const SizeClass size{static_cast<uint8_t>(call % 100)};
        agreed += masks.AgreedMask({Collective::kAllReduce, size, 9}, call, all) ? 1 : 0;
      }
      return agreed;
    };
    ask(0);
    if (ask(200) != 200) ::_exit(2);
    RunForbidden([&] { ask(400); });
  });
  ExpectKept(status);
}

// Checks this test itself: it must notice what is forbidden.
TEST(DecisionPath, WhatIsForbiddenIsNoticed) {
  int status =
      StatusOfChild([] { RunForbidden([] { std::make_unique<std::string>(100, 'x')->at(3) = 'y'; }); });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kAllocated);
  status = StatusOfChild([] {
    std::mutex mutex;
    RunForbidden([&] { const std::lock_guard lock(mutex); });
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kLocked);
  status = StatusOfChild([] { RunForbidden([] { ::syscall(SYS_getpid); }); });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

}  // namespace
}  // namespace dynamiccl
