// SPDX-License-Identifier: Apache-2.0
// Imports damaged copies of known files. Prints one line per format with the number of each outcome:
//
//     importer_mutants [--mutants 10000] [FORMAT...]
//     format            mutants  refused     same  changed  said  silent  crashes  hangs
//
// A "same" copy gives the result of the whole file, a "changed" one gives another result. Some formats state
// a bandwidth besides size and time. For these, one of four copies differs only in a digit. If the size and
// time of a result then contradict the bandwidth, the copy is "said" if the importer noted it or left the row
// out, and otherwise "silent". Each import may take kSeconds. The exit code is 1 after a crash, a hang or a
// silent value; the copy is then kept in the working directory.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_input.h"
#include "traces/format/trace_calls.h"
#include "traces/import/trace_importer.h"

namespace dynamiccl {
namespace {

constexpr unsigned kSeconds = 5;
constexpr rlim_t kMemory = rlim_t{2} << 30;
constexpr uintmax_t kLongestSeed = 64 << 10;

struct MutatedFormat {
  const TraceImporter& importer;
  std::string_view corpus;  // folder in tests/fuzz/corpus
  std::string_view sample;  // file or folder in traces/samples; empty: none
  bool states_bandwidth = false;
};

const MutatedFormat kMutatedFormats[] = {
    {KinetoImporter(), "import_kineto", "ddp_resnet_2_ranks.pt.trace.json"},
    {NcclTestsImporter(), "import_nccl_tests", "", true},
    {ConfigTableImporter(), "import_config_table", ""},
    {FlightRecorderImporter(), "import_flight_recorder", "flight_recorder_rank_1.json"},
    {PyTorchEtImporter(), "import_py_torch_et", "execution_trace.json"},
    {InspectorImporter(), "import_inspector", "nccl_inspector.log", true},
    {NcclProfilerImporter(), "import_nccl_profiler", "nccl_profiler.json"},
    {AicbImporter(), "import_aicb", "", true},
    {SimAiImporter(), "import_sim_ai", ""},
    {ChakraImporter(), "import_chakra", ""},
    {DeepSpeedCommsImporter(), "import_deep_speed_comms", "", true},
    {NcclDebugImporter(), "import_nccl_debug", "nccl_debug"}};

// Returns a table whose bandwidths follow from its sizes and times.
std::string TableWithBandwidths() {
  std::string text =
      "./build/all_reduce_perf -b 1M -e 1G -f 4\n#  Rank  0 Group  0 Pid 1 on  a device  0 [0x01] NVIDIA "
      "H100\n"
      "#  Rank  1 Group  0 Pid 2 on  b device  0 [0x01] NVIDIA H100\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw "
      "  busbw "
      "#wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) "
      " (GB/s)  "
      "(GB/s)\n";
  for (uint64_t bytes = 1 << 20; bytes <= 1 << 30; bytes *= 4) {
    text += fmt::format("{:>12} {:>12}     float     sum      -1", bytes, bytes / 4);
    for (const double gb_s : {41.7, 43.1}) {
      const double us = static_cast<double>(bytes) / (gb_s * 1e3);
      text += fmt::format(" {:>9.2f} {:>7.2f} {:>7.2f}      0", us, gb_s, gb_s);
    }
    text += '\n';
  }
  return text;
}

std::vector<std::string> SeedsOf(const MutatedFormat& format) {
  std::vector<std::string> seeds;
  const auto add = [&](const std::filesystem::path& path) {
    if (std::filesystem::file_size(path) > kLongestSeed) return;
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  };
  const auto add_all = [&](const std::filesystem::path& path) {
    if (!std::filesystem::is_directory(path)) return add(path);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      if (entry.is_regular_file()) add(entry.path());
  };
  add_all(std::filesystem::path(DYNAMICCL_FUZZ_CORPUS) / format.corpus);
  if (!format.sample.empty()) add_all(std::filesystem::path(DYNAMICCL_SAMPLES) / format.sample);
  if (&format.importer == &NcclTestsImporter()) seeds.push_back(TableWithBandwidths());
  std::sort(seeds.begin(), seeds.end());
  return seeds;
}

// ---- mutation ----

using Random = std::mt19937_64;

// Returns begin and end of a random line, including its newline.
std::pair<size_t, size_t> LineIn(const std::string& text, Random& random) {
  const size_t at = random() % text.size();
  const size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  const size_t end = text.find('\n', begin);
  return {begin, end == std::string::npos ? text.size() : end + 1};
}

void ChangeDigit(std::string& text, Random& random) {
  size_t at = text.find_first_of("0123456789", random() % text.size());
  if (at == std::string::npos) at = text.find_first_of("0123456789");
  if (at != std::string::npos) text[at] = static_cast<char>('0' + (text[at] - '0' + 1 + random() % 9) % 10);
}

void ReplaceNumber(std::string& text, Random& random) {
  constexpr const char* kExtremes[] = {"0",
                                       "-1",
                                       "4294967296",
                                       "9223372036854775807",
                                       "18446744073709551616",
                                       "1e308",
                                       "nan",
                                       "0.000000001",
                                       "",
                                       "\"\"",
                                       "null",
                                       "[]",
                                       "{}"};
  const size_t begin = text.find_first_of("0123456789", random() % text.size());
  if (begin == std::string::npos) return;
  const size_t end = std::min(text.find_first_not_of("0123456789.", begin), text.size());
  text.replace(begin, end - begin, kExtremes[random() % std::size(kExtremes)]);
}

void Mutate(std::string& text, const std::vector<std::string>& seeds, Random& random) {
  if (text.empty()) return;
  const size_t at = random() % text.size();
  const auto [begin, end] = LineIn(text, random);
  const std::string line = text.substr(begin, end - begin);
  switch (random() % 10) {
    case 0:
      text[at] = static_cast<char>(random());
      break;
    case 1:
      text.insert(at, 1, static_cast<char>(random()));
      break;
    case 2:
      text.erase(at, 1 + random() % 16);
      break;
    case 3:
      text.resize(at);
      break;
    case 4:
      text.erase(begin, line.size());
      break;
    case 5:
      text.insert(begin, line);
      break;
    case 6:
      text.insert(LineIn(text, random).first, line);
      break;
    case 7:
      ChangeDigit(text, random);
      break;
    case 8:
      ReplaceNumber(text, random);
      break;
    default: {
      const std::string& other = seeds[random() % seeds.size()];
      text.replace(at, std::string::npos, other.substr(other.empty() ? 0 : random() % other.size()));
    }
  }
}

// ---- import ----

// The part of a result that is compared: each size with its time in microseconds, and the notes of the
// importer.
struct Taken {
  std::vector<std::pair<uint64_t, double>> rows;
  std::vector<std::string> notes;

