#include "bench/backend/mpi/mail.hpp"

#include <algorithm>
#include <limits>

#include "bench/backend/mpi/error.hpp"
#include "core/units/error.hpp"

namespace fsdp::mpi {
namespace {

constexpr int header_tag = 1;
constexpr int text_tag = 2;

int count_of(const std::string& text) {
  expects(text.size() <= static_cast<std::size_t>(std::numeric_limits<int>::max()),
          "a text between ranks stays below 2 GiB");
  return static_cast<int>(text.size());
}

}  // namespace

Mail::~Mail() {
  const bool under_way =
      std::any_of(held_->requests.begin(), held_->requests.end(),
                  [](MPI_Request request) { return request != MPI_REQUEST_NULL; });
  if (under_way) {
    // A wait ended at its time-out and the job is ending; MPI may still write to the buffers.
    static_cast<void>(held_.release());
  }
}

void Mail::restart(const std::vector<int>& ranks, std::size_t messages) {
  held_->ranks = ranks;
  held_->letters.assign(ranks.size(), {});
  held_->requests.assign(ranks.size() * messages, MPI_REQUEST_NULL);
}

void Mail::send(const Letter& letter, const std::vector<int>& to) {
  restart(to, 2);
  for (std::size_t i = 0; i < to.size(); ++i) {
    Letter& held = held_->letters[i];
    held = letter;
    held.header.bytes = letter.text.size();
    check(MPI_Isend(&held.header, sizeof(MailHeader), MPI_BYTE, to[i], header_tag, comm_,
                    &held_->requests[2 * i]),
          "sending to another rank");
    if (!held.text.empty()) {
      check(MPI_Isend(held.text.data(), count_of(held.text), MPI_BYTE, to[i], text_tag, comm_,
                      &held_->requests[2 * i + 1]),
            "sending to another rank");
    }
  }
}

void Mail::expect_headers(const std::vector<int>& from) {
  restart(from, 1);
  for (std::size_t i = 0; i < from.size(); ++i) {
    check(MPI_Irecv(&held_->letters[i].header, sizeof(MailHeader), MPI_BYTE, from[i], header_tag,
                    comm_, &held_->requests[i]),
          "receiving from another rank");
  }
}

void Mail::expect_texts() {
  for (std::size_t i = 0; i < held_->ranks.size(); ++i) {
    Letter& letter = held_->letters[i];
    if (letter.header.bytes > 0) {
      letter.text.resize(letter.header.bytes);
      check(MPI_Irecv(letter.text.data(), count_of(letter.text), MPI_BYTE, held_->ranks[i],
                      text_tag, comm_, &held_->requests[i]),
            "receiving from another rank");
    }
  }
}

}  // namespace fsdp::mpi
