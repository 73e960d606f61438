#include "bench/backend/mpi/control_plane.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "bench/backend/mpi/wait.hpp"
#include "core/units/error.hpp"

namespace fsdp::mpi {
namespace {

/// Rank 0 finds out first who is missing and tells the others; they give up later than it does.
constexpr Nanoseconds patience{2'000'000'000};
/// For the last words to ranks that may be gone as well.
constexpr Nanoseconds farewell{1'000'000'000};

/// FNV-1a. Only has to tell stages of one program apart.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  return hash;
}

std::string to_bytes(std::span<const double> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

/// Texts with their lengths in front, one after another.
std::string join_framed(const std::vector<std::string>& texts) {
  std::string frames;
  for (const std::string& text : texts) {
    const std::uint64_t length = text.size();
    frames.append(reinterpret_cast<const char*>(&length), sizeof(length));
    frames.append(text);
  }
  return frames;
}

std::vector<std::string> split_framed(const std::string& frames) {
  std::vector<std::string> texts;
  std::size_t at = 0;
  while (at < frames.size()) {
    std::uint64_t length = 0;
    std::memcpy(&length, frames.data() + at, sizeof(length));
    texts.push_back(frames.substr(at + sizeof(length), length));
    at += sizeof(length) + length;
  }
  return texts;
}

std::vector<int> others_of(int rank, int size) {
  std::vector<int> others;
  for (int r = 1; rank == 0 && r < size; ++r) {
    others.push_back(r);
  }
  if (rank != 0) {
    others.push_back(0);
  }
  return others;
}

}  // namespace

MpiControlPlane::MpiControlPlane(MPI_Comm world, Nanoseconds timeout)
    : communicator_(world),
      timeout_(timeout),
      others_(others_of(communicator_.rank(), communicator_.size())),
      incoming_(communicator_.handle()),
      outgoing_(communicator_.handle()) {}

void MpiControlPlane::barrier(const std::string& stage) {
  exchange("", stage, [](const auto&) { return std::string(); });
}

std::string MpiControlPlane::broadcast(const std::string& text, const std::string& stage) {
  return exchange(rank() == 0 ? text : "", stage,
                  [](const auto& reports) { return reports.front(); });
}

std::vector<std::string> MpiControlPlane::all_gather(const std::string& text,
                                                     const std::string& stage) {
  return split_framed(exchange(text, stage, &join_framed));
}

void MpiControlPlane::max(std::span<double> values, const std::string& stage) {
  reduce(values, stage, [](double a, double b) { return std::max(a, b); });
}

void MpiControlPlane::min(std::span<double> values, const std::string& stage) {
  reduce(values, stage, [](double a, double b) { return std::min(a, b); });
}

void MpiControlPlane::reduce(std::span<double> values, const std::string& stage,
                             const std::function<double(double, double)>& pick) {
  const std::string result = exchange(to_bytes(values), stage, [&](const auto& reports) {
    std::vector<double> picked(values.begin(), values.end());
    for (const std::string& report : reports) {
      if (report.size() != values.size_bytes()) {
        throw EnvironmentError(fmt::format(
            "{}: ranks reduce different numbers of values; is it one program on all?", stage));
      }
      for (std::size_t i = 0; i < picked.size(); ++i) {
        double other = 0;
        std::memcpy(&other, report.data() + i * sizeof(double), sizeof(double));
        picked[i] = pick(picked[i], other);
      }
    }
    return to_bytes(picked);
  });
  if (!result.empty()) {
    std::memcpy(values.data(), result.data(), result.size());
  }
}

std::string MpiControlPlane::exchange(const std::string& report, const std::string& stage,
                                      const Answer& answer) {
  if (size() == 1) {
    return answer({report});
  }
  if (broken_) {
    throw EnvironmentError(
        fmt::format("{}: ranks have lost each other before; end the job", stage));
  }
  broken_ = true;  // until it has gone well
  std::string result =
      rank() == 0 ? collect_and_answer(report, stage, answer) : report_and_listen(report, stage);
  broken_ = false;
  return result;
}

std::string MpiControlPlane::collect_and_answer(const std::string& report, const std::string& stage,
                                                const Answer& answer) {
  std::string result;
  try {
    result = answer(collect(report, stage));
  } catch (const EnvironmentError& error) {
    tell_those_here(Verdict::ranks_disagree, error.what());
    throw;
  }
  outgoing_.send({.header = {.stage = hash_of(stage)}, .text = result}, others_);
  if (outgoing_.wait(timeout_) == WaitResult::timed_out) {
    throw TimeoutError(
        fmt::format("{}: ranks did not take rank 0's answer within {}", stage, to_text(timeout_)));
  }
  return result;
}

/// Reports of all ranks, by rank. On a time-out those that did arrive are told who did not.
std::vector<std::string> MpiControlPlane::collect(const std::string& report,
                                                  const std::string& stage) {
  const std::int64_t begin_ns = now_ns();
  incoming_.expect_headers(others_);
  if (incoming_.wait(timeout_) == WaitResult::timed_out) {
    std::vector<int> missing;
    for (std::size_t i = 0; i < others_.size(); ++i) {
      if (!incoming_.here(i)) {
        missing.push_back(others_[i]);
      }
    }
    const std::string sentence =
        fmt::format("{}: rank{} {} did not arrive within {}", stage, missing.size() == 1 ? "" : "s",
                    fmt::join(missing, ", "), to_text(timeout_));
    tell_those_here(Verdict::ranks_missing, sentence);
    throw TimeoutError(sentence);
  }
  for (std::size_t i = 0; i < others_.size(); ++i) {
    if (incoming_.letters()[i].header.stage != hash_of(stage)) {
      throw EnvironmentError(fmt::format(
          "rank 0 is at '{}' and rank {} is elsewhere: is it one program with one input on all "
          "ranks?",
          stage, others_[i]));
    }
  }
  incoming_.expect_texts();
  if (incoming_.wait({timeout_.value - (now_ns() - begin_ns)}) == WaitResult::timed_out) {
    throw TimeoutError(
        fmt::format("{}: a rank's report was cut off after {}", stage, to_text(timeout_)));
  }
  std::vector<std::string> reports{report};
  for (const Letter& letter : incoming_.letters()) {
    reports.push_back(letter.text);
  }
  return reports;
}

void MpiControlPlane::tell_those_here(Verdict verdict, const std::string& sentence) {
  std::vector<int> here;
  for (std::size_t i = 0; i < others_.size(); ++i) {
    if (incoming_.here(i)) {
      here.push_back(others_[i]);
    }
  }
  outgoing_.send({.header = {.verdict = verdict}, .text = sentence}, here);
  outgoing_.wait(farewell);
}

std::string MpiControlPlane::report_and_listen(const std::string& report,
                                               const std::string& stage) {
  outgoing_.send({.header = {.stage = hash_of(stage)}, .text = report}, others_);
  incoming_.expect_headers(others_);
  const Nanoseconds limit = timeout_ + patience;
  const auto give_up = [&] {
    return TimeoutError(
        fmt::format("{}: rank 0 did not answer rank {} within {}", stage, rank(), to_text(limit)));
  };
  if (incoming_.wait(limit) == WaitResult::timed_out) {
    throw give_up();
  }
  incoming_.expect_texts();
  if (incoming_.wait(limit) == WaitResult::timed_out) {
    throw give_up();
  }
  const Letter& answer = incoming_.letters().front();
  switch (answer.header.verdict) {
    case Verdict::ranks_missing:
      throw TimeoutError(answer.text);
    case Verdict::ranks_disagree:
      throw EnvironmentError(answer.text);
    case Verdict::good:
      break;
  }
  if (outgoing_.wait(limit) == WaitResult::timed_out) {
    throw give_up();
  }
  return answer.text;
}

}  // namespace fsdp::mpi
