// SPDX-License-Identifier: Apache-2.0
#include "tools/receipt/nccl_log.h"

#include <algorithm>
#include <cstdlib>

#include "tools/canary/release_library.h"
#include "traces/import/log_line.h"
#include "traces/import/nccl_debug_lines.h"
#include "traces/import/text_fields.h"

namespace dynamiccl {
namespace {

// The most distinct lines that are kept. A log of 1,024 ranks has about ten thousand distinct lines.
constexpr size_t kMaxNotes = 200'000;

// True if the line is one of the many that show nothing about a setting: calls, buffers, rings, topologies.
bool IsBulk(std::string_view text) {
  constexpr std::string_view kBulk[] = {"Channel ",
                                        "Ring ",
                                        "Tree ",
                                        "Trees ",
                                        "Allocated ",
                                        "UDS ",
                                        "New proxy ",
                                        "Connected to proxy",
                                        "proxy listening",
                                        "=== ",
                                        "CPU/",
                                        "+ ",
                                        "GPU/",
                                        "NET/0",
                                        "Mem ",
                                        "Cuda ",
                                        "Received ",
                                        "Proxy ",
                                        "MemManager"};
  return BeginsDebugCall(text) ||
         std::any_of(std::begin(kBulk), std::end(kBulk),
                     [&](std::string_view start) { return Trimmed(text).starts_with(start); });
}

// Returns the text of a line with a level above INFO, or of a line that PyTorch or DynamICCL wrote. Empty for
// other lines.
std::string_view OtherNote(std::string_view line) {
  // The level ATTN exists from NCCL 2.32 on.
  for (const std::string_view level : {"NCCL WARN ", "NCCL ATTN "}) {
    if (const size_t at = line.find(level); at != std::string_view::npos)
      return line.substr(at + level.size());
  }
  for (const std::string_view mark : {"dynamiccl: ", "TORCH_NCCL_", "DynamICCL: "}) {
    if (line.find(mark) != std::string_view::npos) return line;
  }
  return "";
}

}  // namespace

void NcclLog::Take(const std::string& file, size_t number, std::string_view text) {
  std::string changed;
  const std::string_view line = PlainLogLine(text, changed);
  for (const DebugPiece& piece : DebugPieces(line)) {
    const std::string process = std::string(piece.host) + ":" + std::to_string(piece.process_id);
    const LogLine of_process{file, number, std::string(Trimmed(piece.text))};
    configs.Take(process + "/" + std::to_string(piece.device), of_process);
    TakeOfProcess(process, of_process);
  }
  if (const std::string_view note = OtherNote(line); !note.empty()) Note({file, number, std::string(note)});
  if (line.find("NCCL version ") == std::string_view::npos) return;
  const auto release = ReleaseInText(line);
  if (release && std::none_of(releases.begin(), releases.end(),
                              [&](const LoggedRelease& one) { return one.release == *release; }))
    releases.push_back({*release, {file, number, std::string(line.substr(line.find("NCCL version ")))}});
}

const LogLine* NcclLog::Find(std::string_view part, std::string_view other) const {
  const auto found = std::find_if(notes.begin(), notes.end(), [&](const LogLine& line) {
    return line.text.find(part) != std::string::npos && line.text.find(other) != std::string::npos;
  });
  return found == notes.end() ? nullptr : &*found;
}

std::vector<const ReadVariable*> NcclLog::ReadsOf(std::string_view name) const {
  std::vector<const ReadVariable*> found;
  for (const ReadVariable& read : reads) {
    if (read.name == name) found.push_back(&read);
  }
  return found;
}

void NcclLog::TakeOfProcess(const std::string& process, LogLine line) {
  TakeInit(processes[process], line);
  if (TakeRead(process, line) || TakeChoice(line) || TakeUntuned(line) || TakeConnection(line)) return;
  if (line.text.find(" coll channels") != std::string::npos) {
    const auto parsed = real_nccl::ParseChannels(line.text);
    const bool known = std::any_of(channels.begin(), channels.end(), [&](const InitialisedChannels& one) {
      return one.line.text == line.text;
    });
    if (parsed && !known) channels.push_back({*parsed, line});
    return;
  }
  if (!IsBulk(line.text)) Note(std::move(line));
}

void NcclLog::TakeInit(LoggedProcess& process, const LogLine& line) {
  process.begins |= line.text.starts_with("cudaDriverVersion");
  if (process.joined || line.text.find("Init COMPLETE") == std::string::npos) return;
  const auto communicator = ParseDebugCommunicator(line.text);
  if (communicator && communicator->n_ranks > 1) process.joined = line;
}

bool NcclLog::TakeRead(const std::string& process, const LogLine& line) {
  const auto read = ParseDebugVariable(line.text);
  if (!read) return false;
  processes[process].shows_environment |= line.text.find(" set by environment to ") != std::string::npos;
  const bool known = std::any_of(reads.begin(), reads.end(), [&](const ReadVariable& one) {
    return one.name == read->name && one.value == read->value && one.process == process;
  });
  if (!known) reads.push_back({read->name, read->value, process, line});
  return true;
}

bool NcclLog::TakeChoice(const LogLine& line) {
  const auto choice = ParseDebugChoice(line.text);
  if (!choice) return false;
  constexpr std::string_view kClusters = " cgaClusterSize ";
  if (const size_t at = line.text.find(kClusters); at != std::string::npos)
    cluster_sizes.emplace(std::atoi(line.text.c_str() + at + kClusters.size()), line);
  const auto same = std::find_if(choices.begin(), choices.end(), [&](const ChosenCalls& one) {
    return one.collective == choice->collective && one.config.algorithm == choice->config.algorithm &&
           one.config.protocol == choice->config.protocol;
  });
  if (same == choices.end()) {
    choices.push_back({choice->collective, choice->config, 1, line});
    return true;
  }
  ++same->calls;
  // Keeps the line with the most channels, because the checks of upper limits quote that line.
  if (choice->config.channels > same->config.channels) {
    same->config.channels = choice->config.channels;
    same->line = line;
  }
  return true;
}

// Reads calls that ran without an algorithm of NCCL's table: "AllGather [Symmetric]: 1024 Bytes -> Kernel
// AllGather_STMC nchannels 2 nthreads 512 nWorks 1" or "AllGather [Copy Engine]: 1024 Bytes ->
// cudaMemcpyBatchAsync".
bool NcclLog::TakeUntuned(const LogLine& line) {
  if (!IsChoiceWithoutTuner(line.text)) return false;
  const std::vector<std::string_view> words = Words(line.text);
  UntunedCalls calls{.function = std::string(words.front()), .calls = 1, .line = line};
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "Kernel") calls.kernel = words[i + 1];
    if (words[i] == "nchannels") calls.channels = NumberIn<int>(words[i + 1]).value_or(0);
  }
  const auto same = std::find_if(untuned.begin(), untuned.end(), [&](const UntunedCalls& one) {
    return one.function == calls.function && one.kernel == calls.kernel;
  });
  if (same == untuned.end()) {
    untuned.push_back(std::move(calls));
  } else {
    ++same->calls;
    same->channels = std::max(same->channels, calls.channels);
  }
  return true;
}

// Reads a connection: "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM", "... [send] via NET/IB/0(1)/GDRDMA".
bool NcclLog::TakeConnection(const LogLine& line) {
  const size_t via = line.text.find(" via ");
  if (via == std::string::npos || (!line.text.starts_with("Channel ") && !line.text.starts_with("CollNet ")))
    return false;
  const std::string_view transport = std::string_view(line.text).substr(via + 5);
  const size_t first = transport.find('/');
  const size_t second = first == std::string_view::npos ? first : transport.find('/', first + 1);
  Connections found{.kind = std::string(transport.substr(0, second)),
                    .gpu_direct = transport.find("/GDRDMA") != std::string_view::npos,
                    .count = 1,
                    .line = line};
  const auto same = std::find_if(connections.begin(), connections.end(), [&](const Connections& one) {
    return one.kind == found.kind && one.gpu_direct == found.gpu_direct;
  });
  if (same == connections.end())
    connections.push_back(std::move(found));
  else
    ++same->count;
  return true;
}

void NcclLog::Note(LogLine line) {
  if (notes.size() < kMaxNotes && noted_.insert(line.text).second) notes.push_back(std::move(line));
}

}  // namespace dynamiccl