  friend bool operator==(const Taken&, const Taken&) = default;
};

std::optional<Taken> Take(const TraceImporter& importer, const std::string& text) {
  const fuzz::InputFile file(std::as_bytes(std::span(text)));
  (void)importer.Recognises(text);
  const auto imported = importer.Import(fuzz::InputFile::path(), {});
  if (!imported) return std::nullopt;
  Taken taken{{}, imported->notes};
  if (imported->measurements)
    for (const Measurement& row : imported->measurements->rows)
      for (const float us : row.microseconds) taken.rows.emplace_back(row.bytes, us);
  if (imported->trace)
    for (const TraceSection& section : imported->trace->sections)
      for (const TraceCall& call : CallsOf(section).calls)
        taken.rows.emplace_back(call.issued.call.bytes, static_cast<double>(call.issued.duration_ns) * 1e-3);
  return taken;
}

// Returns true if size and time of some row contradict the bandwidth in that row. Only damage to the size or
// the time is judged: the mutation did not change the bandwidth. Rows below 1 GB/s are not judged, because
// their bandwidth has too few digits. Rows may come in another order.
bool Contradicts(Taken whole, Taken changed) {
  std::ranges::sort(whole.rows);
  std::ranges::sort(changed.rows);
  std::vector<std::pair<uint64_t, double>> gone, come;
  std::ranges::set_difference(whole.rows, changed.rows, std::back_inserter(gone));
  std::ranges::set_difference(changed.rows, whole.rows, std::back_inserter(come));
  for (size_t i = 0; i < std::min(gone.size(), come.size()); ++i) {
    const auto& [bytes, us] = gone[i];
    const auto& [new_bytes, new_us] = come[i];
    const double gb_s = static_cast<double>(bytes) / us * 1e-3;
    const double new_gb_s = static_cast<double>(new_bytes) / new_us * 1e-3;
    if (us > 0 && new_us > 0 && gb_s > 1 && std::fabs(std::log(new_gb_s / gb_s)) > 0.05) return true;
  }
  return false;
}

enum Fate { kRefused, kSame, kChanged, kSaid, kSilent, kCrash, kHang, kFates };
constexpr const char* kFateNames[] = {"refused", "same", "changed", "said", "silent", "crashes", "hangs"};

// Lies in memory that is shared with the child process that imports.
struct Progress {
  uint64_t mutant = 0;
  uint64_t counts[kFates] = {};
};

class Mutants {
 public:
  explicit Mutants(const MutatedFormat& format) : format_(format), seeds_(SeedsOf(format)) {
    for (const std::string& seed : seeds_) whole_.push_back(Take(format.importer, seed));
    void* const shared =
        ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fuzz::Require(shared != MAP_FAILED, "memory can be shared");
    progress_ = new (shared) Progress;
  }

