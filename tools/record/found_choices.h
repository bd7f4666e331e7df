// SPDX-License-Identifier: Apache-2.0
// Finds out which choices a job in mode adaptive found, for the lines at the end of `run`. At the job's end
// its rank 0 writes the confirmed choices into a site store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/decision/site_store/site_store.h"
#include "tools/launch/launch_plan.h"
#include "tools/launch/temporary_folder.h"

namespace dynamiccl {

// The site store of one launch. The command owns it from before the launch until the store has been read.
class FoundChoices {
 public:
  // If the user named no site store by option or setting, names a temporary one in `runtime`, which is
  // removed with this object. All ranks must run on this machine.
  static Result<FoundChoices> Watch(RuntimeOptions& runtime);

  // True if the user named no site store. The found choices are then lost, unless the user launches the job
  // again with a site store.
  bool own() const { return folder_.has_value(); }
  // Returns one sentence on what the job found; where it found nothing, `metrics`, the text of each process's
  // metrics file, says why. Empty if the store is damaged.
  std::string Describe(const std::vector<std::string>& metrics) const;

 private:
  std::optional<TemporaryFolder> folder_;
  std::string path_;
  // The contents of the store before the launch.
  SiteStore before_;
};

// How far a job's experiments came, by the versions of the guard that its ranks took up.
struct ExperimentCounts {
  uint64_t begun = 0;  // versions that began an experiment, or continued one
  uint64_t ended = 0;  // experiments that ended because steps came with other calls
  // Calls that were trials. A version made for another reason may have trials, too: a version that uses a
  // choice of an earlier job compares that choice with NCCL's.
  uint64_t trials = 0;
};
// Returns the counts of the process that began most experiments, which is the leader's, with the largest
// number of trials of any process. Returns nothing if no process of `metrics` had a guard.
std::optional<ExperimentCounts> ExperimentsIn(const std::vector<std::string>& metrics);

// Describes the entries that `after` has and `before` does not have: "found better than NCCL's choice:
// AllGather of 192K..224K Ring Simple x1". `keep` tells the reader how to keep them and is appended; it may
// be empty. If there are no such entries, `experiments` says why; nothing: it is not known.
std::string DescribeFound(const SiteStore& before, const SiteStore& after, const std::string& keep,
                          const std::optional<ExperimentCounts>& experiments);

}  // namespace dynamiccl
