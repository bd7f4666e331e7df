// SPDX-License-Identifier: Apache-2.0
// `dynamiccl link`: shows and changes the emulated links of a running job (docs/emulated_links.md). A link
// goes one way; `ordered` at the end marks one that `link set` changed:
//
//   from   to rail        us      GB/s   jitter   load   bursts   health   messages          bytes
//      0    1    0       100       0.2        0      0        -        1      49435      402510016  ordered
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cmath>

#include "src/transport/link_client.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

struct LinkOptions {
  pid_t job = 0;
  bool all_jobs = false;
  bool json = false;
  double for_s = 0;
  LinkTarget target;
  std::array<double, kLinkFields> values{};
};

// Returns the jobs to ask: the one that the user names, all, or the only job that runs.
Result<std::vector<pid_t>> JobsOf(const LinkOptions& given) {
  if (given.job != 0) return std::vector<pid_t>{given.job};
  const std::vector<pid_t> jobs = ProcessesWithLinks();
  if (jobs.empty()) {
    return WithHint(MakeError(ErrorKind::kNotFound, "no job of this user has emulated links"),
                    "start one with `dynamiccl run --topology two-nodes-ethernet -- PROGRAM`");
  }
  if (jobs.size() == 1 || given.all_jobs) return jobs;
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "several processes have emulated links: {}",
                            fmt::join(jobs, ", ")),
                  "name one with --job, or say --all-jobs");
}

// Formats the columns from latency to health, which show the shape of a link.
std::string ShapeText(const LinkShape& shape) {
  std::string text = fmt::format("{:>9.6g} {:>9.6g}", shape.latency_us, shape.bandwidth_gbps);
  text += fmt::format(" {:>8.4g} {:>6.3g} {:>8}", shape.jitter_us, shape.load,
                      shape.burst_on_ms > 0 && shape.burst_off_ms > 0
                          ? fmt::format("{:g}/{:g}", shape.burst_on_ms, shape.burst_off_ms)
                          : "-");
  return text + fmt::format(" {:>8.3g}", shape.degrade);
}

void PrintJob(pid_t process, const LinkJob& job) {
  fmt::print("process {}: {} ranks, {:.1f} s since init, call {}\n", process, job.n_ranks,
             static_cast<double>(job.elapsed_ns) / 1e9, job.calls);
  fmt::print("{:>4} {:>4} {:>4} {:>9} {:>9} {:>8} {:>6} {:>8} {:>8} {:>10} {:>14}\n", "from", "to", "rail",
             "us", "GB/s", "jitter", "load", "bursts", "health", "messages", "bytes");
  for (const LinkRow& row : job.rows) {
    fmt::print("{:>4} {:>4} {:>4} {} {:>10} {:>14}{}\n", row.from, row.to, row.rail, ShapeText(row.shape),
               row.messages, row.bytes, row.ordered ? "  ordered" : "");
  }
}

Json LinkJson(const LinkJob& job, pid_t process) {
  Json rows = Json::array();
  for (const LinkRow& row : job.rows) {
    Json entry{{"from", row.from},         {"to", row.to},      {"rail", row.rail}, {"ordered", row.ordered},
               {"messages", row.messages}, {"bytes", row.bytes}};
    for (const LinkField& field : LinkFieldTable()) entry[field.name] = row.shape.*field.value;
    rows.push_back(std::move(entry));
  }
  return {{"process", process},
          {"ranks", job.n_ranks},
          {"elapsed_s", static_cast<double>(job.elapsed_ns) / 1e9},
          {"calls", job.calls},
          {"links", std::move(rows)}};
}

// Sends the request to every chosen job and prints the answers.
Result<int> Ask(const LinkOptions& given, const LinkRequest& request) {
  DYNAMICCL_TRY(const auto processes, JobsOf(given));
  Json jobs = Json::array();
  uint32_t changed = 0;
  for (const pid_t process : processes) {
    DYNAMICCL_TRY(const LinkAnswer answer, AskForLinks(process, request));
    changed += answer.changed;
    for (const LinkJob& job : answer.jobs) {
      if (given.json)
        jobs.push_back(LinkJson(job, process));
      else
        PrintJob(process, job);
    }
  }
  if (given.json) PrintJson({{"schema", 1}, {"changed", changed}, {"jobs", std::move(jobs)}});
  return kExitOk;
}

void AddTarget(CLI::App* action, LinkTarget& target) {
  const CLI::Range natural(0, 1 << 20);
  action->add_option("--from", target.from, "Node that the link comes from (default: any)")->check(natural);
  action
      ->add_option("--to", target.to, "Node that it goes to (default: any; equal to --from: inside the node)")
      ->check(natural);
  action->add_option("--rail", target.rail, "Rail of the two nodes (default: all)")->check(natural);
  action->add_flag("--both", target.both, "The other direction as well");
}

CLI::App* AddLinkAction(CLI::App& app, const char* name, const char* sentence, LinkOptions& given) {
  CLI::App* const action = app.add_subcommand(name, sentence);
  action->add_option("--job", given.job, "Process of rank 0 (default: the only job)")->check(AboveZero());
  action->add_flag("--all-jobs", given.all_jobs, "All jobs of this user")->excludes("--job");
  action->add_flag("--json", given.json, "As JSON");
  return action;
}

CLI::App* AddSet(CLI::App& app, LinkOptions& given) {
  CLI::App* const set =
      AddLinkAction(app, "set", "Change what some links are like, from their next message on", given);
  AddTarget(set, given.target);
  for (size_t i = 0; i < kLinkFields; ++i) {
    set->add_option(LinkFieldTable()[i].option, given.values[i], LinkFieldTable()[i].meaning);
  }
  set->add_option("--for", given.for_s, "How long (10s, 500ms, 2m); without it, until reset")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1}, {"ms", 1e-3}, {"m", 60}}));
  return set;
}

// The request of `link set`; an error when nothing is set or a value is out of range.
Result<LinkRequest> RequestOf(const CLI::App& set, const LinkOptions& given) {
  LinkRequest request{.kind = LinkRequestKind::kSet, .target = given.target};
  for (size_t i = 0; i < kLinkFields; ++i) {
    if (set.count(LinkFieldTable()[i].option) > 0) request.change.Set(i, given.values[i]);
  }
  if (request.change.fields == 0) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "dynamiccl link set: nothing to set"),
                    "say what the link shall be like, e.g. --bandwidth 0.2 --latency 500");
  }
  DYNAMICCL_CHECK_OK(CheckRanges(request.change));
  if (set.count("--for") > 0 && !(given.for_s > 0 && given.for_s < 1e9)) {
    return MakeError(ErrorKind::kInvalidArgument, "dynamiccl link set: --for must be more than 0");
  }
  request.for_ns = std::llround(given.for_s * 1e9);
  return request;
}

}  // namespace

Result<int> LinkCommand(CommandLine& line) {
  LinkOptions given;
  CLI::App& app = line.app();
  app.require_subcommand(1);
  CLI::App* const set = AddSet(app, given);
  CLI::App* const reset = AddLinkAction(app, "reset", "Take back what `set` ordered", given);
  AddTarget(reset, given.target);
  CLI::App* const show = AddLinkAction(app, "show", "List the links as they are now", given);
  if (const auto exit_code = line.Parse()) return *exit_code;
  if (show->parsed()) return Ask(given, {});
  if (reset->parsed()) return Ask(given, {.kind = LinkRequestKind::kReset, .target = given.target});
  DYNAMICCL_TRY(const LinkRequest request, RequestOf(*set, given));
  return Ask(given, request);
}

}  // namespace dynamiccl
