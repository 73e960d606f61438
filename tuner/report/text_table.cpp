#include "tuner/report/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/units/error.hpp"

namespace fsdp {

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

void TextTable::add(std::vector<std::string> cells) {
  expects(cells.size() == columns_.size(), "a row has a cell a column");
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::vector<std::string> headings;
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    headings.push_back(columns_[i].heading);
    widths.push_back(columns_[i].heading.size());
    for (const auto& row : rows_) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string result;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      result += columns_[i].align == Align::left ? fmt::format("{:<{}}", cells[i], widths[i])
                                                 : fmt::format("{:>{}}", cells[i], widths[i]);
      result += "  ";
    }
    return result.substr(0, result.find_last_not_of(' ') + 1) + "\n";
  };
  std::string result = line(headings);
  for (const auto& row : rows_) {
    result += line(row);
  }
  return result;
}

}  // namespace fsdp
