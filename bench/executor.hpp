// Runs schedules. Everything that can fail or allocate happens in prepare(); run() is what is
// timed.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/record/timeline.hpp"
#include "core/schedule/memory.hpp"
#include "core/schedule/schedule.hpp"
#include "core/units/error.hpp"

namespace fsdp {

/// What a backend can do; prepare() refuses the rest with a sentence.
struct Capabilities {
  std::string backend;    ///< "sim", "mpi"
  bool measures = false;  ///< false: its timelines are simulated and every output says so
  std::vector<DType> gather_dtypes;
  std::vector<DType> reduce_dtypes;
  bool replicate_groups = false;
  std::string compute;  ///< what runs the matrix products: "oneDNN 2.6.3, bf16", "cost model"
  std::map<std::string, std::string> libraries{};  ///< as loaded, not as compiled against: "MPI"
};

/// A schedule that this backend does not run, and why. Exit code 64.
class Unsupported : public Error {
 public:
  explicit Unsupported(const std::string& message) : Error(ExitCode::usage, message) {}
};

/// Gathered or reduced contents that are not what the payload says. Exit code 3.
struct DataMismatch {
  int rank = 0;
  OpId op;
  std::string unit;
  std::string operation;     ///< "all_gather", "reduce_scatter"
  std::int64_t element = 0;  ///< first differing element of the checked buffer
  double expected = 0;
  double found = 0;
};
std::string to_text(const DataMismatch& mismatch);

class WrongData : public Error {
 public:
  explicit WrongData(const DataMismatch& mismatch)
      : Error(ExitCode::wrong_data, to_text(mismatch)) {}
};

/// Bytes a prepared step really holds, counted where they are allocated.
struct Allocation {
  std::array<Bytes, pool_count> pools{};  ///< arenas as allocated
  Bytes peak_live;  ///< the most transient bytes alive at once, counted while running; 0 before
};

/// One schedule, ready to run again and again on this rank.
class PreparedStep {
 public:
  virtual ~PreparedStep() = default;
  /// Runs one step; collective over ranks. `timeline` has been sized by timeline_for() and is only
  /// written to.
  virtual void run(Timeline& timeline) = 0;
  /// Runs one untimed step on known contents, poisoned buffers first, and checks every gathered
  /// parameter and reduced gradient of this rank. The first mismatch, or nothing.
  virtual std::optional<DataMismatch> run_verified() = 0;
  virtual Allocation allocation() const = 0;
};

/// A timeline with room for every span of `schedule`.
Timeline timeline_for(const Schedule& schedule);

/// Flips one byte after an operation, to prove that verification sees it (debugging only).
struct FaultInjection {
  int rank = 0;
  std::string operation = "all_gather";  ///< or "reduce_scatter"
  std::string unit;                      ///< empty: the first
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual const Capabilities& capabilities() const = 0;
  /// Throws Unsupported with a sentence; std::bad_alloc never leaves (it becomes EnvironmentError
  /// with sizes).
  virtual std::unique_ptr<PreparedStep> prepare(const Schedule& schedule) = 0;
};

}  // namespace fsdp
