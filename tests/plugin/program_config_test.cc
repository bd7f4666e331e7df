// SPDX-License-Identifier: Apache-2.0
// Tests configurations of programs that were built with the headers of other NCCL releases.
#include "plugin/interpose/program_config.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

namespace dynamiccl {
namespace {

// A release of NCCL whose header declares a configuration of `size` bytes.
struct OfRelease {
  unsigned version;
  size_t size;
};
constexpr OfRelease kReleases[] = {{21900, 48}, {22602, 48},  {22703, 72},
                                   {22803, 80}, {23203, 120}, {24000, 200}};

// Returns the configuration of such a program. The bytes after `size` do not belong to the program.
std::vector<std::byte> Given(const OfRelease& release) {
  std::vector<std::byte> bytes(release.size + 64, std::byte{0x5a});
  const ncclConfig_t nothing = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  std::memcpy(bytes.data(), &nothing, std::min(release.size, sizeof(nothing)));
  auto* config = reinterpret_cast<ncclConfig_t*>(bytes.data());
  config->size = release.size;
  config->version = release.version;
  return bytes;
}

TEST(ConfigCopy, IsTheProgramsButForWhatItLeftUndefined) {
  for (const OfRelease& release : kReleases) {
    SCOPED_TRACE(release.version);
    std::vector<std::byte> bytes = Given(release);
    auto* given = reinterpret_cast<ncclConfig_t*>(bytes.data());
    given->blocking = 1;
    given->maxCTAs = 20;
    const std::vector<std::byte> before = bytes;
    ASSERT_EQ(WhyWithoutCtas(given), "");
    EXPECT_EQ(CtasOf(given), (CtaBounds{0, 20}));
    ConfigCopy copy(given);
    copy.Add({8, 16});
    EXPECT_EQ(bytes, before);
    EXPECT_EQ(CtasOf(copy.get()), (CtaBounds{8, 20})) << "what the program set stays";
    given->minCTAs = 8;
    EXPECT_EQ(std::memcmp(copy.get(), given, release.size), 0);
  }
}

TEST(ConfigCopy, KeepsStringsThatTheProgramTakesAway) {
  ncclConfig_t given = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  std::string net = "Socket", name = "a communicator with a long name that is not kept inside the string";
  given.netName = net.c_str();
  given.commName = name.c_str();
  const ConfigCopy copy(&given);
  net.assign(net.size(), '-');
  name.assign(name.size(), '-');
  EXPECT_STREQ(copy.get()->netName, "Socket");
  EXPECT_EQ(std::string(copy.get()->commName).substr(0, 14), "a communicator");
}

TEST(ConfigCopy, OfNoConfigurationSetsNothingElse) {
  EXPECT_EQ(CtasOf(nullptr), CtaBounds{});
  EXPECT_EQ(WhyWithoutCtas(nullptr), "");
  ConfigCopy copy(nullptr);
  copy.Add({0, 4});
  EXPECT_EQ(CtasOf(copy.get()), (CtaBounds{0, 4}));
  EXPECT_EQ(copy.get()->magic, NCCL_API_MAGIC);
  EXPECT_EQ(copy.get()->size, 48u);
  for (size_t offset : {offsetof(ncclConfig_t, blocking), offsetof(ncclConfig_t, cgaClusterSize),
                        offsetof(ncclConfig_t, splitShare), offsetof(ncclConfig_t, trafficClass)})
    EXPECT_EQ(MemberOf(*copy.get(), offset), NCCL_CONFIG_UNDEF_INT);
  EXPECT_EQ(copy.get()->netName, nullptr);
}

TEST(ConfigCopy, IsNotMadeOfWhatIsNoConfigurationOrTooOld) {
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  config.magic = 1;
  EXPECT_NE(WhyWithoutCtas(&config), "");
  config.magic = NCCL_API_MAGIC;
  config.version = 21400;
  EXPECT_NE(WhyWithoutCtas(&config), "");
  config.version = 23203;
  for (const size_t size :
       {size_t{0}, offsetof(ncclConfig_t, cgaClusterSize), offsetof(ncclConfig_t, maxCTAs), SIZE_MAX}) {
    config.size = size;
    EXPECT_NE(WhyWithoutCtas(&config), "") << size;
  }
}

}  // namespace
}  // namespace dynamiccl
