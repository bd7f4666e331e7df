// SPDX-License-Identifier: Apache-2.0
// Ranks of a benchmark that another launcher starts meet at MASTER_ADDR:MASTER_PORT, or report why they
// cannot.
#include "tools/bench/unique_id_exchange.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "src/base/unique_fd.h"

namespace dynamiccl {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// A socket that is bound but does not listen. It reserves its port during its lifetime.
class HeldPort {
 public:
  HeldPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    number_ = ntohs(address.sin_port);
  }
  int number() const { return number_; }
  void Release() { socket_ = UniqueFd(); }

 private:
  UniqueFd socket_;
  int number_ = 0;
};

RankPlace Place(int rank, int port) {
  RankPlace place;
  place.rank = rank;
  place.n_ranks = 2;
  place.master_port = port;
  return place;
}

TEST(UniqueIdExchange, EveryRankHasRankZerosId) {
  HeldPort port;
  ncclUniqueId sent{};
  std::fill(std::begin(sent.internal), std::end(sent.internal), 'x');
  port.Release();
  Result<ncclUniqueId> other = ncclUniqueId{};
  std::thread peer(
      [&] { other = ExchangeUniqueId(Place(1, port.number()), ncclUniqueId{}, std::chrono::seconds(60)); });
  const auto own = ExchangeUniqueId(Place(0, port.number()), sent, std::chrono::seconds(60));
  peer.join();
  ASSERT_TRUE(own) << own.error().message;
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(std::memcmp(&*other, &sent, sizeof(sent)), 0);
}

TEST(UniqueIdExchange, RankZeroSaysThatThePortIsTaken) {
  const HeldPort port;
  const auto id = ExchangeUniqueId(Place(0, port.number()), {}, std::chrono::seconds(20));
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().kind, ErrorKind::kUnavailable);
  EXPECT_EQ(id.error().message, "rank 0 cannot listen at 127.0.0.1:" + std::to_string(port.number()) +
                                    ": Address already in use");
  EXPECT_EQ(id.error().hint, "set MASTER_PORT to a free port");
}

TEST(UniqueIdExchange, RankZeroSaysThatTheAddressIsAnotherHosts) {
  RankPlace place = Place(0, 29500);
  place.master_address = "192.0.2.1";  // This address is reserved for documentation, so no host has it.
  const auto id = ExchangeUniqueId(place, {}, std::chrono::seconds(20));
  ASSERT_FALSE(id);
  EXPECT_THAT(id.error().message, HasSubstr("rank 0 cannot listen at 192.0.2.1:29500"));
  EXPECT_EQ(id.error().hint, "set MASTER_ADDR to an address of rank 0's host");
}

TEST(UniqueIdExchange, RankZeroSaysHowManyRanksAreMissing) {
  HeldPort port;
  port.Release();
  const auto id = ExchangeUniqueId(Place(0, port.number()), {}, milliseconds(50));
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().kind, ErrorKind::kTimeout);
  EXPECT_EQ(id.error().message, "only 0 of 1 other ranks came for the unique id");
  EXPECT_THAT(id.error().hint, HasSubstr("look at the output of the other ranks"));
}

TEST(UniqueIdExchange, AnotherRankSaysWhereItLookedForRankZero) {
  const HeldPort port;
  const auto id = ExchangeUniqueId(Place(1, port.number()), {}, milliseconds(50));
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().kind, ErrorKind::kTimeout);
  EXPECT_EQ(id.error().message, "rank 1 could not get the unique id from rank 0 at 127.0.0.1:" +
                                    std::to_string(port.number()) + ": Connection refused");
  EXPECT_THAT(id.error().hint, HasSubstr("MASTER_ADDR and MASTER_PORT"));
}

}  // namespace
}  // namespace dynamiccl
