// SPDX-License-Identifier: Apache-2.0
// Reads the input of a fuzz entry. An entry is a file that defines LLVMFuzzerTestOneInput. libFuzzer and
// AFL++ call this function with inputs that they make; fuzz_corpora_test calls it with the inputs of
// tests/fuzz/corpus. It returns 0, and aborts if the code breaks a promise.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "src/base/byte_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace dynamiccl::fuzz {

inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

inline std::span<const std::byte> BytesOf(const uint8_t* data, size_t size) {
  return std::as_bytes(std::span(data, size));
}

inline std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::span<const std::byte> RestOf(ByteReader& input) {
  return input.GetBytes(input.remaining());
}

// Reads a text that ends at a zero byte or after `most` bytes.
inline std::string NextText(ByteReader& input, size_t most) {
  std::string text;
  while (text.size() < most && input.remaining() > 0) {
    const char next = input.Get<char>();
    if (next == '\0') break;
    text += next;
  }
  return text;
}

// Holds the input in a file without a name, for code that takes a path. A process has one such file.
class InputFile {
 public:
  explicit InputFile(std::span<const std::byte> bytes) {
    Require(::ftruncate(Descriptor(), 0) == 0, "the input's file can be cut");
    const auto written = ::pwrite(Descriptor(), bytes.data(), bytes.size(), 0);
    Require(written == static_cast<ssize_t>(bytes.size()), "the input's file can be written");
  }
  static std::string path() { return "/proc/self/fd/" + std::to_string(Descriptor()); }

 private:
  static int Descriptor() {
    static const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
    return fd;
  }
};

}  // namespace dynamiccl::fuzz
