// SPDX-License-Identifier: Apache-2.0
// A stream buffer over zlib's gzread, which passes a file without gzip's magic on as it is.
#include "traces/import/gzip_stream.h"

#include <zlib.h>

#include <cerrno>
#include <streambuf>
#include <vector>

#include "src/base/file_kind.h"

namespace dynamiccl {

// Decompresses 256 KiB at a time and remembers the first error.
class GzipStream::Buffer : public std::streambuf {
 public:
  explicit Buffer(gzFile file) : file_(file), bytes_(256 * 1024) { gzbuffer(file, 256 * 1024); }
  ~Buffer() override { gzclose_r(file_); }

  bool failed() const { return failed_; }
  const std::string& message() const { return message_; }
  uint64_t total() const { return total_; }

 protected:
  int_type underflow() override {
    const int count = failed_ ? 0 : gzread(file_, bytes_.data(), static_cast<unsigned>(bytes_.size()));
    int code = Z_OK;
    const char* text = gzerror(file_, &code);
    // A file that ends inside the compressed data gives what there is, then Z_BUF_ERROR.
    if (count < 0 || (code != Z_OK && code != Z_STREAM_END)) {
      failed_ = true;
      message_ = text;
    }
    if (count <= 0) return traits_type::eof();
    total_ += static_cast<uint64_t>(count);
    setg(bytes_.data(), bytes_.data(), bytes_.data() + count);
    return traits_type::to_int_type(bytes_[0]);
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
  errno = 0;
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return MakeError(ErrorKind::kNotFound, "cannot open '{}': {}", path, ErrnoText(errno));
  return GzipStream(path, std::make_unique<Buffer>(file));
}

std::istream& GzipStream::stream() {
  return *stream_;
}

std::string GzipStream::Head(size_t limit) {
  std::string head(limit, '\0');
  stream_->read(head.data(), static_cast<std::streamsize>(limit));
  head.resize(static_cast<size_t>(stream_->gcount()));
  return head;
}

Status GzipStream::EachLine(const std::function<Status(std::string& line)>& take) {
  for (std::string line; std::getline(*stream_, line);) DYNAMICCL_CHECK_OK(take(line));
  return status();
}

Status GzipStream::status() const {
  if (!buffer_->failed()) return {};
  return MakeError(ErrorKind::kCorrupt, "{}: byte {} of the decompressed data: {}", path_, buffer_->total(),
                   buffer_->message());
}

}  // namespace dynamiccl
