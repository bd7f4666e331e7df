// SPDX-License-Identifier: Apache-2.0
// Tests receipts on files with known content. In half of the tests the files do not show the answer, which
// must then be "not provable". cases.json has runs of NCCL itself.
#include "tools/receipt/receipt.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tools/receipt/nccl_variables.h"
#include "tools/receipt/receipt_text.h"
#include "traces/format/record_views.h"
#include "traces/format/trace_files.h"

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;

// Returns the log of an NCCL 2.28.9 process that makes a communicator of two ranks. `between` has its lines
// in the middle.
std::string Process(const std::string& between, int process = 7) {
  std::string text;
  const auto add = [&](const std::string& line) {
    text += fmt::format("node:{}:{} [0] NCCL INFO {}\n", process, process, line);
  };
  add("cudaDriverVersion 13000");
  add("NCCL version 2.28.9+cuda12.9");
  for (size_t at = 0; at < between.size();) {
    const size_t end = std::min(between.find('\n', at), between.size());
    add(between.substr(at, end - at));
    at = end + 1;
  }
  add("ncclCommInitRank comm 0x7f14 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 18000 commId 0xec51 - Init "
      "COMPLETE");
  return text;
}

class Receipts : public ::testing::Test {
 protected:
  Receipts() { std::filesystem::create_directories(folder_); }
  ~Receipts() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  std::vector<Receipt> Of(const std::vector<std::string>& paths, const std::vector<std::string>& asked = {}) {
    std::vector<AskedSetting> settings;
    for (const std::string& word : asked) settings.push_back(ParseAskedSetting(word).value());
    const Result<Evidence> evidence = ReadEvidence(paths, settings);
    EXPECT_TRUE(evidence) << evidence.error().message;
    return evidence ? WriteReceipts(*evidence) : std::vector<Receipt>{};
  }

  // Returns the receipt of one requested setting from the log of one process.
  Receipt One(const std::string& log, const std::string& asked) {
    const std::vector<Receipt> receipts = Of({Write("nccl.log", log)}, {asked});
    return receipts.empty() ? Receipt{} : receipts.front();
  }

  std::string folder_ = ::testing::TempDir() + fmt::format("receipt_{}", ::getpid());
};

TEST_F(Receipts, AChoiceThatNcclLoggedProvesTheAlgorithm) {
  const Receipt receipt = One(Process("NCCL_ALGO set by environment to Ring\n"
                                      "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}"),
                              "NCCL_ALGO=ring,tree");
  EXPECT_EQ(receipt.standing, Standing::kNotInEffect) << "NCCL read another value";
  const Receipt same = One(Process("NCCL_ALGO set by environment to ring,tree\n"
                                   "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}"),
                           "NCCL_ALGO=ring,tree");
  EXPECT_EQ(same.standing, Standing::kInEffect);
  EXPECT_EQ(same.effect, "AllReduce: Ring (1 call)");
  EXPECT_EQ(same.proof->number, 4u);
}

TEST_F(Receipts, ACallOfAnotherAlgorithmRefutes) {
  const Receipt receipt = One(Process("NCCL_PROTO set by environment to ^LL\n"
                                      "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}"),
                              "NCCL_PROTO=^LL");
  EXPECT_EQ(receipt.standing, Standing::kNotInEffect);
  EXPECT_EQ(receipt.effect, "AllReduce: LL (1 call)");
}

TEST_F(Receipts, CallsOfASymmetricKernelRunNoAlgorithm) {
  const Receipt receipt = One(
      Process(
          "NCCL_ALGO set by environment to Ring\n"
          "AllReduce [Symmetric]: 1024 Bytes -> Kernel AllReduce_AGxLL_R nchannels 2 nthreads 512 nWorks 1"),
      "NCCL_ALGO=Ring");
  EXPECT_EQ(receipt.standing, Standing::kNotInEffect);
  EXPECT_THAT(receipt.effect, HasSubstr("symmetric kernel AllReduce_AGxLL_R"));
}

