// SPDX-License-Identifier: Apache-2.0
// What a job in mode adaptive found, for the lines at the end of `run`. Its rank 0 leaves what it has
// confirmed in a site store at its end.
#pragma once

#include <optional>
#include <string>

#include "src/decision/site_store/site_store.h"
#include "tools/launch/launch_plan.h"
#include "tools/launch/temporary_folder.h"

namespace dynamiccl {

// The store of one launch, owned by the command from before the launch until it has read what was found.
class FoundChoices {
 public:
  // Names a store of this launch in `runtime`, which ends with this object, where the user named none by
  // option or setting. The ranks run on this machine.
  static Result<FoundChoices> Watch(RuntimeOptions& runtime);

  // The user named no store: what was found is lost unless the next launch names one.
  bool own() const { return folder_.has_value(); }
  // One sentence on what the job found. Empty where the store is damaged.
  std::string Describe() const;

 private:
  std::optional<TemporaryFolder> folder_;
  std::string path_;
  // The contents of the store before the launch.
  SiteStore before_;
};

// "found better than NCCL's choice: AllGather of 192K..224K Ring Simple x1", from the entries that `after`
// has and `before` has not. `keep` is what a reader can do with it; empty: nothing.
std::string DescribeFound(const SiteStore& before, const SiteStore& after, const std::string& keep);

}  // namespace dynamiccl
