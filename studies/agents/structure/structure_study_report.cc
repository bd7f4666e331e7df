// SPDX-License-Identifier: Apache-2.0
// Writes the study as tables and as JSON.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "studies/agents/structure/structure_study.h"

namespace dynamiccl::agents {
namespace {

std::string Scores(const Confusions& judged) {
  return fmt::format("{:>6.3f} {:>6.3f} {:>6.3f}", judged.role_f1(), judged.phase_f1(), judged.stage_f1());
}

double Percent(uint64_t part, uint64_t of) {
  return of == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(of);
}

void AppendSplit(const StudySplit& split, std::string& text) {
  text += fmt::format("\n{}, {} sequences\n", split.name, split.who.front().sequences.size());
  text += fmt::format("  {:<24} {:<22} {:<22} {:<20} {}\n", "macro F1", "after one step", "after 64 calls",
                      "% unknown, all calls", "% wrong, all calls");
  text += fmt::format("  {:<24} {:<22} {:<22} {:<20} {}\n", "", "  role  phase  stage",
                      "  role  phase  stage", " role phase stage", " role phase stage");
  for (const StructureAccuracy& who : split.who) {
    const auto unknown = [](const Recognition& r) { return Percent(r.unknown, r.calls()); };
    const auto wrong = [](const Recognition& r) { return Percent(r.wrong, r.calls()); };
    text += fmt::format("  {:<24} {:<22} {:<22} {:>5.1f} {:>5.1f} {:>5.1f}    {:>5.1f} {:>5.1f} {:>5.1f}\n",
                        who.recogniser, Scores(who.judged[0]), Scores(who.judged[1]), unknown(who.role),
                        unknown(who.phase), unknown(who.stage), wrong(who.role), wrong(who.phase),
                        wrong(who.stage));
  }
}

// Returns the confusions after one step, summed over all sequences of each framework.
std::map<std::string, Confusions> ByFramework(const StructureAccuracy& who) {
  std::map<std::string, Confusions> sums;
  for (const SequenceResult& sequence : who.sequences) sums[sequence.framework].Add(sequence.judged[0]);
  return sums;
}

void AppendFrameworks(const StudySplit& split, std::string& text) {
  text += fmt::format("  {:<24}", "F1 of role and stage by");
  for (const StructureAccuracy& who : split.who) text += fmt::format(" {:<11.11} |", who.recogniser);
  text += "\n";
  for (const auto& [framework, sum] : ByFramework(split.who.front())) {
    text += fmt::format("  {:<24}", framework);
    for (const StructureAccuracy& who : split.who) {
      const Confusions judged = ByFramework(who).at(framework);
      text += fmt::format(" {:.3f} {:.3f} |", judged.role_f1(), judged.stage_f1());
    }
    text += "\n";
  }
}

// Appends a table with one row for each sequence: roles after one step.
void AppendSequences(const StudySplit& split, std::string& text) {
  const auto& first = split.who.front().sequences;
  text += fmt::format("  {:<58}", "F1 of role and phase after one step by");
  for (const StructureAccuracy& who : split.who) text += fmt::format(" {:<9.9} |", who.recogniser);
  text += "\n";
  for (size_t i = 0; i < first.size(); ++i) {
    text += fmt::format("  {:<58}", first[i].name.substr(0, 58));
    for (const StructureAccuracy& who : split.who) {
      const Confusions& judged = who.sequences[i].judged[0];
      text += fmt::format(" {:.2f} {:.2f} |", judged.role_f1(), judged.phase_f1());
    }
    text += fmt::format(" stage {} taken for {}\n", Name(first[i].true_stage),
                        Name(split.who[1].sequences[i].recognised_stage));
  }
}

std::string FormatTable(const StudySplit& split) {
  std::string text;
  AppendSplit(split, text);
  if (split.training_seconds == 0) {
    AppendSequences(split, text);
    return text;
  }
  text += fmt::format(
      "  integers choose as floats: role {:.2f} %, phase {:.2f} %, stage {:.2f} %; trained in {:.0f} s\n",
      100 * split.agreement.role, 100 * split.agreement.phase, 100 * split.agreement.stage,
      split.training_seconds);
  AppendFrameworks(split, text);
  return text;
}

using Json = nlohmann::ordered_json;

Json ToJson(const Confusions& judged) {
  return {{"role_f1", judged.role_f1()}, {"phase_f1", judged.phase_f1()}, {"stage_f1", judged.stage_f1()},
          {"role", judged.role},         {"phase", judged.phase},         {"stage", judged.stage}};
}

Json ToJson(const StudySplit& split) {
  Json who = Json::array();
  for (const StructureAccuracy& accuracy : split.who) {
    Json sequences = Json::array();
    for (const SequenceResult& sequence : accuracy.sequences) {
      sequences.push_back({{"name", sequence.name},
                           {"after_one_step", ToJson(sequence.judged[0])},
                           {"true_stage", Name(sequence.true_stage)},
                           {"recognised_stage", Name(sequence.recognised_stage)}});
    }
    who.push_back({{"recogniser", accuracy.recogniser},
                   {"after_one_step", ToJson(accuracy.judged[0])},
                   {"after_64_calls", ToJson(accuracy.judged[1])},
                   {"sequences", std::move(sequences)}});
  }
  return {
      {"split", split.name},
      {"training_seconds", split.training_seconds},
      {"integers_as_floats",
       {{"role", split.agreement.role}, {"phase", split.agreement.phase}, {"stage", split.agreement.stage}}},
      {"who", std::move(who)}};
}

}  // namespace

std::string FormatTables(const StructureStudy& study) {
  std::string text;
  for (const StudySplit& split : study.splits) text += FormatTable(split);
  if (study.changes.detectors.empty()) return text;
  text += "\nChanges of sizes\n";
  for (const DetectorResult& d : study.changes.detectors) {
    text += fmt::format(
        "  {:<18} {:>3} of {} seen within 2 calls, {} within 16; {} false alarms in {} quiet calls ({:.2f} "
        "in 20,000)\n",
        d.detector, d.seen_within_2, d.changes, d.seen_within_16, d.false_alarms, d.quiet_calls,
        d.alarms_in_20000());
  }
  text += "  buckets changed to a size, seen within 2 calls by both:";
  for (const BucketResult& bucket : study.changes.buckets)
    text += fmt::format(" {} KiB {} of {};", bucket.bytes >> 10, bucket.seen_within_2, bucket.changes);
  text.back() = '\n';
  return text;
}

std::string FormatJson(const StructureStudy& study) {
  Json splits = Json::array(), changes = Json::array(), buckets = Json::array();
  for (const StudySplit& split : study.splits) splits.push_back(ToJson(split));
  for (const DetectorResult& d : study.changes.detectors) {
    changes.push_back({{"detector", d.detector},
                       {"changes", d.changes},
                       {"seen_within_2_calls", d.seen_within_2},
                       {"seen_within_16_calls", d.seen_within_16},
                       {"quiet_calls", d.quiet_calls},
                       {"false_alarms", d.false_alarms}});
  }
  for (const BucketResult& bucket : study.changes.buckets) {
    buckets.push_back({{"bytes", bucket.bytes},
                       {"changes", bucket.changes},
                       {"seen_within_2_calls", bucket.seen_within_2}});
  }
  const Json json = {{"schema", 1},
                     {"splits", std::move(splits)},
                     {"changes", std::move(changes)},
                     {"buckets", std::move(buckets)}};
  return json.dump(1) + "\n";
}

}  // namespace dynamiccl::agents
