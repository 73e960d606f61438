#include "tuner/report/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace fsdp {

namespace {

constexpr Nanoseconds bar_interval{100'000'000};
constexpr Nanoseconds line_interval{10'000'000'000};
constexpr int bar_width = 24;

std::string details(const Progress::State& state) {
  std::string text;
  if (!state.best.empty()) {
    text += ", " + state.best;
  }
  if (state.left.value > 0) {
    text += fmt::format(", at most {} s left", (state.left.value + 999'999'999) / 1'000'000'000);
  }
  return text;
}

}  // namespace

Progress::Style progress_style(int rank) {
  if (rank != 0) {
    return Progress::Style::silent;
  }
  return isatty(STDERR_FILENO) != 0 ? Progress::Style::terminal : Progress::Style::lines;
}

Progress::Progress(Style style, std::FILE* stream, Clock clock)
    : style_(style), stream_(stream), clock_(std::move(clock)) {}

void Progress::phase(const std::string& text) {
  phase_ = text;
  if (style_ == Style::lines) {
    fmt::print(stream_, "{}\n", phase_);
    last_ = clock_();
  } else if (style_ == Style::terminal) {
    last_ = {0};
    update({});
  }
}

bool Progress::due() {
  const Nanoseconds now = clock_();
  if (last_.value != 0 && now - last_ < (style_ == Style::lines ? line_interval : bar_interval)) {
    return false;
  }
  last_ = now;
  return true;
}

void Progress::update(const State& state) {
  if (style_ == Style::silent || !due()) {
    return;
  }
  const double fraction = std::clamp(state.fraction, 0.0, 1.0);
  const int percent = static_cast<int>(100 * fraction);
  if (style_ == Style::lines) {
    fmt::print(stream_, "{}: {} %{}\n", phase_, percent, details(state));
    return;
  }
  const int full = static_cast<int>(bar_width * fraction);
  fmt::print(stream_, "\r\033[K[{:#<{}}{:.<{}}] {:3} %  {}{}", "", full, "", bar_width - full,
             percent, phase_, details(state));
  std::fflush(stream_);
  bar_shown_ = true;
}

void Progress::clear_bar() {
  if (bar_shown_) {
    fmt::print(stream_, "\r\033[K");
    std::fflush(stream_);
    bar_shown_ = false;
  }
}

void Progress::finish() { clear_bar(); }

}  // namespace fsdp
