// What a waiting person sees on stderr: a bar, the phase, the best so far and the time left on a
// terminal; plain lines elsewhere; nothing on other ranks than the first.
#pragma once

#include <cstdio>
#include <string>

#include "bench/measure/sampler.hpp"
#include "core/units/quantity.hpp"

namespace fsdp {

class Progress {
 public:
  enum class Style { silent, lines, terminal };
  struct State {
    double fraction = 0;  ///< of the phase, 0 to 1
    std::string best;     ///< "best so far 412 ms: a unit every 3 blocks"; may be empty
    Nanoseconds left{0};  ///< until the phase ends at the latest; 0: not known
  };

  Progress(Style style, std::FILE* stream, Clock clock = steady_now);
  /// Begins a phase; the one before it has ended.
  void phase(const std::string& text);
  /// Lines are written at most every few seconds, the bar a few times a second.
  void update(const State& state);
  /// Ends the last phase; the cursor stands at the start of a line.
  void finish();

 private:
  bool due();
  void clear_bar();

  Style style_;
  std::FILE* stream_;
  Clock clock_;
  std::string phase_;
  Nanoseconds last_{0};
  bool bar_shown_ = false;
};

/// Silent on ranks above 0, a terminal's bar where stderr is one.
Progress::Style progress_style(int rank);

}  // namespace fsdp
