// SPDX-License-Identifier: Apache-2.0
// A stream buffer over zlib's gzread. gzread returns the bytes of a file without gzip's magic unchanged.
#include "traces/import/gzip_stream.h"

#include <zlib.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <streambuf>
#include <vector>

#include "src/base/file_kind.h"

namespace dynamiccl {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// A file format that is not supported, recognised by its first bytes.
struct ForeignForm {
  std::string_view magic;
  std::string_view name;
  std::string_view hint;
};
constexpr ForeignForm kForeignForms[] = {
    {"\x28\xB5\x2F\xFD", "compressed with zstd", "unpack it first: zstd -d FILE"},
    {{"\xFD"
      "7zXZ\0",
      6},
     "compressed with xz",
     "unpack it first: xz -dk FILE"},
    {"BZh", "compressed with bzip2", "unpack it first: bzip2 -dk FILE"},
    {"PK\x03\x04", "a zip archive", "unpack it first: unzip FILE"},
    {{"\x04\x22\x4D\x18", 4}, "compressed with lz4", "unpack it first: lz4 -d FILE"},
    {"SQLite f", "an SQLite database, as Nsight Systems exports one",
     "give a profile of torch.profiler, or a trace: dynamiccl record -o job.ctrace -- LAUNCH"},
    {"\xFF\xFE", "UTF-16 text", "convert it first: iconv -f UTF-16 -t UTF-8 FILE > NEW"},
    {"\xFE\xFF", "UTF-16 text", "convert it first: iconv -f UTF-16 -t UTF-8 FILE > NEW"}};

// Returns an error if the file has a format that is not supported.
Status CheckForm(const std::string& path) {
  char first[8] = {};
  std::ifstream(path, std::ios::binary).read(first, sizeof(first));
  for (const ForeignForm& form : kForeignForms) {
    if (std::string_view(first, sizeof(first)).starts_with(form.magic))
      return WithHint(
          MakeError(ErrorKind::kInvalidArgument, "{}: byte 0: {}, which is not read", path, form.name),
          std::string(form.hint));
  }
  return {};
}

// The name of a tar archive's first file; empty if `begin` does not hold it. Headers of 512 bytes that only
// describe the next file ('x' and 'g' of POSIX, 'L' and 'K' of GNU) are passed, with their data.
std::string FirstFileOfTar(std::string_view begin) {
  constexpr size_t kBlock = 512, kNameBytes = 100, kSizeAt = 124, kSizeDigits = 11, kTypeAt = 156;
  for (size_t at = 0; begin.size() >= kBlock && at <= begin.size() - kBlock;) {
    const std::string_view header = begin.substr(at, kBlock);
    const std::string_view name = header.substr(0, kNameBytes);
    if (std::string_view("xgLK").find(header[kTypeAt]) == std::string_view::npos)
      return std::string(name.substr(0, name.find('\0')));
    const size_t bytes = std::strtoull(std::string(header.substr(kSizeAt, kSizeDigits)).c_str(), nullptr, 8);
    if (bytes > begin.size()) break;
    at += kBlock + (bytes + kBlock - 1) / kBlock * kBlock;
  }
  return "";
}

// Returns an error if `begin` is the beginning of a tar archive.
Status CheckNoArchive(const std::string& path, std::string_view begin) {
  constexpr size_t kMagicAt = 257;
  if (begin.size() < kMagicAt || !begin.substr(kMagicAt).starts_with("ustar")) return {};
  const std::string first = FirstFileOfTar(begin);
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: a tar archive, which is not read{}", path,
                            first.empty() ? "" : fmt::format("; it begins with '{}'", first)),
                  "unpack it first: tar -xf FILE; a folder of the files can be named too");
}

}  // namespace

// Decompresses 256 KiB at a time and remembers the first error.
class GzipStream::Buffer : public std::streambuf {
 public:
  explicit Buffer(gzFile file) : file_(file), bytes_(256 * 1024) { gzbuffer(file, 256 * 1024); }
  ~Buffer() override { gzclose_r(file_); }

