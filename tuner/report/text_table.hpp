// Columns of text, padded; numbers to the right, words to the left.
#pragma once

#include <string>
#include <vector>

namespace fsdp {

class TextTable {
 public:
  enum class Align { left, right };
  struct Column {
    std::string heading;
    Align align = Align::left;
  };

  explicit TextTable(std::vector<Column> columns);
  /// As many cells as columns. UTF-8 is not expected: widths are bytes.
  void add(std::vector<std::string> cells);
  /// Headings and rows, two blanks between columns, no blanks at the end of a line.
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace fsdp
