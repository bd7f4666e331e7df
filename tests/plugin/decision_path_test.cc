// SPDX-License-Identifier: Apache-2.0
// What a decision must not do once its situation is settled: allocate, take a lock, enter the kernel.
// Allocation and locks are this program's functions; the kernel itself forbids the rest (seccomp's strict
// mode: a process that makes any system call but read, write and exit is killed).
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <filesystem>

#include "src/cost_model/tuner_constants.h"
#include "src/decision/decision_engine.h"
#include "src/decision/mask_agreement.h"
#include "src/nccl_abi/tuner_v6.h"
#include "src/policy/policy_file.h"
#include "tests/support/child_process.h"
#include "tests/support/sample_policy.h"

namespace {

std::atomic<long> g_allocations{0};
std::atomic<long> g_locks{0};

}  // namespace

extern "C" {
#define EXPORTED __attribute__((visibility("default")))
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);

EXPORTED void* malloc(size_t bytes) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}

EXPORTED void* calloc(size_t count, size_t bytes) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}

EXPORTED int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static const auto real = reinterpret_cast<Lock>(::dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  g_locks.fetch_add(1, std::memory_order_relaxed);
  return real(mutex);
}
}

namespace dynamiccl {
namespace {

using testing_support::InChildProcess;

constexpr int kKept = 3;
constexpr int kAllocated = 4;
constexpr int kLocked = 5;

// Ends the process, with what `path` did: kKept when it did nothing that is forbidden, and a signal when it
// entered the kernel.
template <typename Path>
[[noreturn]] void RunForbidden(Path&& path) {
  const long allocations = g_allocations.load();
  const long locks = g_locks.load();
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) ::_exit(77);
  path();
  int code = kKept;
  if (g_locks.load() != locks) code = kLocked;
  if (g_allocations.load() != allocations) code = kAllocated;
  ::syscall(SYS_exit, code);
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

// Number of questions that got an answer.
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
        agreed += masks.At({Collective::kAllReduce, size, 9}, call, all) ? 1 : 0;
      }
      return agreed;
    };
    ask(0);
    if (ask(200) != 200) ::_exit(2);
    RunForbidden([&] { ask(400); });
  });
  ExpectKept(status);
}

// The test itself: what it looks for is seen.
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
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

}  // namespace
}  // namespace dynamiccl
