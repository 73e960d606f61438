// Texts between ranks: a header that says how long and what for, then the text. Nothing blocks;
// the messages live here until MPI is done with them.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/backend/mpi/wait.hpp"

namespace fsdp::mpi {

/// How rank 0 judges what the ranks did; reports to rank 0 are always good.
enum class Verdict : std::uint64_t { good, ranks_missing, ranks_disagree };

struct MailHeader {
  std::uint64_t bytes = 0;
  Verdict verdict = Verdict::good;
  std::uint64_t stage = 0;  ///< a hash of where in the program the sender is
};

struct Letter {
  MailHeader header;
  std::string text;
};

/// One direction: either what is sent or what is received, by place in the list of ranks.
class Mail {
 public:
  explicit Mail(MPI_Comm comm) : comm_(comm), held_(std::make_unique<Held>()) {}
  ~Mail();
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;

  void send(const Letter& letter, const std::vector<int>& to);
  void expect_headers(const std::vector<int>& from);
  /// Once the headers are there.
  void expect_texts();
  WaitResult wait(Nanoseconds timeout) { return wait_all(held_->requests, timeout); }
  /// Whether the letter at this place is complete as far as it is expected.
  bool here(std::size_t place) const { return held_->requests[place] == MPI_REQUEST_NULL; }
  const std::vector<Letter>& letters() const { return held_->letters; }

 private:
  struct Held {
    std::vector<Letter> letters;
    std::vector<int> ranks;
    std::vector<MPI_Request> requests;
  };
  void restart(const std::vector<int>& ranks, std::size_t messages);

  MPI_Comm comm_;
  std::unique_ptr<Held> held_;
};

}  // namespace fsdp::mpi
