// Matrix products of a step on the CPU through oneDNN: primitives, operands and scratch space are
// made before anything is timed.
#pragma once

#include <dnnl.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/gemm.hpp"
#include "core/units/dtype.hpp"

namespace fsdp::mpi {

/// oneDNN on this processor. Whether it multiplies bf16 is asked once.
class GemmEngine {
 public:
  GemmEngine();
  const dnnl::engine& engine() const { return engine_; }
  /// The dtype that products of `wanted` really run in.
  DType usable(DType wanted) const;
  /// "oneDNN 2.6.3, bf16", or that bf16 falls back to f32.
  std::string describe() const;

 private:
  dnnl::engine engine_;
  bool has_bf16_ = false;
};

/// The products of one prepared step. Operands are random numbers, never zeros: multipliers draw
/// less power on zeros and clocks rise. They are shared between products of the same size class,
/// so that a step needs little memory beside its own but does not run from one hot buffer.
class Gemms {
 public:
  explicit Gemms(const GemmEngine& engine);
  ~Gemms();
  Gemms(const Gemms&) = delete;
  Gemms& operator=(const Gemms&) = delete;

  /// Makes the primitive of this product, once a shape; returns its number for run().
  std::size_t add(const Gemm& gemm, DType dtype);
  /// Allocates operands and scratch space for everything added. Throws std::bad_alloc.
  void allocate();
  /// One thread; allocates nothing.
  void run(std::size_t number);

 private:
  struct Product;
  struct Operands;
  const GemmEngine* engine_;
  dnnl::stream stream_;
  std::map<std::pair<Gemm, DType>, std::size_t> numbers_;
  std::vector<Product> products_;
  std::unique_ptr<Operands> operands_;
};

}  // namespace fsdp::mpi