  // Returns true if no crash, hang or silent value was found.
  bool Run(uint64_t mutants) {
    while (progress_->mutant < mutants) {
      const pid_t child = ::fork();
      if (child == 0) ImportRest(mutants);
      int status = 0;
      ::waitpid(child, &status, 0);
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
      const bool hung = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
      Count(hung ? kHang : kCrash, MutantOf(progress_->mutant));
      ++progress_->mutant;
    }
    fmt::print("{:<16} {:>8}", format_.importer.name(), mutants);
    for (const uint64_t count : progress_->counts) fmt::print(" {:>8}", count);
    fmt::print("\n");
    return progress_->counts[kSilent] + progress_->counts[kCrash] + progress_->counts[kHang] == 0;
  }

 private:
  struct Mutant {
    std::string text;
    size_t seed = 0;
    bool one_digit = false;
  };

  Mutant MutantOf(uint64_t number) const {
    Random random(number);
    Mutant mutant;
    mutant.seed = random() % seeds_.size();
    mutant.text = seeds_[mutant.seed];
    mutant.one_digit = format_.states_bandwidth && number % 4 == 0;
    if (mutant.one_digit) ChangeDigit(mutant.text, random);
    for (uint64_t i = 0; !mutant.one_digit && i <= number % 3; ++i) Mutate(mutant.text, seeds_, random);
    return mutant;
  }

  [[noreturn]] void ImportRest(uint64_t mutants) {
    const rlimit limit{kMemory, kMemory};
    ::setrlimit(RLIMIT_AS, &limit);
    for (; progress_->mutant < mutants; ++progress_->mutant) {
      const Mutant mutant = MutantOf(progress_->mutant);
      ::alarm(kSeconds);
      const std::optional<Taken> taken = Take(format_.importer, mutant.text);
      ::alarm(0);
      Count(FateOf(mutant, taken), mutant);
    }
    ::_exit(0);
  }

  Fate FateOf(const Mutant& mutant, const std::optional<Taken>& taken) const {
    if (!taken) return kRefused;
    const std::optional<Taken>& whole = whole_[mutant.seed];
    if (whole && *taken == *whole) return kSame;
    if (!mutant.one_digit || !whole) return kChanged;
    const bool said = taken->notes != whole->notes;
    if (said) return kSaid;
    return taken->rows.size() == whole->rows.size() && Contradicts(*whole, *taken) ? kSilent : kChanged;
  }

  void Count(Fate fate, const Mutant& mutant) {
    ++progress_->counts[fate];
    if (fate < kSilent) return;
    const std::string path =
        fmt::format("{}.{}.{}", format_.importer.name(), kFateNames[fate], progress_->mutant);
    std::ofstream(path, std::ios::binary) << mutant.text;
    fmt::print(stderr, "{}: kept\n", path);
  }

  const MutatedFormat& format_;
  std::vector<std::string> seeds_;
  std::vector<std::optional<Taken>> whole_;
  Progress* progress_ = nullptr;
};

int Main(std::vector<std::string> words) {
  uint64_t mutants = 10000;
  if (words.size() >= 2 && words[0] == "--mutants") {
    std::from_chars(words[1].data(), words[1].data() + words[1].size(), mutants);
    words.erase(words.begin(), words.begin() + 2);
  }
  fmt::print("{:<16} {:>8}", "format", "mutants");
  for (const char* const name : kFateNames) fmt::print(" {:>8}", name);
  fmt::print("\n");
  bool clean = true;
  for (const MutatedFormat& format : kMutatedFormats) {
    const bool wanted = words.empty() || std::ranges::count(words, format.importer.name()) > 0;
    std::fflush(stdout);
    if (wanted) clean &= Mutants(format).Run(mutants);
  }
  return clean ? 0 : 1;
}

}  // namespace
}  // namespace dynamiccl

int main(int argc, char** argv) {
  return dynamiccl::Main({argv + 1, argv + argc});
}