TEST_F(Receipts, TheCopyEngineProvesPolicyZero) {
  const std::string engine =
      "NCCL_CTA_POLICY set by environment to 2.\nAllGather [Copy Engine]: 1024 Bytes -> cudaMemcpyBatchAsync";
  EXPECT_EQ(One(Process(engine), "NCCL_CTA_POLICY=2").standing, Standing::kInEffect);
}

TEST_F(Receipts, AProcessThatNeverReadAVariableDoesNotHaveIt) {
  const Receipt receipt = One(Process("NCCL_BUFFSIZE set by environment to 65536."), "NCCL_MAX_CTAS=4");
  EXPECT_EQ(receipt.standing, Standing::kNotInEffect);
  EXPECT_THAT(receipt.reason, HasSubstr("launcher"));
}

// The log lacks one thing. The absence of a line then proves nothing.
TEST_F(Receipts, AnIncompleteLogDoesNotShowThatAVariableIsNotSet) {
  const std::string environment = "NCCL_BUFFSIZE set by environment to 65536.";
  EXPECT_EQ(One(Process(""), "NCCL_MAX_CTAS=4").standing, Standing::kNotProvable) << "no line of ENV";
  std::string cut = Process(environment);
  cut.erase(0, cut.find('\n') + 1);
  EXPECT_EQ(One(cut, "NCCL_MAX_CTAS=4").standing, Standing::kNotProvable) << "the beginning is missing";
  std::string running = Process(environment);
  running.resize(running.rfind("node:"));
  EXPECT_EQ(One(running, "NCCL_MAX_CTAS=4").standing, Standing::kNotProvable) << "no communicator was made";
  std::string alone = Process(environment);
  alone.replace(alone.find("nranks 2"), 8, "nranks 1");
  EXPECT_EQ(One(alone, "NCCL_MAX_CTAS=4").standing, Standing::kNotProvable) << "a communicator of one rank";
  std::string newer = Process(environment);
  newer.replace(newer.find("2.28.9"), 6, "2.99.0");
  EXPECT_EQ(One(newer, "NCCL_MAX_CTAS=4").standing, Standing::kNotProvable) << "a release that is not known";
  EXPECT_EQ(One(Process(environment), "NCCL_IB_TIMEOUT=22").standing, Standing::kNotProvable)
      << "NCCL reads it only with InfiniBand";
}

TEST_F(Receipts, ChannelsThatFitProveNothingUnlessNcclReadTheBound) {
  const std::string channels =
      "8 coll channels, 8 collnet channels, 0 nvls channels, 8 p2p channels, 2 p2p channels per peer";
  const std::string log =
      "node:7:7 [0] NCCL INFO NCCL version 2.28.9+cuda12.9\nnode:7:7 [0] NCCL INFO " + channels + "\n";
  EXPECT_EQ(One(log, "NCCL_MAX_NCHANNELS=16").standing, Standing::kNotProvable);
  EXPECT_EQ(One(log, "NCCL_MAX_NCHANNELS=4").standing, Standing::kNotInEffect);
  EXPECT_EQ(One(Process("NCCL_MAX_NCHANNELS set by environment to 16.\n" + channels), "NCCL_MAX_NCHANNELS=16")
                .standing,
            Standing::kInEffect);
}

TEST_F(Receipts, CommunicatorsOfUnlikeChannelsAreNotTakenTogether) {
  const Receipt receipt = One(
      Process(
          "NCCL_MIN_NCHANNELS set by environment to 8.\n"
          "8 coll channels, 8 collnet channels, 0 nvls channels, 8 p2p channels, 2 p2p channels per peer\n"
          "2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer"),
      "NCCL_MIN_NCHANNELS=8");
  EXPECT_EQ(receipt.standing, Standing::kNotProvable);
  EXPECT_EQ(receipt.effect, "2 to 8 channels");
}