  bool failed() const { return failed_; }
  const std::string& message() const { return message_; }
  uint64_t total() const { return total_; }
  // Returns the bytes that are decompressed and not yet read. Decompresses some first if there are none.
  std::string_view Ahead() {
    sgetc();
    return {gptr(), static_cast<size_t>(egptr() - gptr())};
  }
  // Marks the next `bytes` bytes as read.
  void Pass(size_t bytes) { gbump(static_cast<int>(bytes)); }

 protected:
  int_type underflow() override {
    const int count = failed_ ? 0 : gzread(file_, bytes_.data(), static_cast<unsigned>(bytes_.size()));
    int code = Z_OK;
    const char* text = gzerror(file_, &code);
    // For a file that ends inside the compressed data, gzread first returns what is there and then reports
    // Z_BUF_ERROR.
    if (count < 0 || (code != Z_OK && code != Z_STREAM_END)) {
      failed_ = true;
      message_ = text;
    }
    if (count <= 0) return traits_type::eof();
    const bool marked =
        total_ == 0 &&
        std::string_view(bytes_.data(), static_cast<size_t>(count)).starts_with(kByteOrderMark);
    total_ += static_cast<uint64_t>(count);
    setg(bytes_.data(), bytes_.data() + (marked ? kByteOrderMark.size() : 0), bytes_.data() + count);
    return gptr() == egptr() ? traits_type::eof() : traits_type::to_int_type(*gptr());
  }

 private:
  gzFile file_;
  std::vector<char> bytes_;
  bool failed_ = false;
  std::string message_;
  uint64_t total_ = 0;
};

GzipStream::GzipStream(std::string path, std::unique_ptr<Buffer> buffer)
    : path_(std::move(path)),
      buffer_(std::move(buffer)),
      stream_(std::make_unique<std::istream>(buffer_.get())) {}
GzipStream::GzipStream(GzipStream&&) noexcept = default;
GzipStream::~GzipStream() = default;

Result<GzipStream> GzipStream::Open(const std::string& path) {
  DYNAMICCL_CHECK_OK(CheckIsFile(path));
  DYNAMICCL_CHECK_OK(CheckForm(path));
  errno = 0;
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return MakeError(ErrorKind::kNotFound, "cannot open '{}': {}", path, ErrnoText(errno));
  auto buffer = std::make_unique<Buffer>(file);
  DYNAMICCL_CHECK_OK(CheckNoArchive(path, buffer->Ahead()));
  return GzipStream(path, std::move(buffer));
}

std::istream& GzipStream::stream() {
  return *stream_;
}

std::string_view GzipStream::Ahead() {
  return buffer_->Ahead();
}

std::string GzipStream::Head(size_t limit) {
  std::string head(limit, '\0');
  stream_->read(head.data(), static_cast<std::streamsize>(limit));
  head.resize(static_cast<size_t>(stream_->gcount()));
  return head;
}

std::optional<std::string_view> GzipStream::NextLine() {
  long_line_.clear();
  for (;;) {
    const std::string_view ahead = buffer_->Ahead();
    const size_t end = ahead.find('\n');
    line_ended_ = end != std::string_view::npos;
    const std::string_view part = ahead.substr(0, end);
    buffer_->Pass(part.size() + line_ended_);
    if (line_ended_ && long_line_.empty()) return part;
    long_line_ += part;
    if (line_ended_) return long_line_;
    ended_in_line_ |= ahead.empty() && !long_line_.empty();
    if (ahead.empty()) return long_line_.empty() ? std::nullopt : std::optional<std::string_view>(long_line_);
  }
}

Status GzipStream::EachLine(const std::function<Status(std::string_view line)>& take) {
  while (const auto line = NextLine()) DYNAMICCL_CHECK_OK(take(*line));
  return status();
}

Status GzipStream::EachLineOfLog(const std::function<Status(std::string_view line)>& take,
                                 std::optional<Error>& cut) {
  return EachLine([&](std::string_view line) -> Status {
    Status taken = take(line);
    if (taken || line_ended_) return taken;
    cut = taken.error();
    return {};
  });
}

Status GzipStream::status() const {
  if (!buffer_->failed()) return {};
  return MakeError(ErrorKind::kCorrupt, "{}: byte {} of the decompressed data: {}", path_, buffer_->total(),
                   buffer_->message());
}

}  // namespace dynamiccl
