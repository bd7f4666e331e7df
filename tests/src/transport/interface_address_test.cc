// SPDX-License-Identifier: Apache-2.0
#include "src/transport/interface_address.h"

#include <gtest/gtest.h>

namespace dynamiccl {
namespace {

const std::vector<InterfaceAddress> kHere = {{"lo", 0x7f000001},
                                             {"docker0", 0xac110001},
                                             {"eth0", 0x0a000001},
                                             {"eth1", 0x0a000002},
                                             {"ib0", 0xc0a80001}};

uint32_t Chosen(const std::string& choice) {
  const auto address = ChooseInterface(choice, kHere);
  return address ? *address : 0;
}

TEST(Interface, IsChosenAsNcclSocketIfnameDoes) {
  EXPECT_EQ(Chosen("10.1.2.3"), 0x0a010203u) << "an address is taken as it is";
  EXPECT_EQ(Chosen("eth"), 0x0a000001u);
  EXPECT_EQ(Chosen("eth1"), 0x0a000002u);
  EXPECT_EQ(Chosen("ib,eth"), 0xc0a80001u) << "in the order given";
  EXPECT_EQ(Chosen("=eth1"), 0x0a000002u);
  EXPECT_EQ(Chosen("=eth"), 0u);
  EXPECT_EQ(Chosen("^docker,eth0"), 0x0a000002u) << "loopback comes last";
  EXPECT_EQ(Chosen("^docker,eth,ib"), 0x7f000001u);
  EXPECT_EQ(Chosen("^=eth0,docker0"), 0x0a000002u);
}

TEST(Interface, AMistakeNamesWhatThereIs) {
  const auto address = ChooseInterface("wlan0", kHere);
  ASSERT_FALSE(address.has_value());
  EXPECT_EQ(address.error().kind, ErrorKind::kInvalidArgument);
  EXPECT_NE(address.error().hint.find("docker0, eth0"), std::string::npos) << address.error().hint;
}

TEST(Interface, LoopbackIsFoundByName) {
  const auto address = AddressOfInterface("=lo");
  if (!address) GTEST_SKIP() << "no loopback interface is up here: " << address.error().message;
  EXPECT_EQ(*address >> 24, 127u);
}

}  // namespace
}  // namespace dynamiccl
