// SPDX-License-Identifier: Apache-2.0
// Tests calls that a program issues while its stream is captured into a CUDA graph. The test covers the path
// from the interposed function to the trace. A stand-in for the driver states whether a capture is in
// progress.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <thread>

#include "plugin/interpose/call_stream.h"
#include "plugin/runtime/process_runtime.h"
#include "plugin/runtime/runtime_instance.h"
#include "src/policy/policy_file.h"
#include "tests/support/child_process.h"
#include "tests/support/sample_policy.h"
#include "traces/format/record_views.h"
#include "traces/format/trace_reader.h"

namespace dynamiccl {
namespace {

using testing_support::InChildProcess;

constexpr uint64_t kCalls = 500;
// Without a capture, the calls 330, 331, 420 and 421 are timed.
constexpr uint64_t kCaptureBegins = 280;
constexpr uint64_t kCaptureEnds = 380;
constexpr uint64_t kSwitchInCapture = 335;
constexpr uint64_t kLateSwitchInCapture = 350;

bool CapturedAt(uint64_t call) {
  return call >= kCaptureBegins && call < kCaptureEnds;
}

// One rank in mode adaptive with times and a trace. Its program issues only AllReduces.
class CapturingRank {
 public:
  explicit CapturingRank(const std::string& folder) : trace_path_(folder + "/t.ctrace") {
    const std::string policy = folder + "/p.dcpolicy";
    EXPECT_TRUE(WritePolicyFile(policy, *test::MakePolicyThatPrefers(Algorithm::kRing, Protocol::kSimple)));
    ::setenv("DYNAMICCL_MODE", "adaptive", 1);
    ::setenv("DYNAMICCL_POLICY", policy.c_str(), 1);
    ::setenv("DYNAMICCL_TIMES", "1", 1);
    ::setenv("DYNAMICCL_TRACE", trace_path_.c_str(), 1);
    void* driver = ::dlopen(DYNAMICCL_TEST_CUDA_DRIVER, RTLD_NOW | RTLD_LOCAL);
    capture_ = static_cast<int*>(::dlsym(driver, "captureStatus"));
    communicator_ = std::make_shared<Communicator>();
    communicator_->identity.info = {17, 0, 2, 1};
    communicator_->identity.token = {5};
    communicator_->switching.tables = std::make_shared<SwitchableTables>(
        std::make_shared<DecisionEngine>(EngineOptions{}),
        [](const auto&, const auto&) { return std::make_shared<DecisionEngine>(EngineOptions{}); });
    RuntimeInstance::Get()->communicators().Add(handle(), communicator_);
    RuntimeInstance::Get()->times()->window().UseMask(&mask_);
  }

  // Issues a call. Returns the version of the table that decisions are to use.
  uint32_t Issue(uint64_t number) {
    *capture_ = CapturedAt(number) ? 1 : 0;
    ApiCall call({Collective::kAllReduce, 1000, ncclFloat32}, handle(), nullptr, false);
    EXPECT_EQ(mask_ != 0, InTimingWindow(number) && !CapturedAt(number)) << number;
    const IssuedGroup* group = IssuingThread::Current().GroupOn(communicator_->identity.token);
    EXPECT_NE(group, nullptr);
    const uint32_t version = group == nullptr ? 0 : group->table.version;
    EXPECT_EQ(call.Finish(ncclSuccess), ncclSuccess);
    EXPECT_EQ(mask_, 0) << number;
    return version;
  }

  // Does what the control thread does: prepares a version and its boundary.
  void Prepare(uint32_t version, uint64_t boundary) {
    EXPECT_TRUE(communicator_->switching.tables->OfferNcclsChoice(version));
    communicator_->switching.tables->gate().Arm(boundary, version);
  }
  CallGate& gate() { return communicator_->switching.tables->gate(); }

  // Returns the number of calls with this coverage, which must be equal in the ledger and in the trace.
  uint64_t Counted(Coverage coverage) const {
    return communicator_->issuing.ledger.Calls(coverage, Collective::kAllReduce).calls;
  }
  std::vector<Coverage> Recorded() const {
    RuntimeInstance::Get()->recorder()->Close();
    std::vector<Coverage> calls;
    const auto trace = ReadTrace(trace_path_);
    EXPECT_TRUE(trace) << trace.error().message;
    if (!trace) return calls;
    for (const TraceRecord& record : trace->sections[0].records) {
      if (record.kind == static_cast<uint16_t>(RecordKind::kCollective)) calls.push_back(CoverageOf(record));
    }
    return calls;
  }

 private:
  ncclComm_t handle() { return reinterpret_cast<ncclComm_t>(this); }

  const std::string trace_path_;
  int* capture_ = nullptr;
  int mask_ = 0;
  std::shared_ptr<Communicator> communicator_;
};

class CapturedCalls : public ::testing::Test {
 protected:
  CapturedCalls() {
    std::string folder = std::filesystem::temp_directory_path() / "dynamiccl-capture-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~CapturedCalls() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(CapturedCalls, AreNotTimedAndRecordedAsCaptured) {
  InChildProcess([this] {
    CapturingRank rank(folder_);
    for (uint64_t call = 0; call < kCalls; ++call) EXPECT_EQ(rank.Issue(call), kFirstTableVersion);
    EXPECT_EQ(rank.Counted(Coverage::kCaptured), kCaptureEnds - kCaptureBegins);
    const std::vector<Coverage> recorded = rank.Recorded();
    ASSERT_EQ(recorded.size(), kCalls);
    for (uint64_t call = 0; call < kCalls; ++call)
      EXPECT_EQ(recorded[call] == Coverage::kCaptured, CapturedAt(call)) << call;
  });
}

// Captured calls are numbered like others. If a boundary lies among them, the table changes at this boundary.
TEST_F(CapturedCalls, TakeUpATableAtItsBoundary) {
  InChildProcess([this] {
    CapturingRank rank(folder_);
    rank.Prepare(2, kSwitchInCapture);
    rank.gate().Commit();
    std::thread control;
    for (uint64_t call = 0; call < kCalls; ++call) {
      if (call == kSwitchInCapture + 1) {
        rank.Prepare(3, kLateSwitchInCapture);
        control = std::thread([&] {
          // The verdict comes only when the call already waits for it.
          while (!rank.gate().Reached(kLateSwitchInCapture)) std::this_thread::yield();
          rank.gate().Commit();
        });
      }
      const uint32_t due = call < kSwitchInCapture ? kFirstTableVersion : call < kLateSwitchInCapture ? 2 : 3;
      EXPECT_EQ(rank.Issue(call), due) << call;
    }
    control.join();
  });
}

}  // namespace
}  // namespace dynamiccl
