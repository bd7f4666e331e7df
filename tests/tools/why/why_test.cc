// SPDX-License-Identifier: Apache-2.0
// The tests use jobs with known facts. `dynamiccl why` must state these facts and nothing else.
#include "tools/why/answer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/tools/why/timed_job.h"
#include "tools/why/time_account.h"
#include "traces/format/measurement_file.h"
#include "traces/format/record_views.h"
#include "traces/format/trace_files.h"

namespace dynamiccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TimeAccount TimesIn(const Trace& trace) {
  const MemoryRecords records(trace);
  const auto times = TimesOf(records, *ScanSections(records, SIZE_MAX));
  EXPECT_TRUE(times) << times.error().message;
  return times.value_or(TimeAccount());
}

// A call begins every 10 ms, 40 times. Rank 1 comes 3 ms late to each call, which takes 1 ms once both ranks
// are there.
TEST(WhyTimes, TheLateRankIsNamed) {
  std::vector<TimedCallOfRank> early, late;
  for (int64_t i = 0; i < 40; ++i) {
    early.push_back({i * 10 * kMs, 4 * kMs});
    late.push_back({i * 10 * kMs + 3 * kMs, 1 * kMs});
  }
  const Trace trace{{SectionOf(0, 2, early), SectionOf(1, 2, late)}};
  const TimeAccount times = TimesIn(trace);
  ASSERT_TRUE(times.waits);
  EXPECT_EQ(times.waits->late_rank, 1);
  EXPECT_EQ(times.waits->late_share, 1);
  EXPECT_EQ(times.waits->calls, 40u);
  EXPECT_NEAR(times.waits->waited_share, 0.5 * 40 * 3 / 394.0, 1e-9) << "rank 0 waits, rank 1 does not";
  ASSERT_TRUE(times.busy_share);
  EXPECT_NEAR(*times.busy_share, 40 * 4 / 394.0, 1e-9);
  EXPECT_THAT(TextOf({{}, trace, {}, {}, false}), HasSubstr("rank 1 comes last in 100 % of 40 calls"));
}

TEST(WhyTimes, CallsAtTheSameTimeCountOnce) {
  Trace trace{{SectionOf(0, 2, {{0, 10 * kMs}, {20 * kMs, 10 * kMs}})}};
  // This call is on another stream, at the same time as the first call.
  TraceRecord beside = trace.sections[0].records[1];
  beside.stream = 1;
  beside.call_number = 2;
  beside.issued_ns = 5 * kMs;
  Seal(beside);
  trace.sections[0].records.push_back(beside);
  const TimeAccount times = TimesIn(trace);
  ASSERT_TRUE(times.busy_share);
  EXPECT_NEAR(*times.busy_share, 25.0 / 30, 1e-9);
}

// There are 30 calls of each of five sizes. The last sequence repeats, but it is no training step.
TEST(WhyJob, ABenchmarkIsNoTraining) {
  std::vector<TimedCallOfRank> calls;
  for (int64_t i = 0; i < 150; ++i) calls.push_back({i * kMs, -1, uint64_t{4096} << (i / 30)});
  for (int64_t i = 0; i < 20; ++i)
    calls.push_back({(150 + i) * kMs, -1, i % 2 == 0 ? 8u : uint64_t{1} << 20});
  const std::string text = TextOf({{}, Trace{{SectionOf(0, 2, calls)}}, {}, {}, false});
  EXPECT_THAT(text, AllOf(HasSubstr("No step was seen to repeat"), Not(HasSubstr("parallelism"))));
}

TEST(WhyJob, RepeatedStepsAre) {
  std::vector<TimedCallOfRank> calls;
  for (int64_t i = 0; i < 60; ++i) calls.push_back({i * kMs, -1, uint64_t{65536} << (i % 3)});
  const std::string text = TextOf({{}, Trace{{SectionOf(0, 2, calls)}}, {}, {}, false});
  EXPECT_THAT(text,
              AllOf(HasSubstr("like data parallelism: 3 AllReduces"), HasSubstr("found by repetition")));
}

