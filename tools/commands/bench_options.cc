// SPDX-License-Identifier: Apache-2.0
// Registers the options of nccl-tests by group, refuses those that mean nothing here, and interprets the
// others.
#include "tools/commands/bench_options.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <charconv>

#include "tools/bench/size_list.h"

namespace dynamiccl {
namespace {

// An option of nccl-tests that this command does not support. It is parsed only so that the error can say
// why, and what to use instead.
struct RefusedOption {
  const char* names;
  const char* why;
  const char* instead;
};

constexpr RefusedOption kRefused[] = {
    {"-G,--cudagraph", "calls are issued eagerly here, and host streams have no graphs",
     "leave -G out; -m N issues N calls in one group"},
    {"-D,--device_implementation", "there is no device API to run here",
     "leave -D out, or use NVIDIA's nccl-tests on a GPU"},
    {"-V,--device_cta_count", "it counts the blocks of a device kernel, and there is none",
     "leave -V out; NCCL_MAX_NCHANNELS limits the channels"},
};

void RegisterRefused(CLI::App& app, BenchCommandOptions& given) {
  for (const RefusedOption& option : kRefused) {
    app.add_option_function<std::string>(
           option.names,
           [&given, names = option.names](const std::string& value) { given.refused[names] = value; },
           std::string("nccl-tests' option; refused: ") + option.why)
        ->group("Not here");
  }
}

void RegisterSizes(CLI::App& app, BenchCommandOptions& given) {
  app.add_option("-b,--minbytes", given.begin, "Smallest size, as 8, 64K or 1.5M")->capture_default_str();
  app.add_option("-e,--maxbytes", given.end, "Largest size")->capture_default_str();
  app.add_option("-i,--stepbytes", given.step, "Bytes between sizes")->capture_default_str();
  app.add_option("-f,--stepfactor", given.factor, "Factor between sizes, instead of -i");
}

void RegisterCalls(CLI::App& app, BenchCommandOptions& given) {
  BenchOptions& options = given.options;
  app.add_option("-o,--op", given.op, "sum, prod, max, min, avg, mulsum or all")->capture_default_str();
  app.add_option("-d,--datatype", given.type,
                 "int8 ... uint64, half, float, double, bfloat16, f8e4m3, f8e5m2 or all")
      ->capture_default_str();
  app.add_option("-r,--root", given.root, "Root of broadcast, reduce, gather and scatter, or all")
      ->capture_default_str();
  app.add_option("-n,--iters", options.iterations, "Timed calls a size")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("-w,--warmup_iters", options.warmups, "Calls before them")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("-m,--agg_iters", options.aggregate, "Calls issued as one group")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("-N,--run_cycles", options.cycles, "Runs over all sizes; 0: without end")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("-c,--check", options.checks, "Times to check the data; 0: not at all")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("-u,--unalign", options.unalign, "Elements by which buffers are shifted")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
}

void RegisterReports(CLI::App& app, BenchCommandOptions& given) {
  app.add_option("-a,--average", given.average, "Time over ranks: 0 rank 0, 1 mean, 2 least, 3 most")
      ->check(CLI::Range(0, 3))
      ->capture_default_str();
  app.add_option("-z,--blocking", given.blocking,
                 "1: wait and barrier after each call, 2: wait only, 3: wait and untimed barrier after each "
                 "iteration")
      ->check(CLI::Range(0, 3))
      ->capture_default_str();
  app.add_option("-C,--report_cputime", given.cpu_time,
                 "1: time until the last call returned, not until it was done")
      ->check(CLI::Range(0, 1));
  app.add_option("-S,--report_timestamps", given.timestamps, "1: the time of day in each row")
      ->check(CLI::Range(0, 1));
  app.add_option("-I,--per_iter_timing", given.per_iteration,
                 "1: columns i_min, i_max, i_p99 and i_cv% from events")
      ->check(CLI::Range(0, 1));
  app.add_option("-K,--per_iter_skip", given.options.skip, "First iterations left out of those columns")
      ->check(CLI::Range(0, 1000000));
  app.add_option("-M,--memory", given.memory, "1: memory report, largest over ranks")
      ->check(CLI::Range(0, 1));
  app.add_option("-J,--output_file,--json", given.json,
                 "Write JSON to this file; - for standard output, instead of the table");
  app.add_option("--rounds", given.options.rounds,
                 "Rounds of which the medians are printed (1 is nccl-tests' way)")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option(
      "--background", given.background,
      "Work on each GPU beside the timed calls: compute:SHARE of its multiprocessors or memory:SHARE "
      "of its bandwidth");
  app.add_option("--singles", given.options.singles,
                 "Single calls a round for p50 and p99, 0 for none (default: 50 ms of them, 10 to 1000)")
      ->check(CLI::Range(0, 1000000));
}

void RegisterRanks(CLI::App& app, BenchCommandOptions& given) {
  app.add_option("-g,--ngpus,--ranks", given.ranks, "Processes to start; several numbers with --against")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("-t,--nthreads", given.threads, "Threads a process, each a rank")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("-p,--parallel_init", given.parallel_init,
                 "1, as it always is: ranks initialise at the same time")
      ->check(CLI::Range(0, 1));
  app.add_option("-y,--stream_null", given.null_stream, "1: use the null stream")->check(CLI::Range(0, 1));
  app.add_option("-T,--timeout", given.timeout_s, "Seconds that a row may take; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  app.add_option("-R,--local_register", given.registration,
                 "0: private buffers, 1: ncclMemAlloc and ncclCommRegister, 2: symmetric windows")
      ->check(CLI::Range(0, 2))
      ->capture_default_str();
  app.add_option("-x,--cta_policy", given.cta_policy,
                 "CTA policy of the communicator (NVIDIA's library only)")
      ->check(CLI::Range(0, 2));
}

void RegisterAgainst(CLI::App& app, BenchCommandOptions& given) {
  auto* against =
      app.add_option("--against", given.against,
                     "Libraries to time in turns with ours: openmpi, mpich, impi, gloo, separated by commas");
  // These options cannot be combined with --against. A comparison makes as many calls as fill a burst, and
  // does not check data.
  for (const char* other : {"-n", "-w", "-m", "-N", "-c", "-u", "-a", "-z", "-C", "-S", "-I", "-M", "-T",
                            "-x", "-y", "--singles", "--background"})
    against->excludes(app.get_option(other));
  app.add_option("--choice", given.choice, "Ours in a comparison: its default, or the best of all configs")
      ->check(CLI::IsMember({"default", "best"}))
      ->capture_default_str();
  app.add_option("--burst", given.burst_ms,
                 "Milliseconds of calls that a library makes in a round of a comparison")
      ->check(CLI::Range(1.0, 60000.0))
      ->capture_default_str();
  app.add_option("--bind", given.bind, "In a comparison: core, a core a rank where there are enough, or none")
      ->check(CLI::IsMember({"core", "none"}))
      ->capture_default_str();
  app.add_option("--python", given.python, "Python with PyTorch, for Gloo in a comparison")
      ->capture_default_str();
  app.add_option("--control", given.control)->group("");
}

tl::unexpected<Error> Wrong(const std::string& what, std::string hint) {
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "dynamiccl bench: {}", what), std::move(hint));
}

