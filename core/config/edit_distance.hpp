// Finds the word somebody meant to type, for suggestions in error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fsdp {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// "did you mean 'prefetch'?" when a word is close to `text`, else "known here: ..." with all.
/// Empty when there are no words.
std::string suggest(std::string_view text, const std::vector<std::string>& words);

}  // namespace fsdp
