// SPDX-License-Identifier: Apache-2.0
// A profiler plugin (versions 1, 2 and 4, for NCCL 2.23 and later) that prints what NCCL runs on every rank.
// NCCL's own log shows only rank 0. Each collective prints a line:
//   witness: <rank> <function> <bytes of one rank's count> <algorithm> <protocol> <channels>
// Before 2.27 the channels are those that were asked for. With WITNESS_DIGEST=1 the plugin prints only one
// line for each communicator, when the communicator is destroyed. The line is equal on all ranks that ran the
// same:
//   witness: <rank> calls <number> digest <hex>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "src/collective/algorithm.h"
#include "src/collective/collective.h"
#include "src/collective/data_type.h"
#include "src/collective/protocol.h"
#include "src/nccl_abi/profiler_v1.h"
#include "src/nccl_abi/profiler_v2.h"
#include "src/nccl_abi/profiler_v4.h"

namespace {

struct Witness {
  int rank = -1;
  uint64_t calls = 0;
  uint64_t digest = 14695981039346656037u;  // FNV-1a of the lines

  void Add(std::string_view line) {
    for (const char letter : line) digest = (digest ^ static_cast<unsigned char>(letter)) * 1099511628211u;
    ++calls;
  }
};

bool SaysDigestsOnly() {
  static const bool digests = std::getenv("WITNESS_DIGEST") != nullptr;
  return digests;
}

// Version 1 passes numbers, and later versions pass names.
std::string FunctionName(uint8_t number) {
  return std::string(Name(static_cast<dynamiccl::Collective>(number)));
}
std::string FunctionName(const char* name) {
  return name;
}
std::string AlgorithmName(uint8_t number) {
  return std::string(LogName(static_cast<dynamiccl::Algorithm>(number)));
}
std::string AlgorithmName(const char* name) {
  return name;
}
std::string ProtocolName(uint8_t number) {
  return std::string(LogName(static_cast<dynamiccl::Protocol>(number)));
}
std::string ProtocolName(const char* name) {
  return name;
}
size_t BytesOf(uint8_t data_type) {
  return dynamiccl::ElementBytes(static_cast<dynamiccl::DataType>(data_type));
}
size_t BytesOf(const char* data_type) {
  const auto known = dynamiccl::ParseDataType(data_type);
  return known ? dynamiccl::ElementBytes(*known) : 0;
}

template <typename Coll>
int ChannelsOf(const Coll& coll) {
  if constexpr (requires { coll.nChannels; })
    return coll.nChannels;
  else
    return coll.nMaxChannels;
}

template <typename Descriptor>
ncclResult_t Start(void* context, void** handle, Descriptor* event) {
  *handle = context;  // NCCL 2.23 reports nothing in a group without a handle
  if (event->type != ncclProfileColl) return ncclSuccess;
  const auto& coll = event->coll;
  auto* witness = static_cast<Witness*>(context);
  witness->rank = event->rank;
  char line[200];
  std::snprintf(line, sizeof line, "%s %zu %s %s %d", FunctionName(coll.func).c_str(),
                coll.count * BytesOf(coll.datatype), AlgorithmName(coll.algo).c_str(),
                ProtocolName(coll.proto).c_str(), ChannelsOf(coll));
  witness->Add(line);
  if (!SaysDigestsOnly()) std::printf("witness: %d %s\n", event->rank, line);
  return ncclSuccess;
}

ncclResult_t Stop(void*) {
  return ncclSuccess;
}

template <typename Arguments>
ncclResult_t Record(void*, ncclProfilerEventState_t, Arguments*) {
  return ncclSuccess;
}

ncclResult_t Begin(void** context, int* mask) {
  *context = new Witness;
  *mask = ncclProfileGroup | ncclProfileColl;
  return ncclSuccess;
}

ncclResult_t Begin4(void** context, int* mask, const char*, uint64_t, int, int, int, ncclDebugLogger_t) {
  return Begin(context, mask);
}

ncclResult_t Finalize(void* context) {
  auto* witness = static_cast<Witness*>(context);
  if (SaysDigestsOnly())
    std::printf("witness: %d calls %" PRIu64 " digest %016" PRIx64 "\n", witness->rank, witness->calls,
                witness->digest);
  delete witness;
  return ncclSuccess;
}

}  // namespace

#define PLUGIN extern "C" __attribute__((visibility("default")))
PLUGIN const ncclProfiler_v1_t ncclProfiler_v1 = {
    "Witness", Begin, Start<ncclProfilerEventDescr_v1_t>, Stop, Record<ncclProfilerEventStateArgs_v1_t>,
    Finalize};
PLUGIN const ncclProfiler_v2_t ncclProfiler_v2 = {
    "Witness", Begin, Start<ncclProfilerEventDescr_v2_t>, Stop, Record<ncclProfilerEventStateArgs_v2_t>,
    Finalize};
PLUGIN const ncclProfiler_v4_t ncclProfiler_v4 = {
    "Witness", Begin4, Start<ncclProfilerEventDescr_v4_t>, Stop, Record<ncclProfilerEventStateArgs_v4_t>,
    Finalize};
