#include "tuner/report/progress.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace fsdp {
namespace {

/// What was written to a temporary file.
class Written {
 public:
  std::FILE* stream() { return file_.get(); }
  std::string text() {
    std::fflush(file_.get());
    std::rewind(file_.get());
    std::array<char, 4096> buffer{};
    return {buffer.data(), std::fread(buffer.data(), 1, buffer.size(), file_.get())};
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_{std::tmpfile()};
};

TEST(Progress, LinesArePlainAndRare) {
  Written written;
  std::int64_t now = 1'000'000'000;
  Progress progress(Progress::Style::lines, written.stream(), [&] { return Nanoseconds{now}; });
  progress.phase("measuring");
  for (int second = 1; second <= 25; ++second) {
    now += 1'000'000'000;
    progress.update({.fraction = second / 50.0, .best = "best 4 ms", .left = {7'000'000'000}});
  }
  progress.finish();
  EXPECT_EQ(written.text(),
            "measuring\n"
            "measuring: 20 %, best 4 ms, at most 7 s left\n"
            "measuring: 40 %, best 4 ms, at most 7 s left\n");
}

TEST(Progress, ATerminalSeesABarThatIsCleared) {
  Written written;
  std::int64_t now = 1'000'000'000;
  Progress progress(Progress::Style::terminal, written.stream(), [&] { return Nanoseconds{now}; });
  progress.phase("measuring");
  now += 1'000'000'000;
  progress.update({.fraction = 0.5, .best = "", .left = {0}});
  progress.finish();
  const std::string text = written.text();
  EXPECT_NE(text.find("[############............]  50 %  measuring"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\r\033[K")) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST(Progress, OtherRanksAreSilent) {
  Written written;
  Progress progress(Progress::Style::silent, written.stream());
  progress.phase("measuring");
  progress.update({.fraction = 1, .best = "x", .left = {1}});
  progress.finish();
  EXPECT_EQ(written.text(), "");
  EXPECT_EQ(progress_style(3), Progress::Style::silent);
}

}  // namespace
}  // namespace fsdp