TEST_F(Receipts, AProgramsConfigLosesToTheEnvironment) {
  const std::string channels =
      "8 coll channels, 8 collnet channels, 0 nvls channels, 8 p2p channels, 2 p2p channels per peer";
  const auto of = [&](const std::string& lines) { return Of({Write("nccl.log", Process(lines))}).front(); };
  const Receipt lost = of("Comm config Max CTAs set to 4\nComm config maxCTAs reset to NCCL_MAX_CTAS=8");
  EXPECT_EQ(lost.asked.name, "ncclConfig_t.maxCTAs");
  EXPECT_EQ(lost.standing, Standing::kNotInEffect);
  EXPECT_EQ(lost.effect, "NCCL_MAX_CTAS=8");
  EXPECT_EQ(of("Comm config Max CTAs set to 8\n" + channels).standing, Standing::kInEffect);
  EXPECT_EQ(of("Comm config Min CTAs set to 16\n" + channels).standing, Standing::kNotProvable)
      << "it may be another communicator that has 8";
}

std::string Channels(int channels) {
  return fmt::format(
      "{0} coll channels, {0} collnet channels, 0 nvls channels, {0} p2p channels, 2 p2p channels "
      "per peer\n",
      channels);
}
std::string Making(int communicator, const char* what) {
  return fmt::format(
      "ncclCommInitRankConfig comm 0x{:x} rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 18000 commId "
      "0x{:x} - Init {}\n",
      communicator, communicator, what);
}

// Communicators are made in turn. Each config must be compared with its own communicator's channels.
TEST_F(Receipts, ConfigsAreHeldAgainstTheirOwnCommunicator) {
  const std::string log = Process(
      "Comm config Min CTAs set to 2\nComm config Max CTAs set to 2\n" + Making(1, "START") + Channels(2) +
      Making(1, "COMPLETE") + "Comm config Min CTAs set to 16\n" + Making(2, "START") + Channels(8) +
      Making(2, "COMPLETE") + Making(3, "START") + Channels(24) + Making(3, "COMPLETE"));
  const std::vector<Receipt> receipts = Of({Write("nccl.log", log)});
  ASSERT_EQ(receipts.size(), 3u);
  EXPECT_EQ(receipts[0].effect, "2 channels");
  EXPECT_EQ(receipts[1].standing, Standing::kInEffect) << "other communicators have more";
  EXPECT_EQ(receipts[2].standing, Standing::kNotInEffect);
  EXPECT_EQ(receipts[2].effect, "8 channels");
}

// Two communicators are made at the same time. A line of channels may belong to either.
TEST_F(Receipts, ConfigsOfCommunicatorsMadeAtATimeAreNotAttributed) {
  const std::string in_turn = "Comm config Max CTAs set to 2\n" + Making(1, "START");
  const std::string both = in_turn + "Comm config Max CTAs set to 4\n" + Making(2, "START") + Channels(8) +
                           Channels(4) + Making(1, "COMPLETE") + Making(2, "COMPLETE");
  for (const Receipt& receipt : Of({Write("nccl.log", Process(both))}))
    EXPECT_EQ(receipt.standing, Standing::kNotProvable) << receipt.asked.value;
  const std::string group = "Comm config Max CTAs set to 2\nComm config Max CTAs set to 4\n" +
                            Making(1, "START") + Channels(8) + Making(1, "COMPLETE");
  for (const Receipt& receipt : Of({Write("nccl.log", Process(group))}))
    EXPECT_EQ(receipt.standing, Standing::kNotProvable) << receipt.asked.value;
}

TEST_F(Receipts, MembersWithoutALineOfTheirOwnLoseToWhatNcclRead) {
  const Receipt lost = Of({Write("nccl.log", Process("NCCL_COMM_BLOCKING set by environment to 1.\n"
                                                     "Comm config Blocking set to 0"))})
                           .back();
  EXPECT_EQ(lost.asked.name, "ncclConfig_t.blocking");
  EXPECT_EQ(lost.effect, "NCCL_COMM_BLOCKING=1");
  const Receipt kept = Of({Write("nccl.log", Process("Comm config Blocking set to 0"))}).back();
  EXPECT_EQ(kept.standing, Standing::kNotProvable);
  EXPECT_EQ(kept.reason, "NCCL took it, and logs no line of what came of it");
  const Receipt refused = Of({Write("nccl.log", Process("Comm config CGA cluster size set to 99\n"
                                                        "Invalid config cgaClusterSize attribute value 99"))})
                              .back();
  EXPECT_EQ(refused.effect, "the communicator was not made");
}

