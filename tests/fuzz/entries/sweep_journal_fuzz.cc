// SPDX-License-Identifier: Apache-2.0
// Reads journals of sweeps. Input: byte 0 even: the journal follows; odd: its lines follow, and the entry
// puts their hashes before them.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "tests/fuzz/fuzz_input.h"
#include "traces/format/sweep_journal.h"

namespace {

using namespace dynamiccl;

std::string WithHashes(std::string_view lines) {
  std::string journal;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    journal += fmt::format("{:016x} {}\n", XXH3_64bits(line.data(), line.size()), line);
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
  }
  return journal;
}

Result<SweepJournal> Read(std::string_view text) {
  const fuzz::InputFile file(std::as_bytes(std::span(text)));
  return ReadSweepJournal(fuzz::InputFile::path());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader input(fuzz::BytesOf(data, size));
  const bool hashed = input.Get<uint8_t>() % 2 != 0;
  const std::string_view given = fuzz::TextOf(fuzz::RestOf(input));
  const std::string text = hashed ? WithHashes(given) : std::string(given);
  const auto journal = Read(text);
  if (!journal) return 0;
  fuzz::Require(journal->whole_bytes <= text.size(), "what is whole is a part of it");
  fuzz::Require(journal->torn == (journal->whole_bytes < text.size()), "all of it, unless it is torn");
  const auto again = Read(std::string_view(text).substr(0, journal->whole_bytes));
  fuzz::Require(again.has_value() && !again->torn, "what is whole can be read alone");
  fuzz::Require(again->plan == journal->plan && again->complete == journal->complete, "and says the same");
  return 0;
}