// A step has 16 calls of one size, as tensor parallelism sends activations.
TEST(WhyJob, ManyCallsOfOneSizeMayBeTensorParallelism) {
  std::vector<TimedCallOfRank> calls;
  for (int64_t i = 0; i < 4 * 17; ++i) calls.push_back({i * kMs, -1, i % 17 == 16 ? 8u : uint64_t{1} << 20});
  const std::string text = TextOf({{}, Trace{{SectionOf(0, 2, calls)}}, {}, {}, false});
  EXPECT_THAT(text,
              AllOf(HasSubstr("do not tell which kind of training"), HasSubstr("A step is 17 collectives")));
}

TEST(WhyTimes, BandwidthIsThatOfNcclTests) {
  const CallKind kind{Collective::kAllReduce, 100'000'000, 4, 1, 1, 1000};
  EXPECT_DOUBLE_EQ(kind.BusBandwidth(), 150) << "100 GB/s times 2 (n - 1) / n";
}

TEST(WhyTimes, OrderWithoutTimesIsNoTime) {
  Trace trace{{SectionOf(0, 2, {{0, 10 * kMs}, {20 * kMs, 10 * kMs}})}};
  trace.sections[0].flags |= kTraceOrderOnly;
  EXPECT_FALSE(TimesIn(trace).busy_share);
  EXPECT_FALSE(TimesIn({}).busy_share);
}

TEST(WhyTrouble, TheRankThatStoppedIsNamed) {
  std::vector<TimedCallOfRank> calls(20);
  for (size_t i = 0; i < calls.size(); ++i) calls[i].issued_ns = static_cast<int64_t>(i) * kMs;
  Trace trace{
      {SectionOf(0, 3, calls), SectionOf(1, 3, {calls.begin(), calls.end() - 4}), SectionOf(2, 3, calls)}};
  EXPECT_THAT(TextOf({{}, trace, {}, {}, false}), HasSubstr("rank 1 issued nothing")) << "all ended in order";
  for (TraceSection& section : trace.sections) section.closed = false;
  EXPECT_THAT(TextOf({{{"0.ctrace", {}, {}, {}}}, trace, {}, {}, false}),
              AllOf(HasSubstr("What is wrong"), HasSubstr("rank 1 did not issue call 16"),
                    HasSubstr("dynamiccl hang 0.ctrace")));
}

TEST(WhyTrouble, UnlikeCallsAreNamed) {
  std::vector<TimedCallOfRank> calls(20), others(20);
  others[7].bytes = 4096;
  const Trace trace{{SectionOf(0, 2, calls), SectionOf(1, 2, others)}};
  EXPECT_THAT(TextOf({{}, trace, {}, {}, false}), AllOf(HasSubstr("What is wrong"), HasSubstr("call 7")));
}