TEST_F(Receipts, SelectionsOfCalls) {
  const std::vector<Receipt> receipts = Of(
      {Write("nccl.log",
             Process("algSelection: RING_SIMPLE picked within the selected set\n"
                     "config->algSelection \"PAT_SIMPLE\" cannot be honored for AllReduce; falling back to "
                     "automatic selection\n"
                     "config->algSelection \"NVLS\" cannot be honored for Reduce (set forceAlgSelection=0 to "
                     "if need to allow fall back to automatic selection)"))});
  ASSERT_EQ(receipts.size(), 3u);
  EXPECT_EQ(receipts[0].effect, "RING_SIMPLE was picked");
  EXPECT_EQ(receipts[1].asked.value, "PAT_SIMPLE");
  EXPECT_EQ(receipts[1].effect, "NCCL's own choice");
  EXPECT_EQ(receipts[2].effect, "the call failed");
}

// Before 2.24, the line about a failure does not name the variables.
TEST_F(Receipts, AnUnnamedFailureBlamesAValueThatAdmitsNothing) {
  std::string log = Process("NCCL_ALGO set by environment to Ring\nNCCL_PROTO set by environment to LL256");
  log.replace(log.find("2.28.9"), 6, "2.22.3");
  log += "node:7:7 [0] enqueue.cc:1606 NCCL WARN Error : no algorithm/protocol available\n";
  EXPECT_EQ(One(log, "NCCL_PROTO=LL256").standing, Standing::kNotInEffect);
  EXPECT_EQ(One(log, "NCCL_ALGO=Ring").standing, Standing::kNotProvable);
}

TEST_F(Receipts, ANumberIsComparedAsANumber) {
  EXPECT_EQ(One(Process("NCCL_BUFFSIZE set by environment to 65536."), "NCCL_BUFFSIZE=0x10000").standing,
            Standing::kNotProvable)
      << "read as it was asked, and nothing shows the buffers";
  EXPECT_EQ(One(Process("NCCL_BUFFSIZE set by environment to 8."), "NCCL_BUFFSIZE=8M").standing,
            Standing::kNotInEffect);
}

TEST_F(Receipts, ThreadsOfSocketsDoNothingOnAnotherNetwork) {
  EXPECT_EQ(One(Process("Using network IB"), "NCCL_SOCKET_NTHREADS=8").standing, Standing::kNotInEffect);
  EXPECT_EQ(One(Process("Using network FastSocket"), "NCCL_SOCKET_NTHREADS=8").standing,
            Standing::kNotProvable)
      << "a plugin derived from NCCL's sockets reads it too";
}

TEST_F(Receipts, QuotesAreBlamedOnlyWhereNcclReadThem) {
  EXPECT_NE(One(Process("NCCL_ALGO set by environment to 'Ring'"), "NCCL_ALGO=Ring").reason.find("quotes"),
            std::string::npos);
  EXPECT_EQ(One(Process("NCCL_ALGO set by environment to Tree"), "NCCL_ALGO='Ring'").reason,
            "another value reached the process");
  EXPECT_EQ(One(Process("NCCL_NTHREADS set by environment to 0."), "NCCL_NTHREADS=256").reason,
            "another value reached the process");
}

TEST_F(Receipts, AdviceThatNamesAVariableIsNoComplaintAboutIt) {
  const Receipt receipt =
      One(Process("NCCL_IGNORE_DISABLED_P2P set by environment to 1.\n"
                  "P2P is disabled between connected GPUs 0 and 1. You can repress this message with "
                  "NCCL_IGNORE_DISABLED_P2P=1."),
          "NCCL_IGNORE_DISABLED_P2P=1");
  EXPECT_EQ(receipt.standing, Standing::kNotProvable);
}

