// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of tests/fuzz/corpus that are not text: make_corpora tests/fuzz/corpus
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "src/base/byte_codec.h"
#include "src/decision/control_messages.h"
#include "src/decision/guard/table_plan.h"
#include "src/decision/site_store/site_store_file.h"
#include "src/transport/endpoint.h"
#include "src/transport/link_messages.h"
#include "src/transport/shared_buffer.h"
#include "tests/src/decision/site_store/sample_store.h"
#include "tests/traces/any_trace.h"
#include "traces/format/measurement_file.h"
#include "traces/format/sweep_journal.h"
#include "traces/format/trace_archive.h"
#include "traces/format/trace_json.h"
#include "traces/format/trace_writer.h"
#include "traces/import/trace_importer.h"
#include "zero_workloads/checkpoint/checkpoint_index.h"

namespace dynamiccl {
namespace {

using Bytes = std::vector<std::byte>;

class Corpora {
 public:
  explicit Corpora(std::string folder) : folder_(std::move(folder)) {}

  // Writes one seed. `first` is put before the bytes and tells the entry what follows; no byte is put if it
  // is negative.
  void Put(const std::string& entry, const std::string& name, int first, std::span<const std::byte> bytes) {
    std::filesystem::create_directories(folder_ + "/" + entry);
    std::ofstream file(folder_ + "/" + entry + "/" + name, std::ios::binary);
    if (first >= 0) file.put(static_cast<char>(first));
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  void Put(const std::string& entry, const std::string& name, int first, std::string_view text) {
    Put(entry, name, first, std::as_bytes(std::span(text)));
  }

 private:
  std::string folder_;
};

// Returns the bytes between the header of an authenticated message and its authentication code.
Bytes BodyOf(const Bytes& message) {
  return {message.begin() + kMessageHeaderBytes, message.end() - sizeof(Sha256Digest)};
}

void PutMessages(Corpora& corpora) {
  const ControlSecret secret{1, 2, 3};
  const auto put = [&](const char* name, int kind, const Bytes& message) {
    corpora.Put("control_messages", name, kind, BodyOf(message));
  };
  put("pledge", 1, EncodePledge({.member = 1, .n_ranks = 4, .declines = "no policy"}, secret));
  put("verdict", 2, EncodeVerdict({}, {}, secret));
  put("join", 3, EncodeJoin({.member = 1, .n_ranks = 4}, secret));
  put("switch", 4, EncodeSwitch({}, secret));
  put("digest", 5, EncodeDigest({.checkpoints = {{}, {}}}, secret));
  put("times", 6, EncodeTimes({.times = {{}, {}}}, secret));
  put("timing", 7, EncodeTiming({.reports_times = true, .all_until = 9}, secret));
  TableSwitchMessage values;
  values.table.values = AgreedValues{{"bucket_mb", 5}, {"window", -1}};
  put("switch_values", 4, EncodeSwitch(values, secret));
  put("proposal", 8, EncodeProposal({.proposed = {"bucket_mb", 5}}, secret));
  corpora.Put("control_messages", "raw", 0, EncodeJoin({}, secret));
  std::array<uint8_t, kUniqueIdBytes> id{};
  id[0] = 1;
  WriteBlock(id, {.address = "127.0.0.1", .port = 4000, .secret = secret});
  corpora.Put("control_messages", "unique_id", 9, std::as_bytes(std::span(id)));
}

void PutBootstrap(Corpora& corpora) {
  const Endpoint endpoint{"hostccl-1", "host", 7, {1, 2}, {3}};
  corpora.Put("bootstrap", "endpoint", 0, endpoint.Encode());
  ByteWriter message;  // as src/hostccl/bootstrap_message.cc
  message.PutText(endpoint.Encode());
  message.Put(int32_t{8});
  message.Put(std::array<uint8_t, 2>{0, 1});
  message.Put(uint64_t{5});
  corpora.Put("bootstrap", "introduction", 1, message.buffer());
  corpora.Put("bootstrap", "request", 2, Encode(LinkRequest{}));
  LinkAnswer answer{"", 1, {LinkJob{2, 3, 4, {LinkRow{0, 1}}}}};
  answer.jobs[0].rows[0].shape.bandwidth_gbps = 1;
  corpora.Put("bootstrap", "answer", 3, Encode(answer));
}

void PutFrames(Corpora& corpora) {
  ByteWriter frames;
  const auto frame = [&](uint8_t type, uint8_t protocol, uint16_t bytes, uint64_t value) {
    frames.Put(uint8_t{7});
    frames.Put(type);
    frames.Put(protocol);
    frames.Put(uint16_t{3});
    frames.Put(bytes);
    frames.Put(value);
    for (uint16_t i = 0; i < bytes; ++i) frames.Put(static_cast<uint8_t>(i));
  };
  frame(1, 0, 24, 0);
  frame(1, 1, 16, 0);
  frame(1, 2, 128, 0);
  frame(2, 0, 0, 0);
  frame(3, 0, 0, 5);
  frame(4, 0, 0, 0);
  corpora.Put("relay_frames", "every_type", -1, frames.buffer());
}

// Writes the part of a Hello (rendezvous.cc) that follows the token.
void PutHello(ByteWriter& said, uint32_t n_ranks, uint32_t rank, uint32_t payload_bytes) {
  for (const uint32_t value : {n_ranks, rank, payload_bytes, 0u}) said.Put(value);
}

void PutRendezvous(Corpora& corpora) {
  ByteWriter met;
  met.Put(std::array<uint32_t, 2>{0, 10});
  met.PutText("a");
  met.PutText("b");
  corpora.Put("rendezvous", "answer_to_two", 2, met.buffer());
  ByteWriter refused;
  refused.Put(std::array<uint32_t, 2>{6, 4});
  refused.PutBytes(std::as_bytes(std::span("none", 4)));
  corpora.Put("rendezvous", "refusal", 0, refused.buffer());
  const auto put_two = [&](const char* name, uint32_t n_ranks, uint32_t rank) {
    ByteWriter two;
    two.Put(uint8_t{1});
    PutHello(two, 2, 0, 8);
    two.Put(uint64_t{1});
    two.Put(uint8_t{1});
    PutHello(two, n_ranks, rank, 0);
    corpora.Put("rendezvous", name, 1, two.buffer());
  };
  put_two("two_ranks", 2, 1);
  put_two("one_rank_twice", 2, 0);
  put_two("another_number_of_ranks", 3, 1);
  put_two("a_rank_that_cannot_be", 2, 7);
  ByteWriter many;
  many.Put(uint8_t{1});
  PutHello(many, UINT32_MAX, 0, 8);
  corpora.Put("rendezvous", "very_many_ranks", 1, many.buffer());
}

void PutHandshake(Corpora& corpora) {
  const std::array<uint8_t, 16> nonce{1};
  ByteWriter hello;  // as Hello of peer_handshake.cc
  hello.Put(uint64_t{0x31524545'504c4348});
  for (const uint32_t value : {1u, 1u, 2u, 1u}) hello.Put(value);
  hello.Put(nonce);
  hello.Put(Sha256Digest{});
  corpora.Put("peer_handshake", "hello", 0, hello.buffer());
  ByteWriter challenge;
  challenge.Put(uint64_t{0x31524545'504c4348});
  for (const uint32_t value : {1u, 0u}) challenge.Put(value);
  challenge.Put(nonce);
  challenge.Put(Sha256Digest{});
  corpora.Put("peer_handshake", "challenge", 1, challenge.buffer());
}

void PutSharedMemory(Corpora& corpora) {
  ByteWriter segment;
  segment.Put(uint32_t{1} << 26);
  segment.Put(std::array<uint8_t, 2>{1, 1});
  corpora.Put("shared_memory", "segment", 0, segment.buffer());
  const auto put_grant = [&](const char* name, uint32_t bytes, uint8_t seals, uint64_t granted) {
    ByteWriter grant;
    grant.Put(bytes);
    grant.Put(seals);
    for (const uint64_t value : {granted, uint64_t{4096}, uint64_t{4096}}) grant.Put(value);
    corpora.Put("shared_memory", name, 1, grant.buffer());
  };
  put_grant("grant", 12288, 1, 8192);
  put_grant("grant_not_sealed", 12288, 0, 8192);
  put_grant("grant_of_more_than_there_is", 12288, 1, uint64_t{1} << 40);
  ByteWriter refs;
  for (const uint8_t options : {15, 3, 1, 0}) {
    refs.Put(options);
    refs.Put(BufferRef{.process = 1, .allocation = 1, .offset = 16, .bytes = 32});
  }
  corpora.Put("shared_memory", "references", 2, refs.buffer());
}

void PutTraces(Corpora& corpora) {
  Trace trace = AnyTrace(1);
  for (TraceSection& section : trace.sections) {
    section.records.resize(std::min<size_t>(section.records.size(), 4));
  }
  const std::string path = std::filesystem::temp_directory_path() / "make_corpora.ctrace";
  if (!WriteTrace(path, trace)) std::exit(1);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  corpora.Put("trace_file", "three_sections", 0, bytes);
  corpora.Put("trace_file", "one_section_salvaged", 7, std::string_view(bytes).substr(0, 4096 + 64 + 256));
  std::filesystem::remove(path);
  if (!WriteTraceArchive(path, trace)) std::exit(1);
  std::ifstream archive(path, std::ios::binary);
  corpora.Put("trace_archive", "three_sections", 0, std::string(std::istreambuf_iterator<char>(archive), {}));
  std::filesystem::remove(path);
  ByteWriter blocks;
  const auto block = [&](uint8_t kind, uint32_t records, uint64_t first, uint16_t length) {
    blocks.Put(kind);
    blocks.Put(uint32_t{kind == 3 ? 1u : 0u});
    blocks.Put(records);
    blocks.Put(first);
    blocks.Put(length);
    for (uint16_t i = 0; i < length; ++i) blocks.Put(static_cast<uint8_t>(i * 7));
  };
  block(1, 0, 0, 40);
  block(2, 2, 0, 104);
  block(3, 0, 2, 0);
  corpora.Put("trace_archive", "blocks", 2, blocks.buffer());
  corpora.Put("trace_archive", "blocks_salvaged", 3, blocks.buffer());
  const auto json = FormatTraceJson(trace);
  if (json) corpora.Put("trace_json", "three_sections", -1, json->substr(0, json->find("{\"kind\":\"end\"")));
}

// Returns the lines of a journal without their hashes.
std::string LinesOfAJournal() {
  const std::string path = std::filesystem::temp_directory_path() / "make_corpora.journal";
  CostModelInput model;
  model.fabric.n_ranks = 2;
  model.fabric.n_nodes = 1;
  model.fabric.max_channels = 4;
  const Measurement row{
      "t", Collective::kAllGather, 1024, {Algorithm::kRing, Protocol::kLL, 2}, false, {1.5f, 2.5f}};
  auto writer = SweepJournalWriter::Create(path, "active t");
  if (!writer || !writer->AddContext("lib 1", "a machine", {"t", model}) || !writer->AddVisit(row, 0.25) ||
      !writer->EndSlice("t", 2, 0.125, false)) {
    std::exit(1);
  }
  std::string lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines += line.substr(17) + "\n";
  std::filesystem::remove(path);
  return lines;
}

// Makes a measurement file from the seed of the entry import_config_table.
void PutMeasurements(Corpora& corpora, const std::string& folder) {
  const auto imported = ImportFile(folder + "/import_config_table/six_columns", "config-table");
  if (!imported) std::exit(1);
  const auto text = FormatMeasurements(*imported->measurements);
  if (text) corpora.Put("measurements", "one_context", -1, text->substr(0, text->find("{\"kind\":\"end\"")));
}

void PutStates(Corpora& corpora) {
  const auto store = FormatSiteStore(testing::RandomStore(1, 5));
  corpora.Put("site_store", "five_entries", 1, std::span(store).first(store.size() - sizeof(Sha256Digest)));
  corpora.Put("site_store", "whole", 0, store);
  TablePlan plan;
  plan.step_calls = 100;
  plan.step_origin = 1000;
  for (int i = 0; i < 3; ++i) {
    KeyPlan key;
    key.key.collective = static_cast<Collective>(i);
    key.choice = {Algorithm::kRing, Protocol::kSimple, 4};
    key.arms = {{Algorithm::kRing, Protocol::kLL, 2}, kLeaveNcclAlone};
    plan.keys.push_back(key);
  }
  corpora.Put("table_plan", "three_keys", -1, EncodePlan(plan));
  ByteWriter calls;
  for (uint8_t version = 0; version < 5; ++version) {
    calls.Put(std::array<uint8_t, 2>{0, version});
    calls.Put(uint16_t{8});
    calls.Put(uint16_t{1});
    calls.Put(std::array<uint8_t, 2>{1, 1});
    calls.Put(std::array<uint8_t, 3>{1, version, 4});
    calls.Put(uint64_t{1} << 20);
    calls.Put(std::array<uint8_t, 4>{0, 1, 7, 3});
    for (int cell = 0; cell < 21; ++cell) calls.Put(uint8_t{50});
  }
  corpora.Put("tuner_calls", "every_version", -1, calls.buffer());
  ByteWriter policy;
  for (const uint32_t place : {8u, 200u, 60'000u}) {
    policy.Put(place);
    policy.Put(uint8_t{1});
  }
  zero::CheckpointIndex index;
  index.values["step"] = "3";
  index.states = {"master"};
  index.tensors = {{"weight", {4, 8}}};
  index.files = {{"part.0", 128, {7}}};
  index.ranges = {{0, 0, 0, 0, zero::TensorSlice{}, 0, 32}};
  const Bytes encoded = zero::EncodeIndex(index);
  corpora.Put("checkpoint_index", "body", 1, std::span(encoded).subspan(20, encoded.size() - 28));
  corpora.Put("checkpoint_index", "whole", 0, encoded);
  corpora.Put("sweep_journal", "every_kind", 1, LinesOfAJournal());
  corpora.Put("policy_file", "changes", 1, policy.buffer());
  corpora.Put("policy_file", "no_change", 1, "");
  corpora.Put("policy_file", "magic", 0, "DYNCCLP1");
}

}  // namespace
}  // namespace dynamiccl

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  dynamiccl::Corpora corpora(argv[1]);
  dynamiccl::PutMessages(corpora);
  dynamiccl::PutBootstrap(corpora);
  dynamiccl::PutFrames(corpora);
  dynamiccl::PutRendezvous(corpora);
  dynamiccl::PutHandshake(corpora);
  dynamiccl::PutSharedMemory(corpora);
  dynamiccl::PutTraces(corpora);
  dynamiccl::PutStates(corpora);
  dynamiccl::PutMeasurements(corpora, argv[1]);
  return 0;
}