// The profile has kernels from 0 to 10 and from 30 to 40 us, a copy from 38 to 50, and NCCL's kernel from 5
// to 20.
TEST(WhyFiles, AProfileShowsWhatHides) {
  const auto kernel = [](const char* category, const char* name, int begin, int length, int device) {
    return fmt::format(
        R"(,{{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":7,"ts":{},"dur":{},"args":{{"stream":7}}}})",
        category, name, device, begin, length);
  };
  const auto document = [&](int device) {
    return R"({"schemaVersion":1,"traceEvents":[{"ph":"X","cat":"cpu_op","name":"record_param_comms","tid":1,"ts":1,"dur":2,)"
           R"("args":{"Collective name":"allreduce","dtype":"Float","In msg nelems":64,"Out msg nelems":64,"Group size":2}})" +
           kernel("kernel", "gemm", 0, 10, 0) + kernel("kernel", "ncclDevKernel_AllReduce", 5, 15, 0) +
           kernel("kernel", "relu", 30, 10, device) + kernel("gpu_memcpy", "Memcpy HtoD", 38, 12, 0) + "]}";
  };
  const Folder folder;
  const Result<WhyInput> input = ReadWhyFiles({folder.Write("one.json", document(0))});
  ASSERT_TRUE(input) << input.error().message;
  ASSERT_EQ(input->devices.size(), 1u);
  const DeviceTime& device = input->devices.front();
  EXPECT_EQ(device.computing_ns, 30'000);
  EXPECT_EQ(device.hidden_ns, 5'000);
  EXPECT_EQ(device.exposed_ns, 10'000);
  EXPECT_EQ(device.idle_ns, 10'000);
  EXPECT_THAT(TextOf(*input),
              HasSubstr("60.0 % computing, 20.0 % communicating while nothing computes, 20.0 % idle"));
  EXPECT_THAT(TextOf(*input), HasSubstr("33 % of the communication hides behind computation"));
  const Result<WhyInput> two = ReadWhyFiles({folder.Write("two.json", document(1))});
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_TRUE(two->devices.empty()) << "two devices in one file are not divided";
}

// The profile has only the device's activities. NCCL's kernels ran, but nothing shows which calls were made.
TEST(WhyFiles, KernelsWithoutCallsAreNotCalledAJobOfOneProcess) {
  const Folder folder;
  const std::string text = TextOfFiles({folder.Write(
      "kernels.json",
      R"({"schemaVersion":1,"traceEvents":[)"
      R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":0,"dur":10,"args":{"stream":7}},)"
      R"({"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":7,"ts":5,"dur":15,"args":{"stream":8}}]})")});
  EXPECT_THAT(text,
              AllOf(HasSubstr("kernels of NCCL, but without the program's calls"),
                    HasSubstr("50.0 % communicating while nothing computes"),
                    HasSubstr("a profile with the host's activities too"), Not(HasSubstr("no collective"))));
}

TEST(WhyFiles, ADeviceWithoutCommunicationIsNotToldWhatCollectivesCost) {
  const Folder folder;
  const std::string text = TextOfFiles({folder.Write(
      "compute.json",
      R"({"schemaVersion":1,"traceEvents":[)"
      R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":0,"dur":10,"args":{"stream":7}},)"
      R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":90,"dur":10,"args":{"stream":7}}]})")});
  EXPECT_THAT(text, AllOf(HasSubstr("Mostly the device has nothing to do"), Not(HasSubstr("would save"))));
}

TEST(WhyFiles, OneLostCallIsOneCall) {
  Trace trace{{SectionOf(0, 2, std::vector<TimedCallOfRank>(20))}};
  trace.sections[0].lost = 1;
  EXPECT_THAT(TextOf({{}, trace, {}, {}, true}), HasSubstr("1 call lost: dropped by the program"));
}

// The next step is not wrapped, because it is mostly a command. It must therefore be short.
TEST(WhyFiles, NoLineIsWiderThanTheScreen) {
  const Result<WhyInput> input = ReadWhyFiles({SAMPLES "/ddp_resnet_device.pt.trace.json.gz"});
  ASSERT_TRUE(input) << input.error().message;
  const std::string text = WhyText(*AnswerWhy(*input, nullptr));
  EXPECT_THAT(text, HasSubstr("76.2 % idle"));
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    EXPECT_LE(end - begin, 100u) << text.substr(begin, end - begin);
}

TEST(WhyFiles, TheSampleIsDataParallel) {
  const std::string text = TextOfFiles({SAMPLES "/ddp_resnet_2_ranks.pt.trace.json"});
  EXPECT_THAT(text,
              AllOf(HasSubstr("2 ranks, of which rank 0 is here; NCCL 2.17.1."),
                    HasSubstr("like data parallelism: 5 AllReduces"), HasSubstr("A step takes 220.87 ms"),
                    HasSubstr("used for 21 of 21 calls"), HasSubstr("the same files of the other ranks")));
  EXPECT_THAT(text, Not(HasSubstr("hides behind computation.")))
      << "the sample's other kernels were left out";
}

// SimAI's micro-benchmarks do not state the number of ranks. The importer then assumes one.
TEST(WhyFiles, RanksThatTheFileDoesNotNameAreNotCounted) {
  const Folder folder;
  const std::string text = TextOfFiles({folder.Write(
      "micro.txt", "MICRO\n1\nmicro_test\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLREDUCE\t4096\t1\n")});
  EXPECT_THAT(text, AllOf(HasSubstr("The file does not say how many ranks the job has."),
                          HasSubstr("used for 1 of 1 calls"), Not(HasSubstr("1 rank."))));
}

// The sample names rank 3 and a send to rank 6, but not the number of ranks.
TEST(WhyFiles, RanksThatAreOnlyMentionedAreTheLeast) {
  EXPECT_THAT(TextOfFiles({SAMPLES "/nccl_profiler.json"}),
              AllOf(HasSubstr("At least 7 ranks, of which rank 3 is here."),
                    HasSubstr("AllReduce of 4M among at least 7 ranks: 1 call")));
}

// Sends, receives and calls of a single rank have no algorithm, so `why` asks for none.
TEST(WhyFiles, OnlyCallsWithAChoiceMissOne) {
  EXPECT_THAT(TextOfFiles({SAMPLES "/nccl_profiler.json"}), Not(HasSubstr("Which algorithm")));
  EXPECT_THAT(TextOfFiles({SAMPLES "/nccl_debug/2.28.9_communicators.log"}),
              Not(HasSubstr("Which algorithm")));
  EXPECT_THAT(TextOfFiles({SAMPLES "/nccl_debug/2.32.3_groups.log"}),
              HasSubstr("used for 8 of 38 calls of a rank: NCCL logged no choice for these."))
      << "another log would have no more";
  EXPECT_THAT(TextOfFiles({SAMPLES "/execution_trace.json"}), HasSubstr("used for 2 of 2 calls"));
  EXPECT_THAT(TextOfFiles({SAMPLES "/nccl_inspector.log"}), HasSubstr("used for 3 of 4 calls"));
}

// A profiler that reads kernel times late makes them too short. One or two calls therefore give no bandwidth.
TEST(WhyTimes, FewCallsShowNoBandwidthAndNoShareOfOneCall) {
  const auto text_of = [](const std::vector<TimedCallOfRank>& calls) {
    return TextOf({{}, Trace{{SectionOf(0, 2, calls)}}, {}, {}, false});
  };
  EXPECT_THAT(text_of({{0, kMs}}), AllOf(HasSubstr("1 call, median 1000 us"), Not(HasSubstr("GB/s")),
                                         Not(HasSubstr("A collective runs"))));
  EXPECT_THAT(
      text_of({{0, kMs}, {2 * kMs, kMs}, {4 * kMs, kMs}}),
      AllOf(HasSubstr("1.0 GB/s bus bandwidth"),
            HasSubstr("A collective runs in 60 % of the 5000 us from the first collective to the last.")));
  EXPECT_THAT(text_of({{0, kMs}, {2 * kMs, kMs}, {4 * kMs, 20 * kMs}}),
              HasSubstr("3 calls, median 1000 us, 100 % of the time in collectives, the longest 20000 us"));
}

// A recorder does not time calls that consist of sends and receives. The text must state that the shown times
// lack them.
TEST(WhyTimes, CallsBetweenRanksWithoutTimesAreNamed) {
  const auto text_of = [](const std::vector<TimedCallOfRank>& calls) {
    return TextOf({{}, Trace{{SectionOf(0, 2, calls)}}, {}, {}, false});
  };
  const TimedCallOfRank sum{0, kMs}, send{kMs, -1, 1 << 20, Collective::kSend},
      receive{kMs, -1, 2 << 20, Collective::kRecv}, exchange{kMs, -1, 1 << 20, Collective::kAllToAll};
  EXPECT_THAT(text_of({sum}), Not(HasSubstr("The times of")));
  EXPECT_THAT(text_of({sum, send, receive}),
              AllOf(HasSubstr("The times of 1 Send, 1 Recv (75 % of the bytes)"),
                    Not(HasSubstr("AlltoAll of")), HasSubstr("which no time above contains")));
  EXPECT_THAT(text_of({sum, exchange}), HasSubstr("The times of 1 AlltoAll ("));
  EXPECT_THAT(text_of({exchange}),
              AllOf(HasSubstr("(100 % of the bytes)"), Not(HasSubstr("How long collectives take"))));
  TimedCallOfRank timed = exchange;
  timed.duration_ns = kMs;
  EXPECT_THAT(text_of({sum, timed}), AllOf(Not(HasSubstr("How long")),
                                           HasSubstr("AlltoAll of 1M among 2 ranks: 1 call, median 1000 us, "
                                                     "50 % of the time in collectives")));
}

// Writes the dumps of a job that hangs: rank 1 has not issued calls 19 and 20.
std::vector<std::string> WriteDumpsOfAHang(const Folder& folder, const std::string& backend) {
  std::vector<std::string> paths;
  for (int rank = 0; rank < 3; ++rank) {
    std::string entries;
    for (int i = 1; i <= (rank == 1 ? 18 : 20); ++i)
      entries += fmt::format(
          R"({}{{"record_id":{},"pg_id":0,"process_group":["0","default_pg"],"collective_seq_id":{},"p2p_seq_id":0,"op_id":{},)"
          R"("profiling_name":"{}:all_reduce","time_created_ns":{},"input_sizes":[[1024]],"input_dtypes":["Float"],)"
          R"("output_sizes":[[1024]],"output_dtypes":["Float"],"state":"{}","retired":{},"timeout_ms":600000,"is_p2p":false}})",
          i == 1 ? "" : ",", i, i, i, backend, 1'000'000'000'000'000'000 + i * kMs,
          i < 18 ? "completed" : "scheduled", i < 18);
    paths.push_back(folder.Write(
        fmt::format("rank_{}.json", rank),
        fmt::format(
            R"({{"version":"2.9","nccl_version":"2.27.5","pg_config":{{"0":{{"name":"0","desc":"default_pg",)"
            R"("ranks":"[0, 1, 2]"}}}},"entries":[{}],"rank":{}}})",
            entries, rank)));
  }
  return paths;
}

TEST(WhyFiles, DumpsOfAHangNameTheRank) {
  for (const std::string backend : {"nccl", "nccl2"}) {
    const Folder folder;
    const std::vector<std::string> paths = WriteDumpsOfAHang(folder, backend);
    EXPECT_THAT(TextOfFiles(paths),
                AllOf(HasSubstr("What is wrong"), HasSubstr("rank 1 did not issue call 18"),
                      HasSubstr("ranks 0 and 2 issued up to call 19"), Not(HasSubstr("has ended")),
                      HasSubstr("dynamiccl hang " + paths[0])))
        << backend;
  }
}

TEST(WhyFiles, WhatALogTellsIsNotAskedFor) {
  const std::string text = TextOfFiles({SAMPLES "/nccl_debug/2.32.3_groups.log"});
  EXPECT_THAT(text,
              AllOf(HasSubstr("NCCL 2.32.3"), HasSubstr("used for 8 of 38 calls of a rank"),
                    HasSubstr("Used on the first rank: Ring LL x8"), HasSubstr("How long collectives take"),
                    Not(HasSubstr("A step takes")), Not(HasSubstr("of the other ranks"))));
}

MeasurementFile Sweep() {
  MeasurementFile sweep{
      .library = "NCCL 2.30.7", .machine = "two nodes", .command = "", .contexts = {}, .rows = {}};
  sweep.contexts.push_back({"pair", {}});
  sweep.contexts.back().model.fabric.n_ranks = 2;
  const CollectiveConfig tree{Algorithm::kTree, Protocol::kLL, 2},
      ring{Algorithm::kRing, Protocol::kSimple, 4};
  for (const uint64_t bytes : {uint64_t{1} << 16, uint64_t{1} << 24}) {
    const float slow = bytes == uint64_t{1} << 16 ? 200 : 1000;
    sweep.rows.push_back({"pair",
                          Collective::kAllReduce,
                          bytes,
                          ring,
                          true,
                          {slow, slow + 1, slow, slow + 1, slow, slow + 1}});
    sweep.rows.push_back(
        {"pair", Collective::kAllReduce, bytes, tree, false, {100, 101, 100, 101, 100, 101}});
    if (bytes > 1 << 20) sweep.rows.back().microseconds.assign(6, 5000);
  }
  return sweep;
}

// A log without calls, or a sweep, may be given together with a file that has calls.
TEST(WhyFiles, OnlyALogWithCallsHasNoChoiceForThem) {
  const Folder folder;
  const std::string log = folder.Write("init.log", "node:1:2 [0] NCCL INFO NCCL version 2.28.9+cuda12.9\n");
  EXPECT_THAT(TextOfFiles({SAMPLES "/nccl_inspector.log", log}),
              HasSubstr("used for 3 of 4 calls: a log with NCCL_DEBUG=INFO"))
      << "NCCL's Inspector wrote the calls";
  const std::string sweep = folder.File("s.measurements");
  ASSERT_TRUE(WriteMeasurementFile(sweep, Sweep()));
  EXPECT_THAT(TextOfFiles({SAMPLES "/nccl_debug/2.32.3_groups.log", sweep}),
              HasSubstr("used for 8 of 38 calls of a rank: NCCL logged no choice for these."));
}

TEST(WhyFiles, ASweepShowsWhereTheDefaultIsSlower) {
  const Folder folder;
  ASSERT_TRUE(WriteMeasurementFile(folder.File("s.measurements"), Sweep()));
  const std::string text = TextOfFiles({folder.File("s.measurements")});
  EXPECT_THAT(text,
              AllOf(HasSubstr("In 1 of 2 cases the library's own choice is the best measured"),
                    HasSubstr("AllReduce of 64K on pair: Tree LL x2 takes"), HasSubstr("times as long"),
                    HasSubstr("up to 16.8 GB/s bus bandwidth (at 16M)"), HasSubstr("dynamiccl report ")));
  MeasurementFile alone = Sweep();
  std::erase_if(alone.rows, [](const Measurement& row) { return !row.is_default; });
  ASSERT_TRUE(WriteMeasurementFile(folder.File("d.measurements"), alone));
  EXPECT_THAT(TextOfFiles({folder.File("d.measurements")}),
              HasSubstr("Only the library's own choice was timed"));
}

// A loss of 1.5 % counts if the repeats are steady, but not if they scatter by more than that. A loss of 0.5
// % never counts.
TEST(WhyFiles, ADefaultWithinOnePercentOrWithinTheNoiseIsLeft) {
  const auto slower = [](const std::vector<float>& repeats) {
    MeasurementFile sweep = Sweep();
    std::erase_if(sweep.rows, [](const Measurement& row) { return row.bytes > 1 << 20; });
    for (Measurement& row : sweep.rows) {
      row.microseconds.assign(6, 1000);
      if (row.is_default) row.microseconds = repeats;
    }
    WhyInput input;
    input.measurements.push_back(sweep);
    return TextOf(input).find("In 0 of 1 cases") != std::string::npos;
  };
  EXPECT_TRUE(slower({1015, 1015, 1015, 1015, 1015, 1015}));
  EXPECT_FALSE(slower({1005, 1005, 1005, 1005, 1005, 1005}));
  EXPECT_FALSE(slower({980, 1050, 1015, 980, 1050, 1015}));
}

// 128 MiB in 1509.5 us are 88.92 GB/s. nccl-tests prints half of that as bus bandwidth for 2 ranks.
TEST(WhyFiles, AnAllToAllHasTheBusBandwidthOfItsTest) {
  const Folder folder;
  const std::string path = folder.Write(
      "alltoall_perf.txt",
      "# nThread 1 nGpus 2 minBytes 134217728 maxBytes 134217728 step: 2(factor)\n"
      "#  Rank  0 Group  0 Pid 1 on  a device  0 [0x01] NVIDIA H100\n"
      "#  Rank  1 Group  0 Pid 1 on  a device  1 [0x02] NVIDIA H100\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw "
      "  busbw #wrong\n"
      "   134217728      16777216     float    none      -1   1509.5   88.92   44.46      0   1509.5   88.92 "
      "  44.46    N/A\n");
  const std::string text = TextOfFiles({path});
  EXPECT_THAT(text,
              HasSubstr("AlltoAll among 2 ranks on alltoall_perf: up to 44.5 GB/s bus bandwidth (at 128M)"));
}

TEST(WhyFiles, ForeignAndDamagedFilesAreNamed) {
  const Folder folder;
  const auto error = [](const std::string& path) {
    const Result<WhyInput> input = ReadWhyFiles({path});
    EXPECT_FALSE(input) << path;
    return input ? std::string() : Describe(input.error());
  };
  EXPECT_THAT(error(folder.Write("empty", "")), HasSubstr("the file is empty"));
  EXPECT_THAT(error(folder.Write("notes.txt", "Dear diary,\nnothing collective happened.\n")),
              AllOf(HasSubstr("notes.txt: no known format"), HasSubstr("kineto"), HasSubstr("nccl-debug")));
  EXPECT_THAT(error(folder.Write("p.dcpolicy", "x")), HasSubstr("`dynamiccl inspect` reads such files"));
  EXPECT_THAT(error(folder.Write("a.zst", "\x28\xb5\x2f\xfd....")), HasSubstr("zst"));
  EXPECT_THAT(error(folder.File("nothing")), HasSubstr("nothing"));
  EXPECT_THAT(error(folder.Write("cut.json", R"({"schemaVersion": 1, "traceEvents": [{"ph": "X", "na)")),
              AllOf(HasSubstr("cut.json: byte"), HasSubstr("read as the format kineto; if it was cut")));
  const std::string line = R"({"inspector_output_format_version": "v4.0"})";
  EXPECT_THAT(error(folder.Write("mixed.log", "node:7:7 [0] NCCL INFO NCCL version 2.28.9\n" + line + "\n")),
              HasSubstr("read as the format inspector"));
}

// Other commands read only the calls of a log and must not spend time on receipts.
TEST(WhyFiles, OnlyWhyWritesReceipts) {
  const Folder folder;
  std::string log = "node:7:7 [0] NCCL INFO NCCL version 2.28.9+cuda12.9\n";
  log += "node:7:7 [0] NCCL INFO NCCL_MAX_CTAS set by environment to 0.\n";
  log += "node:7:7 [0] NCCL INFO NCCL_MAX_CTAS 0 is too low, leaving it set at 64\n";
  const std::string path = folder.Write("nccl.log", log);
  const Result<WhyInput> why = ReadWhyFiles({path});
  ASSERT_TRUE(why) << why.error().message;
  EXPECT_EQ(why->refuted_settings.size(), 1u);
  const Result<WhyInput> job = ReadJobFiles({path});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_TRUE(job->refuted_settings.empty());
  EXPECT_EQ(job->files.size(), 1u);
  EXPECT_FALSE(ReadWhyFiles({folder.Write("none.log", log.substr(0, log.find("NCCL_MAX")))}));
}

TEST(WhyFiles, TwoJobsAreNotMixed) {
  const Folder folder;
  const std::vector<TimedCallOfRank> calls(20);
  for (const char* const name : {"a.ctrace", "b.ctrace"})
    ASSERT_TRUE(WriteTraceFile(folder.File(name), {{SectionOf(0, 2, calls)}}));
  const Result<WhyInput> input = ReadWhyFiles({folder.File("a.ctrace"), folder.File("b.ctrace")});
  ASSERT_FALSE(input);
  EXPECT_THAT(Describe(input.error()), AllOf(HasSubstr("give one file of each rank"), HasSubstr("a.ctrace"),
                                             HasSubstr("b.ctrace"), HasSubstr("two traces of rank 0")));
}

// The samples are from jobs of 8, 2 and 7 ranks and from different tools. No two of them belong to one job.
TEST(WhyFiles, FilesOfDifferentJobsAreNamed) {
  const std::string names[] = {SAMPLES "/nccl_inspector.log", SAMPLES "/ddp_resnet_2_ranks.pt.trace.json",
                               SAMPLES "/nccl_profiler.json"};
  for (const std::string& one : names) {
    EXPECT_TRUE(ReadWhyFiles({one})) << one;
    for (const std::string& other : names) {
      if (one == other) continue;
      const Result<WhyInput> input = ReadWhyFiles({one, other});
      ASSERT_FALSE(input) << one << " " << other;
      EXPECT_THAT(Describe(input.error()),
                  AllOf(HasSubstr(one), HasSubstr(other), HasSubstr("not of one job")));
    }
  }
  const Folder folder;
  const std::vector<TimedCallOfRank> calls(20);
  Trace two{{SectionOf(0, 2, calls)}}, four{{SectionOf(1, 4, calls)}};
  two.sections[0].world = 2;
  four.sections[0].world = 4;
  ASSERT_TRUE(WriteTraceFile(folder.File("two.ctrace"), two));
  ASSERT_TRUE(WriteTraceFile(folder.File("four.ctrace"), four));
  const Result<WhyInput> input = ReadWhyFiles({folder.File("two.ctrace"), folder.File("four.ctrace")});
  ASSERT_FALSE(input);
  EXPECT_THAT(Describe(input.error()), HasSubstr("jobs of 2 and 4 ranks"));
}

// Rows are at most 100 columns wide, and the text loses no word.
TEST(WhyAnswer, TextIsWrappedAndWhole) {
  const std::vector<WhyPart> parts = {
      {"job", "The job", {std::string(300, 'x') + " " + std::string(60, 'y') + " " + std::string(60, 'z')}}};
  EXPECT_EQ(WhyText(parts), "The job\n  " + std::string(300, 'x') + "\n    " + std::string(60, 'y') +
                                "\n    " + std::string(60, 'z') + "\n");
  EXPECT_THAT(
      WhyHtml({{"job", "The <job>", {"a & `b <c>`, one ` alone"}}}),
      AllOf(HasSubstr("The &lt;job&gt;"), HasSubstr("a &amp; <code>b &lt;c&gt;</code>, one ` alone</li>")));
}

}  // namespace
}  // namespace dynamiccl
