// SPDX-License-Identifier: Apache-2.0
#include "zero_workloads/tensorboard_events.h"

#include <gtest/gtest.h>

#include <cstring>
#include <sstream>

#include "tests/zero_workloads/rank_processes.h"

namespace dynamiccl::zero {
namespace {

TEST(Crc32c, HasTheValuesOfRfc3720) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

template <typename T>
T Take(std::istream& stream) {
  T value{};
  stream.read(reinterpret_cast<char*>(&value), sizeof(T));
  return value;
}

uint32_t Unmasked(uint32_t masked) {
  const uint32_t rotated = masked - 0xA282EAD8u;
  return rotated >> 17 | rotated << 15;
}

// Returns the records of a file. Their checksums must be right.
std::vector<std::string> Records(const std::filesystem::path& path) {
  std::stringstream file;
  file << std::ifstream(path, std::ios::binary).rdbuf();
  std::vector<std::string> records;
  while (file.peek() != EOF) {
    const auto length = Take<uint64_t>(file);
    EXPECT_EQ(Unmasked(Take<uint32_t>(file)), Crc32c({reinterpret_cast<const char*>(&length), 8}));
    std::string message(length, '\0');
    file.read(message.data(), static_cast<std::streamsize>(length));
    EXPECT_EQ(Unmasked(Take<uint32_t>(file)), Crc32c(message));
    records.push_back(message);
  }
  return records;
}

TEST(TensorboardEvents, AreFramedMessages) {
  const TemporaryFolder folder;
  auto events = TensorboardEvents::Open(folder / "runs", 1.5);
  ASSERT_TRUE(events) << events.error().message;
  const Scalar scalars[] = {{"loss", 2.5f}, {"a", -1.0f}};
  events->Write(300, 2.5, scalars);
  EXPECT_TRUE(events->good());
  EXPECT_NE(events->path().filename().string().find("tfevents"), std::string::npos);
  const std::vector<std::string> records = Records(events->path());
  ASSERT_EQ(records.size(), 2u);
  // Field 1 is a double, 1.5. Field 3 is the version.
  EXPECT_EQ(records[0], std::string("\x09\0\0\0\0\0\0\xf8\x3f\x1a\x0d", 11) + "brain.Event:2");
  // The wall time 2.5, the step 300 as a varint, and a summary of two values, each a tag and a float.
  const std::string summary =
      std::string("\x0a\x0b\x0a\x04loss\x15\0\0\x20\x40\x0a\x08\x0a\x01\x61\x15\0\0\x80\xbf", 23);
  EXPECT_EQ(records[1], std::string("\x09\0\0\0\0\0\0\x04\x40\x10\xac\x02\x2a\x17", 14) + summary);
}

TEST(TensorboardEvents, AFolderThatCannotBeIsAnError) {
  const auto events = TensorboardEvents::Open("/proc/self/events", 1.0);
  ASSERT_FALSE(events);
  EXPECT_NE(events.error().message.find("--tensorboard /proc/self/events: cannot be written"),
            std::string::npos);
}

}  // namespace
}  // namespace dynamiccl::zero
