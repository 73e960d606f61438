// The control plane over point-to-point messages: every call is a report to rank 0 and an answer
// from it, so that rank 0 knows at any time who has not arrived, and says so.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/backend/mpi/communicator.hpp"
#include "bench/backend/mpi/mail.hpp"
#include "bench/control_plane.hpp"
#include "core/units/quantity.hpp"

namespace fsdp::mpi {

class MpiControlPlane final : public ControlPlane {
 public:
  /// Collective over `world`.
  MpiControlPlane(MPI_Comm world, Nanoseconds timeout);

  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }
  void barrier(const std::string& stage) override;
  std::string broadcast(const std::string& text, const std::string& stage) override;
  std::vector<std::string> all_gather(const std::string& text, const std::string& stage) override;
  void max(std::span<double> values, const std::string& stage) override;
  void min(std::span<double> values, const std::string& stage) override;

 private:
  using Answer = std::function<std::string(const std::vector<std::string>& reports)>;
  /// Sends `report` to rank 0, which makes of all reports, by rank, the answer that every rank
  /// gets. Throws TimeoutError naming the ranks that did not arrive, EnvironmentError when ranks
  /// stand at different stages; nothing can be exchanged after either.
  std::string exchange(const std::string& report, const std::string& stage, const Answer& answer);
  std::string collect_and_answer(const std::string& report, const std::string& stage,
                                 const Answer& answer);
  std::string report_and_listen(const std::string& report, const std::string& stage);
  std::vector<std::string> collect(const std::string& report, const std::string& stage);
  void tell_those_here(Verdict verdict, const std::string& sentence);
  void reduce(std::span<double> values, const std::string& stage,
              const std::function<double(double, double)>& pick);

  Communicator communicator_;
  Nanoseconds timeout_;
  std::vector<int> others_;  ///< rank 0: everybody else; the others: rank 0
  Mail incoming_;
  Mail outgoing_;
  bool broken_ = false;
};

}  // namespace fsdp::mpi