// The kernel's name is the same for all protocols, and for all algorithms except Tree.
TEST_F(Receipts, AKernelsNameTellsTreeAndNothingElse) {
  const auto profile = [&](const std::string& kernel) {
    return Write("profile.json",
                 R"({"schemaVersion":1,"traceEvents":[{"ph":"X","cat":"kernel","name":")" + kernel +
                     R"(","pid":0,"tid":7,"ts":1,"dur":5,"args":{"stream":7,"correlation":1}}]})");
  };
  const std::string ring =
      profile("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  EXPECT_EQ(Of({ring}, {"NCCL_PROTO=Simple"}).front().standing, Standing::kNotProvable);
  EXPECT_EQ(Of({ring}, {"NCCL_ALGO=Ring"}).front().standing, Standing::kNotProvable)
      << "NVLS has that name too";
  EXPECT_EQ(Of({ring}, {"NCCL_ALGO=Tree"}).front().standing, Standing::kNotInEffect);
  EXPECT_EQ(Of({ring}, {"NCCL_ALGO=allgather:ring"}).front().standing, Standing::kNotProvable);
  const std::string tree =
      profile("ncclDevKernel_AllReduce_Sum_f32_TREE_LL(ncclDevKernelArgsStorage<4096ul>)");
  EXPECT_EQ(Of({tree}, {"NCCL_ALGO=Ring"}).front().standing, Standing::kNotInEffect);
  EXPECT_EQ(Of({tree}, {"NCCL_ALGO=^Ring"}).front().standing, Standing::kNotProvable);
}

// The names are those of NCCL 2.27.7 and 2.32.3, of kernels in PyTorch and vLLM, and of a kernel that Triton
// generated.
TEST_F(Receipts, SymmetricKernelsOfAProfileRunNoAlgorithmAndOtherLibrariesKernelsProveNothing) {
  const auto standing = [&](const std::string& kernel, const std::string& asked) {
    const std::string profile = Write(
        "profile.json", R"({"schemaVersion":1,"traceEvents":[{"ph":"X","cat":"kernel","name":")" + kernel +
                            R"(","pid":0,"tid":7,"ts":1,"dur":5,"args":{"stream":7,"correlation":1}}]})");
    return Of({profile}, {asked}).front().standing;
  };
  for (const char* kernel :
       {"ncclSymDevKernel_AllReduce_RSxLDMC_Sum_bf16(ncclSymDevArgs)",
        "ncclSymkDevKernel_AllReduce_RSxTmaLD_AGxTmaST_Sum_f32(ncclSymkDevWorkArgs4K)"}) {
    EXPECT_EQ(standing(kernel, "NCCL_ALGO=Tree"), Standing::kNotInEffect) << kernel;
    EXPECT_EQ(standing(kernel, "NCCL_PROTO=Simple"), Standing::kNotInEffect) << kernel;
    EXPECT_EQ(standing(kernel, "NCCL_ALGO=allgather:ring"), Standing::kNotProvable) << kernel;
    EXPECT_EQ(standing(kernel, "NCCL_WIN_ENABLE=1"), Standing::kInEffect) << kernel;
  }
  for (const char* kernel :
       {"void c10d::symmetric_memory::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned "
        "long)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)",
        "triton_comm_fused__to_copy_all_reduce_0"}) {
    EXPECT_EQ(standing(kernel, "NCCL_ALGO=Tree"), Standing::kNotProvable) << kernel;
    EXPECT_EQ(standing(kernel, "NCCL_WIN_ENABLE=1"), Standing::kNotProvable) << kernel;
  }
}

TEST_F(Receipts, ANameThatOnlyAPluginMayKnowIsNotCalledWrong) {
  EXPECT_EQ(One(Process(""), "NCCL_INSPECTOR_ENABLE=1").standing, Standing::kNotProvable);
  EXPECT_EQ(One(Process(""), "NCCL_MAXNCHANNELS=4").standing, Standing::kNotInEffect);
}

