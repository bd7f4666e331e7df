// SPDX-License-Identifier: Apache-2.0
#include "tools/record/found_choices.h"

#include <fmt/format.h>

#include "src/base/settings.h"
#include "src/decision/site_store/site_store_file.h"
#include "tools/report/choice_comparison.h"

namespace dynamiccl {
namespace {

// The sentence names at most this many choices. It states only the number of the others.
constexpr size_t kNamed = 4;

std::string NameOf(const SiteKey& key, const Confirmed& confirmed) {
  return fmt::format("{} of {} {}", Name(key.key.collective), Name(key.key.size_class),
                     Name(confirmed.config));
}

}  // namespace

std::string DescribeFound(const SiteStore& before, const SiteStore& after, const std::string& keep) {
  std::string named;
  size_t better = 0, tried = 0;
  for (const auto& [key, confirmed] : after.entries()) {
    const auto known = before.entries().find(key);
    if (known != before.entries().end() && known->second == confirmed) continue;
    ++tried;
    if (confirmed.config.leaves_nccl_alone()) continue;
    if (++better <= kNamed) named += (named.empty() ? "" : ", ") + NameOf(key, confirmed);
  }
  if (tried == 0) return "nothing was confirmed: the job was too short, or its steps differ too much";
  if (better == 0)
    return fmt::format("nothing better than NCCL's choice was found for {} kinds of call", tried);
  if (better > kNamed) named += fmt::format(" and {} more", better - kNamed);
  return "found better than NCCL's choice: " + named + (keep.empty() ? "" : "; " + keep);
}

Result<FoundChoices> FoundChoices::Watch(RuntimeOptions& runtime) {
  FoundChoices found;
  found.path_ = runtime.site_store.empty() ? TextSetting(Setting::kSiteStore) : runtime.site_store;
  if (found.path_.empty()) {
    DYNAMICCL_TRY(TemporaryFolder folder, TemporaryFolder::Create("found"));
    found.folder_.emplace(std::move(folder));
    found.path_ = runtime.site_store = found.folder_->File("found.dcsite");
  } else if (auto before = ReadSiteStore(found.path_)) {
    found.before_ = std::move(*before);
  }
  return found;
}

std::string FoundChoices::Describe() const {
  const auto after = ReadSiteStore(path_);
  if (!after) return "";
  return DescribeFound(before_, *after, own() ? "--site-store FILE keeps it for the next job" : "");
}

}  // namespace dynamiccl
