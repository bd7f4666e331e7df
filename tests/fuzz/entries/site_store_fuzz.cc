// SPDX-License-Identifier: Apache-2.0
// Parses site stores. Input: byte 0 = 0: the file follows. Otherwise the file without its digest follows, and
// the entry adds the digest.
#include "src/base/sha256.h"
#include "src/decision/site_store/site_store_file.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dynamiccl;
  ByteReader input(fuzz::BytesOf(data, size));
  const bool seals = input.Get<uint8_t>() != 0;
  ByteWriter file;
  file.PutBytes(fuzz::RestOf(input));
  if (seals) file.Put(Sha256Of(file.buffer()));
  const auto store = ParseSiteStore(file.buffer(), "fuzz");
  if (!store) return 0;
  const auto again = ParseSiteStore(FormatSiteStore(*store), "again");
  fuzz::Require(again && *again == *store, "what was written is read back");
  SiteStore aged = *store;
  aged.Age(1'700'000'000);
  return 0;
}
