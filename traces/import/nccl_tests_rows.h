// SPDX-License-Identifier: Apache-2.0
// Rows of the tables that nccl-tests and rccl-tests print. Private to the importer of their text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dynamiccl {

// A word and where it ends.
struct Token {
  std::string_view text;
  size_t end = 0;  // offset after the last character
};

// The words of a line.
std::vector<Token> Tokens(std::string_view line);

// One of the two times of a row, out of place or in place, and the row's values that belong to it.
struct RowTime {
  std::optional<float> us;  // empty for "N/A"
  bool wrong = false;       // #wrong is above 0
  // Bandwidths in GB/s as printed; nothing where the table has none, or where they are of another time.
  std::optional<double> algbw, busbw;
  bool of_host = false;  // what option -C reports: the time that the host took to enqueue the call

  // True if `algbw` is large enough to have digits that show a wrong time.
  bool CanCheck() const;
  // True if `algbw` equals `bytes` divided by the time, as far as the printed digits show.
  bool FitsSize(uint64_t bytes) const;
  // True if `busbw` is `factor` times `algbw`, as far as the printed digits show.
  bool FitsFactor(double factor) const;
};

// Describes times of the host in notes. The bandwidths beside them are those of the GPU's time.
inline constexpr char kHostTimes[] = "times that the host took to enqueue the calls (-C): kept, not checked";

struct TestRow {
  uint64_t bytes = 0;
  std::vector<RowTime> times;  // out of place, then in place
};

// The columns of one table.
class RowColumns {
 public:
  RowColumns() = default;
  // `header` is the header line; the names begin after the position `hash`.
  RowColumns(std::string_view header, size_t hash);

  bool empty() const { return columns_.empty(); }
  size_t size() const { return columns_.size(); }

  // Parses the tokens of a line as a row. Where the line has fewer values than columns (old alltoall leaves
  // redop blank), a value belongs to the column under whose name it ends. Returns nothing for a line without
  // a value in some column from the first time on: it is cut, or another program wrote into it.
  std::optional<TestRow> Row(const std::vector<Token>& tokens) const;

 private:
  struct Column {
    std::string name;
    size_t end;
  };

  std::string_view ValueOf(size_t column, const std::vector<Token>& tokens) const;
  // The time in this column, with the values of the columns up to the next time.
  std::optional<RowTime> TimeAt(size_t column, const std::vector<Token>& tokens) const;
  bool IsTime(size_t column) const {
    return columns_[column].name == "time" || columns_[column].name == "cputime";
  }

  std::vector<Column> columns_;
};

}  // namespace dynamiccl