// Returns an error for options, or combinations of options, that have no meaning in this command.
Status RefuseWhatMeansNothing(const BenchCommandOptions& given) {
  for (const RefusedOption& option : kRefused) {
    const auto refused = given.refused.find(option.names);
    if (refused != given.refused.end() && refused->second != "0")
      return Wrong(fmt::format("{} {}: {}", option.names, refused->second, option.why), option.instead);
  }
  if (given.parallel_init == 0) {
    return Wrong("-p 0: ranks are processes or threads of their own and always initialise at the same time",
                 "leave -p out");
  }
  if (given.per_iteration == 0 && given.options.skip > 0)
    return Wrong("-K without -I 1: there is nothing to leave iterations out of", "add -I 1");
  if (given.options.skip >= given.options.iterations)
    return Wrong(
        fmt::format("-K {} leaves none of {} iterations", given.options.skip, given.options.iterations),
        "use a smaller -K or a larger -n");
  return {};
}

Result<std::vector<DataType>> TypesOf(const std::string& word) {
  std::vector<DataType> types;
  for (int t = 0; t < kDataTypes && word == "all"; ++t) types.push_back(static_cast<DataType>(t));
  if (!types.empty()) return types;
  const auto type = ParseDataType(word);
  if (type) return std::vector<DataType>{*type};
  return Wrong(fmt::format("-d: no data type '{}'", word),
               "float, half, bfloat16, double, int8 ... uint64, or all");
}

