// SPDX-License-Identifier: Apache-2.0
#include "tools/receipt/nccl_variables.h"

#include <algorithm>
#include <array>
#include <vector>

#include "src/base/nearest_name.h"

namespace dynamiccl {
namespace {

using real_nccl::NcclRelease;

struct VariableRow {
  const char* name;
  const char* since;
  const char* until;
};

#define DYNAMICCL_NCCL_TABLE_REACHES(oldest, newest)
#define DYNAMICCL_NCCL_VARIABLE(name, since, until) {name, since, until},
constexpr VariableRow kRows[] = {
#include "tools/receipt/nccl_variables.def"
};
#undef DYNAMICCL_NCCL_VARIABLE
#undef DYNAMICCL_NCCL_TABLE_REACHES

#define DYNAMICCL_NCCL_TABLE_REACHES(oldest, newest) {oldest, newest},
#define DYNAMICCL_NCCL_VARIABLE(name, since, until)
constexpr std::array<const char*, 2> kReach[] = {
#include "tools/receipt/nccl_variables.def"
};
#undef DYNAMICCL_NCCL_VARIABLE
#undef DYNAMICCL_NCCL_TABLE_REACHES

// A short name has fewer letters than this after its prefix. A mistyped short name is corrected if a known
// name differs from it in one letter, a longer name if at most two letters differ. If more letters could
// differ, names of plugins such as NCCL_SHARP_DISABLE would be taken for names of NCCL.
constexpr size_t kShortName = 6;

// A variable that every release from `since` on reads whenever it creates a communicator of several ranks.
// The list comes from runs of the releases with 1 x 2, 2 x 1 and 2 x 2 nodes x ranks per node. It is short
// because communicators of one rank and machines with one GPU read fewer variables.
struct ReadAtInit {
  std::string_view name;
  NcclRelease since;
};
constexpr ReadAtInit kReadAtInit[] = {
    {"NCCL_ALGO", {2, 21, 5}},           {"NCCL_PROTO", {2, 21, 5}},
    {"NCCL_MIN_CTAS", {2, 21, 5}},       {"NCCL_MAX_CTAS", {2, 21, 5}},
    {"NCCL_MIN_NCHANNELS", {2, 21, 5}},  {"NCCL_MAX_NCHANNELS", {2, 21, 5}},
    {"NCCL_BUFFSIZE", {2, 21, 5}},       {"NCCL_LL_BUFFSIZE", {2, 21, 5}},
    {"NCCL_LL128_BUFFSIZE", {2, 21, 5}}, {"NCCL_CROSS_NIC", {2, 28, 9}},
    {"NCCL_NVLS_ENABLE", {2, 21, 5}},    {"NCCL_CUMEM_ENABLE", {2, 21, 5}},
    {"NCCL_TOPO_FILE", {2, 21, 5}},      {"NCCL_CGA_CLUSTER_SIZE", {2, 21, 5}},
    {"NCCL_COMM_BLOCKING", {2, 21, 5}},  {"NCCL_RUNTIME_CONNECT", {2, 22, 3}}};

}  // namespace

std::optional<NcclVariable> FindNcclVariable(std::string_view name) {
  const auto* const row = std::find_if(std::begin(kRows), std::end(kRows),
                                       [&](const VariableRow& one) { return one.name == name; });
  if (row == std::end(kRows)) return std::nullopt;
  return NcclVariable{row->name, real_nccl::ParseRelease(row->since), real_nccl::ParseRelease(row->until)};
}

bool TableReaches(const NcclRelease& release) {
  return release >= *real_nccl::ParseRelease(kReach[0][0]) &&
         release <= *real_nccl::ParseRelease(kReach[0][1]);
}

std::string ReachOfTable() {
  return std::string(kReach[0][0]) + " to " + kReach[0][1];
}

std::string NearestNcclVariable(std::string_view name) {
  std::vector<std::string_view> known;
  for (const VariableRow& row : kRows) known.emplace_back(row.name);
  std::string nearest = NearestName(name, known);
  constexpr size_t kPrefix = 5;  // "NCCL_"
  const size_t near = name.size() < kPrefix + kShortName ? 1 : 2;
  return EditDistance(name, nearest) <= near ? nearest : "";
}

bool IsReadAtInit(std::string_view name, const NcclRelease& release) {
  if (!TableReaches(release)) return false;
  return std::any_of(std::begin(kReadAtInit), std::end(kReadAtInit),
                     [&](const ReadAtInit& one) { return one.name == name && release >= one.since; });
}

}  // namespace dynamiccl