TEST_F(Receipts, AnEnvironmentIsReadAsEnvPrintsItAndAsTheKernelHoldsIt) {
  const std::string printed = Write("a", "HOME=/root\nNCCL_ALGO=Ring\nPATH=/bin\nDYNAMICCL_MODE=off\n");
  const std::string held = Write("b", std::string("HOME=/root\0NCCL_PROTO=LL\0", 26));
  const std::string script = Write("c", "# the job\nexport NCCL_P2P_LEVEL=\"NVL\"\n");
  const std::vector<Receipt> receipts = Of({printed, held, script});
  ASSERT_EQ(receipts.size(), 4u);
  EXPECT_EQ(receipts[0].asked.name, "NCCL_ALGO");
  EXPECT_EQ(receipts[0].asked.from.number, 2u);
  EXPECT_EQ(receipts[1].asked.name, "DYNAMICCL_MODE");
  EXPECT_EQ(receipts[2].asked.value, "LL");
  EXPECT_EQ(receipts[3].asked.value, "NVL");
}

TEST_F(Receipts, WrongInputIsNamed) {
  EXPECT_THAT(ReadEvidence({Write("notes.txt", "no settings here\n")}, {}).error().message,
              HasSubstr("notes.txt"));
  EXPECT_THAT(ReadEvidence({Write("empty", "")}, {}).error().message, HasSubstr("empty"));
  EXPECT_THAT(ParseAskedSetting("NCCL_ALGO").error().message, HasSubstr("NAME=VALUE"));
  EXPECT_THAT(ParseAskedSetting("PATH=/bin").error().hint, HasSubstr("NCCL_*"));
}

TEST_F(Receipts, TheTableOfVariablesKnowsReleases) {
  EXPECT_TRUE(FindNcclVariable("NCCL_ALGO")->In({2, 18, 1}));
  EXPECT_FALSE(FindNcclVariable("NCCL_WIN_ENABLE")->In({2, 26, 5}));
  EXPECT_TRUE(FindNcclVariable("NCCL_WIN_ENABLE")->In({2, 27, 7}));
  EXPECT_FALSE(FindNcclVariable("NCCL_SHM_MEMCPY_MODE")->In({2, 32, 3}));
  EXPECT_FALSE(FindNcclVariable("NCCL_CONFIG_INITIALIZER")) << "a macro of the header";
  EXPECT_EQ(NearestNcclVariable("NCCL_SOCKET_IFNAMES"), "NCCL_SOCKET_IFNAME");
  EXPECT_EQ(NearestNcclVariable("NCCL_OFI_TUNER"), "");
}

// Writes a trace in which rules decided the calls of 1 MiB and a pin decided those of 64 bytes.
std::string WriteTrace(const std::string& path) {
  TraceSection section;
  section.rank = 0;
  section.world = 2;
  section.process_id = 7;
  section.host = "node";
  section.library = "NCCL 2.30.7";
  section.writer = "dynamiccl";
  section.closed = true;
  const auto add = [&](TraceRecord record) {
    Seal(record);
    section.records.push_back(record);
  };
  add(CommunicatorRecord(0, {0xc0, 0, 2, 1}, 0));
  for (uint64_t i = 0; i < 6; ++i) {
    IssuedCall issued;
    issued.call.bytes = i < 4 ? 1 << 20 : 64;
    issued.call.call_number = i;
    issued.issued_ns = static_cast<int64_t>(i) * 1000;
    add(CallRecord(0, issued));
    add(DecisionRecord(0, issued.call,
                       {issued.issued_ns,
                        {Algorithm::kRing, Protocol::kLL, 4},
                        i < 4 ? DecidedBy::kRule : DecidedBy::kUserPin,
                        1}));
  }
  EXPECT_TRUE(WriteTraceFile(path, Trace{{section}}));
  return path;
}