Result<std::vector<BenchOp>> OpsOf(const std::string& word) {
  std::vector<BenchOp> ops;
  for (int o = 0; o < kReduceOps && word == "all"; ++o) ops.push_back({static_cast<ReduceOp>(o)});
  if (!ops.empty()) return ops;
  if (word == "mulsum") return std::vector<BenchOp>{{ReduceOp::kSum, true}};
  const auto op = ParseReduceOp(word);
  if (op) return std::vector<BenchOp>{{*op}};
  return Wrong(fmt::format("-o: no operator '{}'", word), "sum, prod, max, min, avg, mulsum or all");
}

// Returns the root ranks that the value of -r names: one rank, or all ranks.
Result<std::vector<int>> RootsOf(const std::string& word, int n_ranks) {
  std::vector<int> roots;
  if (word == "all" || word == "-1") {
    for (int root = 0; root < n_ranks; ++root) roots.push_back(root);
    return roots;
  }
  int root = -1;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), root);
  if (code == std::errc() && end == word.data() + word.size() && root >= 0 && root < n_ranks)
    return std::vector<int>{root};
  return Wrong(fmt::format("-r: no root '{}' among {} ranks", word, n_ranks),
               fmt::format("0 to {}, or all", n_ranks - 1));
}

// Returns the number of ranks of the whole job. A launcher's variables state it; without a launcher it is the
// number of ranks that this command will start.
int RanksOfJob(const BenchCommandOptions& given) {
  const char* size = std::getenv("WORLD_SIZE");
  return size == nullptr ? given.total_ranks() : std::max(std::atoi(size), 1) * given.threads;
}

}  // namespace

void RegisterBenchOptions(CLI::App& app, BenchCommandOptions& given) {
  app.add_option("collective", given.collectives, TestedCollectiveNames() + "; several with --against")
      ->required()
      ->delimiter(',')
      ->allow_extra_args(false);
  RegisterSizes(app, given);
  RegisterCalls(app, given);
  RegisterReports(app, given);
  RegisterRanks(app, given);
  RegisterAgainst(app, given);
  RegisterRankOptions(app, given.launch);
  RegisterRefused(app, given);
}

Result<std::vector<TestedCollective>> CollectivesOf(const BenchCommandOptions& given) {
  std::vector<TestedCollective> collectives;
  for (const std::string& word : given.collectives) {
    const auto collective = ParseTestedCollective(word);
    if (!collective) return Wrong(fmt::format("no collective '{}'", word), TestedCollectiveNames());
    collectives.push_back(*collective);
  }
  return collectives;
}

Result<BenchOptions> UnderstandBench(const BenchCommandOptions& given) {
  DYNAMICCL_CHECK_OK(RefuseWhatMeansNothing(given));
  BenchOptions options = given.options;
  DYNAMICCL_TRY(const std::vector<TestedCollective> collectives, CollectivesOf(given));
  options.collective = collectives.front();
  DYNAMICCL_TRY(options.types, TypesOf(given.type));
  DYNAMICCL_TRY(options.ops, OpsOf(given.op));
  DYNAMICCL_TRY(options.roots, RootsOf(given.root, RanksOfJob(given)));
  SizeRange range{.factor = given.factor > 1 ? given.factor : 0};
  DYNAMICCL_TRY(range.begin, ParseBytes(given.begin));
  DYNAMICCL_TRY(range.end, ParseBytes(given.end));
  DYNAMICCL_TRY(range.step, ParseBytes(given.step));
  DYNAMICCL_TRY(options.sizes, SizesOf(range));
  if (!given.background.empty()) {
    DYNAMICCL_TRY(options.background, cuda::ParseLoad(given.background));
  }
  options.average = static_cast<RankAverage>(given.average);
  options.blocking = static_cast<Blocking>(given.blocking);
  options.cpu_time = given.cpu_time != 0;
  options.per_iteration = given.per_iteration != 0;
  // The copy limit is the speed of plain memory copies. It is not measured where hostccl emulates links,
  // because those links are then the limit.
  options.copy_limit = given.launch.runtime.topology.empty() && std::getenv("HOSTCCL_TOPOLOGY") == nullptr;
  return options;
}

}  // namespace dynamiccl
