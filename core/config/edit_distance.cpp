#include "core/config/edit_distance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace fsdp {
namespace {

/// Words longer than this are not typing mistakes; it also bounds the quadratic cost.
constexpr std::size_t longest_word = 64;

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table suffice: a swap looks two rows back.
  std::array<std::vector<std::size_t>, 3> rows;
  rows.fill(std::vector<std::size_t>(b.size() + 1));
  std::iota(rows[1].begin(), rows[1].end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t>& row = rows[2];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = rows[1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U);
      row[j] = std::min({replaced, rows[1][j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], rows[0][j - 2] + 1);
      }
    }
    std::rotate(rows.begin(), rows.begin() + 1, rows.end());
  }
  return rows[1][b.size()];
}

std::string suggest(std::string_view text, const std::vector<std::string>& words) {
  const std::string* nearest = nullptr;
  std::size_t least = 0;
  for (const std::string& word : words) {
    const std::size_t distance = edit_distance(text.substr(0, longest_word), word);
    if (nearest == nullptr || distance < least) {
      nearest = &word;
      least = distance;
    }
  }
  if (nearest == nullptr) {
    return {};
  }
  if (least <= 1 + nearest->size() / 4) {
    return fmt::format("did you mean '{}'?", *nearest);
  }
  return fmt::format("known here: {}", fmt::join(words, ", "));
}

}  // namespace fsdp
