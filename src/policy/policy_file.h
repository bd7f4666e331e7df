// SPDX-License-Identifier: Apache-2.0
// Reads and writes policy files (.dcpolicy). A file that is read has passed every check of
// docs/formats/policy_file.md. An error names the file, the byte and the check that failed, and then nothing
// of the file is used.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/policy/policy.h"

namespace dynamiccl {

// Opens a regular file of at most kMaxPolicyBytes once, not through a symbolic link, and copies it: later
// changes of the file have no effect. Logs a warning when others may write to it.
Result<std::unique_ptr<const Policy>> ReadPolicyFile(const std::string& path);

// Returns the digest that a policy read from this file would have, in a tenth of the time: nothing else is
// checked.
Result<Sha256Digest> ReadPolicyDigest(const std::string& path);

// Returns the same as ReadPolicyFile for bytes in memory; `name` is used in errors.
Result<std::unique_ptr<const Policy>> ParsePolicy(std::span<const std::byte> bytes, const std::string& name);

// Returns the bytes of the file; equal policies give equal bytes.
std::vector<std::byte> FormatPolicy(const Policy& policy);

// Refuses a policy that reading would refuse. Writes beside `path` and renames, so a reader never sees half a
// file. Returns the file's SHA-256.
Result<Sha256Digest> WritePolicyFile(const std::string& path, const Policy& policy);

}  // namespace dynamiccl
