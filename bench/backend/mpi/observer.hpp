// Somebody who looks at the data after each operation of an untimed step.
#pragma once

#include "core/schedule/schedule.hpp"

namespace fsdp::mpi {

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  /// Called on the thread that ran the operation, before anything that waits for it may start.
  virtual void after(OpId op) = 0;
};

}  // namespace fsdp::mpi
