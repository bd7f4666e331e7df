// SPDX-License-Identifier: Apache-2.0
// The events of a PyTorch profiler (Kineto) trace that concern NCCL, read as a stream. Memory use grows with
// these events and with the kernels and their launches, not with the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "traces/import/framework_marks.h"

namespace dynamiccl {

// One event ("ph":"X"). Which arguments it has depends on the PyTorch release; -1 or an empty text means
// absent. Times are nanoseconds from KinetoFile::base_ns on.
struct KinetoEvent {
  std::string name;  // set for annotations and steps only
  int64_t begin_ns = 0;
  int64_t duration_ns = 0;
  int64_t thread = 0;
  int64_t correlation = -1;  // links a kernel to its launch
  int64_t stream = -1;
  int64_t grid = -1;       // a kernel's number of blocks, which is the number of NCCL's channels
  bool symmetric = false;  // a kernel over windows of registered memory
  std::string collective_name;
  std::string data_type;
  int64_t in_elements = -1;
  int64_t out_elements = -1;
  int64_t group_size = -1;
  int64_t source_rank = -1;
  int64_t destination_rank = -1;
  int64_t rank_start = -1;
  int64_t rank_stride = -1;
  std::string group_name;
  int64_t input_elements = -1;  // elements of the first tensor of "Input Dims"
  std::string input_type;       // first element of "Input type"

  int64_t end_ns() const { return begin_ns + duration_ns; }
};

// A process group as the file's head lists it.
struct KinetoProcessGroup {
  std::string name;
  int64_t size = 0;
  std::vector<int64_t> ranks;  // may be empty
};

// The launch of a kernel: thread and time of the host's call.
struct KinetoLaunch {
  int64_t correlation = 0;
  int64_t begin_ns = 0;
  int64_t thread = 0;

  friend bool operator<(const KinetoLaunch& a, const KinetoLaunch& b) {
    return a.correlation < b.correlation;
  }
};

// The interval in which a device was busy, in nanoseconds from KinetoFile::base_ns on.
struct KinetoInterval {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// Everything that the importer needs of a file.
struct KinetoFile {
  int64_t rank = -1;
  int64_t world = -1;
  int64_t base_ns = 0;  // added to every time
  uint64_t bytes = 0;   // length of the decompressed file
  std::string nccl_version;
  std::vector<KinetoProcessGroup> groups;
  std::vector<KinetoEvent> comms;                // record_param_comms: the calls with their arguments
  std::vector<KinetoEvent> annotations;          // nccl:*, nccl2:*
  std::vector<KinetoEvent> others;               // the same events of kOtherBackends, such as gloo:*
  std::vector<KinetoEvent> kernels;              // ncclKernel*, ncclDevKernel*, ncclSymkDevKernel*
  std::map<std::string, uint64_t> kernel_names;  // names of `kernels`, and how many kernels have each name
  std::vector<KinetoEvent> steps;                // ProfilerStep#n
  std::vector<KinetoLaunch> launches;            // sorted by correlation
  std::vector<KinetoInterval> computing;         // other kernels, copies and fills, in the file's order
  FrameworkMarks frameworks;                     // what the names of events and groups show
  bool several_devices = false;                  // true: the kernels ran on more than one device
};

// Backends of torch.distributed whose calls PyTorch annotates as it does those of NCCL, though no kernel of
// NCCL carries them out.
inline constexpr std::string_view kOtherBackends[] = {"dynamiccl", "gloo", "mpi", "ucc", "xccl"};

// Reads a file. Errors name the file and the byte of the decompressed text.
Result<KinetoFile> ReadKinetoFile(const std::string& path);

}  // namespace dynamiccl
