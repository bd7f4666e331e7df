// SPDX-License-Identifier: Apache-2.0
// Settings that name no file, or a file that cannot be written: pipes, devices, folders, a missing folder, a
// full disk, a read-only mount. In a job, results must be right, each rank must report the problem once, and
// nothing may hang. At the command line, the program must refuse at once and say what to do. What was named
// must still exist afterwards.
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "tests/integration/job_fixture.h"

namespace dynamiccl::testing {
namespace {

namespace fs = std::filesystem;

// A hang takes longer, a busy machine does not.
constexpr double kMaxJobSeconds = 30;
constexpr unsigned kMaxCommandSeconds = 10;

struct Command {
  int status = 0;
  std::string output;
};

Command RunCommand(const std::string& arguments, const std::string& folder) {
  const std::string log = folder + "/command.log";
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(kMaxCommandSeconds);
    const std::string line =
        std::string("exec ") + DYNAMICCL_TEST_PROGRAM " " + arguments + " > " + log + " 2>&1 < /dev/null";
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  Command command;
  ::waitpid(pid, &command.status, 0);
  std::ifstream file(log, std::ios::binary);
  command.output.assign(std::istreambuf_iterator<char>(file), {});
  return command;
}

class OddInputs : public JobTest {
 protected:
  OddInputs() {
    EXPECT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
    fs::create_directory(Path("folder"));
    fs::create_symlink("/dev/zero", Path("link_to_device"));
    odd_ = {"pipe", "folder", "missing/folder/file"};
    // A device can be made only as root.
    if (::mknod(Path("device").c_str(), S_IFCHR | 0600, makedev(1, 5)) == 0) odd_.push_back("device");
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  // Returns true if the path is now a regular file, so that it was replaced.
  static bool IsFile(const std::string& path) { return fs::is_regular_file(fs::symlink_status(path)); }

  void ExpectJobIsRight(const std::string& variable, const std::string& path, const Environment& more) {
    JobOptions options{.n_ranks = 2, .rounds = "2"};
    options.environment = With({{"DYNAMICCL_MODE", "adaptive"},
                                {"DYNAMICCL_POLICY", policy_},
                                {"DYNAMICCL_ATTEST_TIMEOUT_MS", "5000"}},
                               more);
    options.environment[variable] = path;
    options.seconds = static_cast<unsigned>(kMaxJobSeconds);
    const JobResult job = Run(options);
    const std::string what = variable + "=" + path;
    EXPECT_TRUE(job.ok()) << what << ": " << job.exit_codes[0] << " " << job.exit_codes[1] << " after "
                          << job.seconds << " s\n"
                          << job.AllOutput();
    for (const std::string& output : job.output) {
      // One line may say what is wrong, and one whose choices are used instead.
      EXPECT_LE(LinesWith(output, path).size(), 2u) << what << "\n" << output;
      said_ += LinesWith(output, path).size();
    }
    ++jobs_;
  }

  const std::string policy_ = PolicyFile("p.dcpolicy", Algorithm::kRing, Protocol::kSimple);
  std::vector<std::string> odd_;
  size_t said_ = 0;
  int jobs_ = 0;
};

constexpr const char* kVariables[] = {"DYNAMICCL_TRACE",    "DYNAMICCL_METRICS",      "DYNAMICCL_SITE_STORE",
                                      "DYNAMICCL_RULES",    "DYNAMICCL_DECISION_LOG", "DYNAMICCL_POLICY",
                                      "DYNAMICCL_DECISIONS"};

TEST_F(OddInputs, LeaveTheJobAsItIs) {
  for (const std::string& name : odd_) {
    for (const char* variable : kVariables) {
      ExpectJobIsRight(variable, Path(name), {});
      EXPECT_FALSE(IsFile(Path(name))) << variable << " has replaced " << name;
    }
  }
  std::printf("%d jobs, said %zu times\n", jobs_, said_);
  EXPECT_GE(said_, static_cast<size_t>(jobs_));
}

TEST_F(OddInputs, OfANcclConfigurationFileLeaveTheJobAsItIs) {
  // NCCL's own reader would hang on the pipe. hostccl does not read such a file.
  ExpectJobIsRight("NCCL_CONF_FILE", Path("pipe"), {});
}

TEST_F(OddInputs, OneNameForAllRanksIsAFileOfEach) {
  for (const char* variable : {"DYNAMICCL_TRACE", "DYNAMICCL_DECISION_LOG"}) {
    fs::create_directory(Path(variable));
    std::ofstream(Path(variable) + "/all.ctrace") << "of an earlier run";
    const std::string path = Path(variable) + "/all.ctrace";
    ExpectJobIsRight(variable, path, {});
    const auto files = std::distance(fs::directory_iterator(Path(variable)), fs::directory_iterator());
    EXPECT_EQ(files, 2) << variable;
    if (variable != std::string("DYNAMICCL_TRACE")) continue;
    const Command shown = RunCommand("trace show " + Path(variable) + "/*.ctrace", folder_);
    EXPECT_EQ(shown.status, 0) << shown.output;
    EXPECT_THAT(shown.output, ::testing::HasSubstr("2 ranks")) << shown.output;
  }
}

TEST_F(OddInputs, AreRefusedAtTheCommandLine) {
  const std::vector<std::string> readers = {
      "inspect ",    "inspect --bytes 1M ", "report ",
      "trace show ", "trace recover ",      "trace import -o " + Path("i.ctrace") + " ",
      "replay ",     "config check ",       "simulate --system dgx-a100 "};
  int refused = 0;
  for (const std::string& name : odd_) {
    for (const std::string& reader : readers) {
      const Command command = RunCommand(reader + Path(name), folder_);
      EXPECT_TRUE(WIFEXITED(command.status)) << reader << name << " did not end by itself\n"
                                             << command.output;
      EXPECT_NE(command.status, 0) << reader << name << "\n" << command.output;
      // Checks print FAIL, all other commands print an error.
      EXPECT_THAT(command.output, ::testing::ContainsRegex("error|FAIL")) << reader << name;
      refused += WIFEXITED(command.status) && command.status != 0 ? 1 : 0;
    }
  }
  std::printf("%d refused\n", refused);
}

TEST_F(OddInputs, AreNotReplacedByWhatACommandWrites) {
  const std::string trace = Path("t.ctrace");
  ASSERT_EQ(RunCommand("record -o " + trace +
                           " -n 2 -- " DYNAMICCL_TEST_PROGRAM
                           " bench all_reduce -b 1K -e 1K -n 1 --rounds 1 --singles 1",
                       folder_)
                .status,
            0);
  for (const std::string& name : odd_) {
    const Command command = RunCommand("report " + trace + " -o " + Path(name), folder_);
    EXPECT_TRUE(WIFEXITED(command.status)) << name << " did not end by itself\n" << command.output;
    EXPECT_FALSE(IsFile(Path(name))) << name << " was replaced\n" << command.output;
  }
}

// Mounts in its own mount namespace, so that the mount does not outlive the test.
class Mounted : public OddInputs {
 protected:
  // Returns false if this user may not mount.
  bool Mount(const char* options, unsigned long flags) {
    fs::create_directory(Path("mount"));
    return ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("tmpfs", Path("mount").c_str(), "tmpfs", flags, options) == 0;
  }
  ~Mounted() override { ::umount2(Path("mount").c_str(), MNT_DETACH); }
};

TEST_F(Mounted, FullDiskLeavesTheJobAsItIs) {
  if (!Mount("size=64k", 0)) GTEST_SKIP() << "may not mount";
  for (const char* variable :
       {"DYNAMICCL_TRACE", "DYNAMICCL_METRICS", "DYNAMICCL_SITE_STORE", "DYNAMICCL_DECISION_LOG"}) {
    std::ofstream(Path("mount/filler"), std::ios::binary) << std::string(1 << 16, 'x');
    ExpectJobIsRight(variable, Path("mount/file"), {});
    fs::remove_all(Path("mount/file"));
  }
}

TEST_F(Mounted, ReadOnlyMountLeavesTheJobAsItIs) {
  if (!Mount("size=64k", MS_RDONLY)) GTEST_SKIP() << "may not mount";
  for (const char* variable :
       {"DYNAMICCL_TRACE", "DYNAMICCL_METRICS", "DYNAMICCL_SITE_STORE", "DYNAMICCL_DECISION_LOG"})
    ExpectJobIsRight(variable, Path("mount/file"), {});
}

}  // namespace
}  // namespace dynamiccl::testing
