// SPDX-License-Identifier: Apache-2.0
// Runs `dynamiccl sweep` for each collective and joins the measurement files. Then trains the agents on the
// part that they may see.
#include <algorithm>

#include "tools/demo/demo_steps.h"
#include "tools/report/choice_comparison.h"
#include "traces/format/measurement_file.h"

namespace dynamiccl {
namespace {

// A part of the sweep: one collective with its own sizes, on all topologies.
struct SweepPart {
  Collective collective;
  const std::map<SizeClass, uint64_t>& sizes;
  double budget_s = 0;
};

std::vector<std::string> SweepCommand(const DemoSession& session, const SweepPart& part,
                                      const std::string& output) {
  const DemoPlan& plan = session.plan();
  std::string sizes;
  for (const auto& [size_class, bytes] : part.sizes)
    sizes += (sizes.empty() ? "" : ",") + std::to_string(bytes);
  std::vector<std::string> command{session.installation().dynamiccl, "sweep", "--topology", plan.topology};
  for (const std::string& topology : plan.other_topologies)
    command.insert(command.end(), {"--topology", topology});
  command.insert(command.end(), {"--topology", plan.held_out_topology, "-g", std::to_string(plan.n_ranks),
                                 "--collectives", std::string(Name(part.collective)), "--sizes", sizes,
                                 "--repeats", std::to_string(plan.sweep_repeats), "--budget",
                                 fmt::format("{:.0f}s", part.budget_s), "-o", output, "-q"});
  return command;
}

// Adds the measurements of one collective to those of all. Each context (fabric and machine) is kept once.
void Append(MeasurementFile part, MeasurementFile& all) {
  all.library = part.library;
  all.machine = part.machine;
  for (MeasurementContext& context : part.contexts) {
    const auto same = [&](const MeasurementContext& known) { return known.topology == context.topology; };
    if (std::none_of(all.contexts.begin(), all.contexts.end(), same))
      all.contexts.push_back(std::move(context));
  }
  std::move(part.rows.begin(), part.rows.end(), std::back_inserter(all.rows));
}

// The measurements from which the agents may learn: those without the held-out size classes and topology.
MeasurementFile SeenPart(const DemoPlan& plan, const SweptConfigs& swept) {
  MeasurementFile seen = swept.all;
  const auto unseen = [&](const Measurement& row) {
    const auto held_out = swept.held_out_classes.find(row.collective);
    return row.topology == plan.held_out_topology ||
           (held_out != swept.held_out_classes.end() && held_out->second.contains(SizeClassOf(row.bytes)));
  };
  std::erase_if(seen.rows, unseen);
  std::erase_if(seen.contexts, [&](const MeasurementContext& context) {
    return context.topology == plan.held_out_topology;
  });
  return seen;
}

// Relative time that a sweep needs for one size of the collective. AllReduce has twice the configs of
// AllGather and ReduceScatter (Tree beside Ring), and each of its configs takes twice the steps.
double TimePerSize(Collective collective) {
  return collective == Collective::kAllReduce ? 4 : 1;
}

// Seconds of the budget for one collective, such that all collectives get about as many repeats.
double ShareOf(const ObservedSizes& sizes, Collective collective, double budget_s) {
  double total = 0;
  for (const auto& [name, classes] : sizes) total += TimePerSize(name) * static_cast<double>(classes.size());
  return budget_s * TimePerSize(collective) * static_cast<double>(sizes.at(collective).size()) / total;
}

}  // namespace

Result<SweptConfigs> SweepConfigs(DemoSession& session, const RecordedRuns& runs) {
  std::vector<std::string> traces = runs.held_out;
  traces.insert(traces.end(), runs.training.begin(), runs.training.end());
  SweptConfigs swept;
  DYNAMICCL_TRY(swept.sizes, ObserveSizes(traces, session.plan().sizes_a_collective));
  swept.held_out_classes = HeldOutClasses(swept.sizes);
  for (const auto& [collective, sizes] : swept.sizes) {
    session.Say(fmt::format("{}: {} size classes on {} topologies", Name(collective), sizes.size(),
                            2 + session.plan().other_topologies.size()));
    const std::string path = session.Output(fmt::format("sweep-{}.measurements", Name(collective)));
    const SweepPart part{collective, sizes, ShareOf(swept.sizes, collective, session.plan().budget.sweep_s)};
    const std::string label = fmt::format("sweep-{}", Name(collective));
    const Status done = session.Run(
        {.label = label, .plan = {.command = SweepCommand(session, part, path)}, .outputs = {path}});
    if (!done) {
      DYNAMICCL_CHECK_OK(session.GoOnWithout(label, done.error()));
      continue;
    }
    DYNAMICCL_TRY(MeasurementFile file, ReadMeasurementFile(path));
    Append(std::move(file), swept.all);
  }
  if (swept.all.rows.empty())
    return MakeError(ErrorKind::kPeerFailed, "no sweep of the demo came to its end");
  swept.all.command = "dynamiccl demo";
  DYNAMICCL_CHECK_OK(WriteMeasurementFile(session.Output("sweep.measurements"), swept.all));
  swept.seen_path = session.Output("agents.measurements");
  DYNAMICCL_CHECK_OK(WriteMeasurementFile(swept.seen_path, SeenPart(session.plan(), swept)));
  return swept;
}

Result<std::string> TrainAgents(DemoSession& session, const RecordedRuns& runs, const SweptConfigs& swept) {
  const std::string policy = session.Output("demo.dcpolicy");
  DYNAMICCL_TRY(const std::string starter, PolicyFileOf(session.installation(), kStarterWord));
  std::vector<std::string> command{session.installation().agents, "train", "--from", starter};
  for (const std::string& trace : runs.training) command.insert(command.end(), {"--trace", trace});
  command.insert(command.end(), {"--measurements", swept.seen_path, "--seed",
                                 std::to_string(session.plan().seed), "--output", policy});
  DYNAMICCL_CHECK_OK(
      session.Run({.label = "train-agents", .plan = {.command = std::move(command)}, .outputs = {policy}}));
  return policy;
}

}  // namespace dynamiccl
