// SPDX-License-Identifier: Apache-2.0
// `dynamiccl config env`: every environment variable of the project, from the one table
// (src/base/settings.def).
#pragma once

namespace dynamiccl {

struct SettingListOptions {
  bool markdown = false;  // as the page docs/settings.md
  bool json = false;
};

void PrintSettingList(const SettingListOptions& options);

}  // namespace dynamiccl