// A trace shows that calls were configured, but not how.
TEST_F(Receipts, CallsThatATraceShowsAsConfigured) {
  TraceSection section;
  section.rank = 0;
  section.world = 2;
  const auto add = [&](TraceRecord record) {
    Seal(record);
    section.records.push_back(record);
  };
  add(CommunicatorRecord(0, {0xc0, 0, 2, 1}, 0));
  IssuedCall issued;
  issued.call.bytes = 4096;
  issued.coverage = Coverage::kPinned;
  add(CallRecord(0, issued));
  ASSERT_TRUE(WriteTraceFile(folder_ + "/run.ctrace", Trace{{section}}));
  const std::vector<Receipt> receipts = Of({folder_ + "/run.ctrace"});
  ASSERT_EQ(receipts.size(), 1u);
  EXPECT_EQ(receipts[0].asked.name, "ncclCollConfig_t");
  EXPECT_EQ(receipts[0].asked.value, "1 call");
  EXPECT_EQ(receipts[0].standing, Standing::kNotProvable);
  EXPECT_EQ(Of({folder_ + "/run.ctrace"}, {"NCCL_ALGO=Ring"}).size(), 1u) << "the variable pinned them";
}

TEST_F(Receipts, RulesThatDecidedAndRulesThatCannot) {
  const std::string trace = WriteTrace(folder_ + "/run.ctrace");
  const std::string rules = Write("rules.csv",
                                  "allreduce,1048576,1048576,ring,ll,4,-1,2\n"
                                  "allreduce,0,128,ring,ll,4,-1,-1\n"
                                  "allreduce,64,64,ring,ll,2,-1,-1\n"
                                  "allgather,0,128,ring,ll,4,-1,-1\n"
                                  "allreduce,1048576,1048576,ring,ll,4,8,-1\n");
  const std::vector<Receipt> receipts = Of(
      {trace, rules}, {"DYNAMICCL_RULES=rules.csv", "DYNAMICCL_MODE=observe", "DYNAMICCL_TRACE=run.ctrace"});
  ASSERT_EQ(receipts.size(), 8u);
  EXPECT_EQ(receipts[0].standing, Standing::kInEffect);
  EXPECT_EQ(receipts[0].effect, "4 of 6 decisions are the rule's");
  EXPECT_EQ(receipts[1].standing, Standing::kNotInEffect) << "rules decided, so the mode is another";
  EXPECT_EQ(receipts[2].standing, Standing::kInEffect);
  EXPECT_EQ(receipts[3].standing, Standing::kInEffect);
  EXPECT_EQ(receipts[4].standing, Standing::kNotInEffect) << "a pin stayed";
  EXPECT_THAT(receipts[5].reason, HasSubstr("line 2 takes all"));
  EXPECT_THAT(receipts[6].reason, HasSubstr("no call of the job matches"));
  EXPECT_THAT(receipts[7].reason, HasSubstr("no call of the job matches"));
}

TEST_F(Receipts, ADecisionLogDoesNotTellNodes) {
  const std::string log =
      Write("decisions.log", "00000000000000c0 3 AllReduce 1048576 unknown Ring/LL/4 rule v1\n");
  const std::string rules = Write("rules.csv", "allreduce,0,2097152,ring,ll,4,2,-1\n");
  EXPECT_EQ(Of({log, rules}).front().standing, Standing::kNotProvable);
}

TEST_F(Receipts, TheTableBeginsWithWhatIsNotInEffect) {
  const std::string log =
      Write("nccl.log", Process("NCCL_ALGO set by environment to Ring\n"
                                "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}"));
  const Evidence evidence = ReadEvidence({log}, {*ParseAskedSetting("NCCL_MAX_CTAS=4")}).value();
  const std::vector<Receipt> receipts = WriteReceipts(evidence);
  const std::string text = ReceiptsText(evidence, receipts);
  EXPECT_THAT(text, HasSubstr("2 settings asked: 1 in effect, 1 not, 0 not provable from here; NCCL 2.28.9"));
  EXPECT_LT(text.find("NO   NCCL_MAX_CTAS=4"), text.find("yes  NCCL_ALGO=Ring"));
  const Json json = ReceiptsJson(evidence, receipts);
  EXPECT_EQ(json["receipts"][0]["asked_in"], "--asked");
  EXPECT_EQ(json["receipts"][1]["proof"]["line"], 4);
}

}  // namespace
}  // namespace dynamiccl
