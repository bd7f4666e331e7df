// SPDX-License-Identifier: Apache-2.0
// Counts the inputs that readers refuse. For each class of file or message it cuts a whole sample at each
// byte, and changes each byte. It prints one line for each class, separated by tabs: name, refused cuts,
// refused changes, and the number of damaged inputs that were accepted. Exit code 1: a damaged input was
// accepted.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>

#include "src/decision/control_messages.h"
#include "src/decision/site_store/site_store_file.h"
#include "src/policy/policy_file.h"
#include "src/transport/endpoint.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/src/decision/site_store/sample_store.h"
#include "tests/support/sample_policy.h"
#include "tests/traces/any_trace.h"
#include "traces/format/measurement_file.h"
#include "traces/format/trace_archive.h"
#include "traces/format/trace_json.h"
#include "traces/format/trace_writer.h"
#include "traces/import/trace_importer.h"
#include "zero_workloads/checkpoint/checkpoint_index.h"

namespace dynamiccl {
namespace {

using Bytes = std::vector<std::byte>;
using Takes = std::function<bool(std::span<const std::byte>)>;

// A longer sample is damaged at this many places, evenly spread. More places of one sample would test the
// same code again.
constexpr size_t kMaxPlaces = 4096;
constexpr ControlSecret kSecret = {1, 2, 3};

Bytes BytesOf(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Returns false if a damaged sample was accepted, or the whole sample was refused.
bool Tell(const char* name, const Bytes& sample, const Takes& takes, bool changes_too = true) {
  const size_t step = std::max<size_t>(1, sample.size() / kMaxPlaces);
  std::mt19937 random(1);
  size_t cuts = 0;
  size_t changes = 0;
  size_t taken_cuts = 0;
  size_t taken_changes = 0;
  for (size_t place = 0; place < sample.size(); place += step) {
    ++cuts;
    taken_cuts += takes(std::span(sample).first(place)) ? 1 : 0;
    if (!changes_too) continue;
    Bytes changed = sample;
    changed[place] ^= static_cast<std::byte>(1 + random() % 255);
    ++changes;
    taken_changes += takes(changed) ? 1 : 0;
  }
  const std::string of_changes = changes_too ? fmt::format("{} of {}", changes - taken_changes, changes)
                                             : "no checksum: inside sealed messages";
  fmt::print("{} ({} bytes)\t{} of {}\t{}\t{}\n", name, sample.size(), cuts - taken_cuts, cuts, of_changes,
             taken_cuts + taken_changes);
  if (takes(sample)) return taken_cuts + taken_changes == 0;
  fmt::print(stderr, "error: a whole {} is not taken\n", name);
  return false;
}

std::string Written(const std::function<bool(const std::string&)>& write) {
  const std::string path = std::filesystem::temp_directory_path() / fmt::format("refused.{}", ::getpid());
  if (!write(path)) std::exit(3);
  std::ifstream file(path, std::ios::binary);
  std::string content(std::istreambuf_iterator<char>(file), {});
  file.close();
  std::filesystem::remove(path);
  return content;
}

bool TellTraces() {
  // The sample has one section, because a trace of several that is cut between two of them is a whole trace
  // of fewer.
  Trace trace = AnyTrace(1);
  trace.sections.resize(1);
  for (TraceSection& section : trace.sections) {
    section.records.resize(std::min<size_t>(section.records.size(), 4));
  }
  const auto file = Written([&](const std::string& path) { return WriteTrace(path, trace).has_value(); });
  bool all = Tell("trace", BytesOf(file),
                  [](auto bytes) { return ParseTrace(bytes, "x", TraceReading::kStrict).has_value(); });
  const auto archive =
      Written([&](const std::string& path) { return WriteTraceArchive(path, trace).has_value(); });
  all &= Tell("trace archive", BytesOf(archive),
              [](auto bytes) { return ParseTraceArchive(bytes, "x", TraceReading::kStrict).has_value(); });
  all &= Tell("trace as JSON", BytesOf(FormatTraceJson(trace).value()),
              [](auto bytes) { return ParseTraceJson(std::string(fuzz::TextOf(bytes)), "x").has_value(); });
  const auto table = ImportFile(DYNAMICCL_FUZZ_CORPUS "/import_config_table/six_columns", "config-table");
  return Tell("measurements", BytesOf(FormatMeasurements(*table->measurements).value()),
              [](auto bytes) {
                return ParseMeasurements(std::string(fuzz::TextOf(bytes)), "x").has_value();
              }) &&
         all;
}

bool TellPolicyAndStates() {
  bool all = Tell("policy", FormatPolicy(*test::MakeRandomPolicy(1)),
                  [](auto bytes) { return ParsePolicy(bytes, "x").has_value(); });
  all &= Tell("site store", FormatSiteStore(testing::RandomStore(1, 5)),
              [](auto bytes) { return ParseSiteStore(bytes, "x").has_value(); });
  zero::CheckpointIndex index;
  index.values["step"] = "3";
  index.states = {"master"};
  index.tensors = {{"weight", {4, 8}}};
  index.files = {{"part.0", 128, {7}}};
  index.ranges = {{0, 0, 0, 0, zero::TensorSlice{}, 0, 32}};
  return Tell("checkpoint index", zero::EncodeIndex(index),
              [](auto bytes) { return zero::DecodeIndex(bytes).has_value(); }) &&
         all;
}

bool TellMessages() {
  bool all = Tell("control message: pledge",
                  EncodePledge({.member = 1, .n_ranks = 4, .declines = "no policy"}, kSecret),
                  [](auto bytes) { return DecodePledge(bytes, kSecret).has_value(); });
  all &= Tell("control message: join", EncodeJoin({.member = 1, .n_ranks = 4}, kSecret),
              [](auto bytes) { return DecodeJoin(bytes, kSecret).has_value(); });
  all &= Tell("control message of another secret", EncodeJoin({.member = 1, .n_ranks = 4}, kSecret),
              [](auto bytes) {
                const bool whole = DecodeJoin(bytes, kSecret).has_value();
                fuzz::Require(!DecodeJoin(bytes, ControlSecret{9}), "another secret opens nothing");
                return whole;
              });
  const Endpoint endpoint{"hostccl-1", "host", 7, {1, 2}, {3}};
  return Tell(
             "endpoint of a rank", BytesOf(endpoint.Encode()),
             [](auto bytes) { return Endpoint::Decode(std::string(fuzz::TextOf(bytes))).has_value(); },
             false) &&
         all;
}

}  // namespace
}  // namespace dynamiccl

int main() {
  using namespace dynamiccl;
  const bool traces = TellTraces();
  const bool states = TellPolicyAndStates();
  return TellMessages() && traces && states ? 0 : 1;
}
