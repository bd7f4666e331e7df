// SPDX-License-Identifier: Apache-2.0
// Tests how the harness judges the releases in the cache before it runs one. Missing, broken and usable
// releases must be distinguished.
#include "tests/real_nccl/nccl_release.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/real_nccl/matrix_cell.h"

namespace dynamiccl::real_nccl {
namespace {

constexpr NcclRelease kNoRelease = {2, 1, 0};

// Makes the cache an empty folder while a test runs.
class EmptyCache : public testing::Test {
 protected:
  void SetUp() override {
    const char* before = std::getenv("XDG_CACHE_HOME");
    if (before != nullptr) cache_before_ = before;
    scratch_ = testing::TempDir() + "/real_nccl_empty_cache";
    std::filesystem::create_directories(scratch_);
    setenv("XDG_CACHE_HOME", scratch_.c_str(), 1);
  }
  void TearDown() override {
    std::filesystem::remove_all(scratch_);
    if (cache_before_)
      setenv("XDG_CACHE_HOME", cache_before_->c_str(), 1);
    else
      unsetenv("XDG_CACHE_HOME");
  }

  // Returns the path of kNoRelease's library and makes its folder.
  std::string LibraryPath() const {
    const std::string folder = Wheel() + "/nvidia/nccl/lib";
    std::filesystem::create_directories(folder);
    return folder + "/libnccl.so.2";
  }
  std::string Wheel() const { return scratch_ + "/dynamiccl/wheels/nccl-2.1.0"; }

  std::string scratch_;
  std::optional<std::string> cache_before_;
};

TEST(NcclReleases, AreNamedByThreeNumbers) {
  EXPECT_FALSE(ParseRelease("2.28"));
  EXPECT_FALSE(ParseRelease("2.28.9-1"));
  EXPECT_EQ(ParseRelease("2.28.9"), (NcclRelease{2, 28, 9}));
}

TEST_F(EmptyCache, MissingReleaseSaysWhatToDoAndIsSkipped) {
  const char* text = "no NCCL 2.1.0 in the cache; run: tools/setup/fetch_nccl.sh 2.1.0";
  EXPECT_EQ(WhyNotFetched(kNoRelease), text);
  EXPECT_EQ(WhyNotRunnable(kNoRelease), text);
  EXPECT_TRUE(FetchedReleases().empty());
  const CellResult cell = Matrix(scratch_).Check({.release = kNoRelease});
  EXPECT_EQ(cell.skipped, text);
}

TEST_F(EmptyCache, StrippedLibraryIsAFailureOfTheCell) {
  Dl_info libc{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::abort), &libc), 0);
  // Any library without .symtab serves as a stripped library. Distributions strip the C library.
  std::filesystem::copy_file(std::filesystem::canonical(libc.dli_fname), LibraryPath());
  EXPECT_EQ(WhyNotFetched(kNoRelease), "");
  EXPECT_EQ(FetchedReleases(), std::vector{kNoRelease});
  const std::string why_not = WhyNotRunnable(kNoRelease);
  EXPECT_EQ(why_not, LibraryPath() + " is stripped, so that its CUDA functions cannot be found; remove " +
                         Wheel() + " and run: tools/setup/fetch_nccl.sh 2.1.0");
  const CellResult cell = Matrix(scratch_).Check({.release = kNoRelease});
  EXPECT_EQ(cell.skipped, "");
  EXPECT_FALSE(cell.holds());
  ASSERT_EQ(cell.findings.size(), 1u);
  EXPECT_EQ(cell.findings[0].detail, why_not);
}

TEST_F(EmptyCache, FileThatIsNoLibraryIsAFailure) {
  std::ofstream(LibraryPath()) << "half a download";
  EXPECT_EQ(WhyNotRunnable(kNoRelease), LibraryPath() + " is no ELF file of 64 bits; remove " + Wheel() +
                                            " and run: tools/setup/fetch_nccl.sh 2.1.0");
}

}  // namespace
}  // namespace dynamiccl::real_nccl
