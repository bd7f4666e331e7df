// SPDX-License-Identifier: Apache-2.0
// Writes system files, in the form that system_file.cc reads.
#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <span>

#include "src/base/whole_file.h"
#include "src/simulator/path_keys.h"
#include "src/simulator/system.h"

namespace dynamiccl {
namespace {

// Returns a TOML text; control characters become blanks.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return quoted + '"';
}

// Returns a TOML float that reads back as the same double. It never looks like an integer, because readers
// tell the two apart.
std::string Number(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

void AddPath(std::string& text, Algorithm algorithm, Protocol protocol, const PathCosts& costs) {
  text += fmt::format("\n[[path]]\nalgorithm = \"{}\"\nprotocol = \"{}\"\n", Name(algorithm), Name(protocol));
  for (const PathKey& key : kPathKeys) text += fmt::format("{} = {}\n", key.name, Number(costs.*key.value));
}

// One table for each run of residuals that differ in size only.
void AddColumn(std::string& text, std::span<const Residual> column) {
  const Residual& first = column.front();
  text += fmt::format("\n[[residual]]\ncollective = \"{}\"\n", Name(first.collective));
  if (first.algorithm != Algorithm::kUndefined)
    text += fmt::format("algorithm = \"{}\"\n", Name(first.algorithm));
  if (first.protocol != Protocol::kUndefined)
    text += fmt::format("protocol = \"{}\"\n", Name(first.protocol));
  std::string bytes;
  std::string factors;
  for (const Residual& residual : column) {
    bytes += fmt::format("{}{}", bytes.empty() ? "" : ", ", residual.bytes);
    factors += fmt::format("{}{}", factors.empty() ? "" : ", ", Number(residual.log_factor));
  }
  text += fmt::format("ranks = {}\nbytes = [{}]\nlog_factor = [{}]\n", first.n_ranks, bytes, factors);
}

}  // namespace

std::string SystemSealOf(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

std::string FormatSystem(const System& system) {
  std::string text = fmt::format(
      "# dynamiccl-system\nversion = 2\nname = {}\nsource = {}\nranks_per_node = {}\nmax_channels = {}\n"
      "formula_share = {}\nresidual_reach = {}\nline_share = {}\ndrift_bytes_per_rank = {}\n",
      Quoted(system.name), Quoted(system.source), system.ranks_per_node, system.max_channels,
      Number(system.formula_share), Number(system.residual_reach), Number(system.line_share),
      system.drift_bytes_per_rank);
  if (system.network_ranks != 1) text += fmt::format("network_ranks = {}\n", system.network_ranks);
  for (int a = 0; a < kAlgorithms; ++a) {
    for (int p = 0; p < kProtocols; ++p) {
      const auto algorithm = static_cast<Algorithm>(a);
      const auto protocol = static_cast<Protocol>(p);
      const PathCosts& costs = system.path(algorithm, protocol);
      if (costs.known()) AddPath(text, algorithm, protocol, costs);
    }
  }
  const std::span<const Residual> all = system.residuals;
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[begin].SameColumn(all[end])) ++end;
    AddColumn(text, all.subspan(begin, end - begin));
  }
  for (const StatedError& error : system.errors) {
    text += fmt::format("\n[[error]]\ncollective = \"{}\"\nranks = {}\ncells = {}\nmedian = {}\nmean = {}\n",
                        Name(error.collective), error.n_ranks, error.cells, Number(error.median),
                        Number(error.mean));
  }
  for (const StatedInterval& interval : system.intervals) {
    text += fmt::format("\n[[interval]]\ncollective = \"{}\"\n", Name(interval.collective));
    if (interval.seen > 0)
      text += fmt::format("seen = {}\nseen_cells = {}\n", Number(interval.seen), interval.seen_cells);
    if (interval.unseen > 0)
      text += fmt::format("unseen = {}\nunseen_cells = {}\n", Number(interval.unseen), interval.unseen_cells);
  }
  text += "\n";
  return text + std::string(kSystemSealPrefix) + SystemSealOf(text) + "\n";
}

Status WriteSystemFile(const std::string& path, const System& system) {
  const std::string text = FormatSystem(system);
  DYNAMICCL_CHECK_OK(ParseSystem(text, path));
  return WriteWholeFile(path, std::as_bytes(std::span(text)));
}

}  // namespace dynamiccl
