#include "bench/backend/mpi/gemm.hpp"

#include <gtest/gtest.h>

#include "bench/backend/mpi/wait.hpp"
#include "core/units/error.hpp"

namespace fsdp::mpi {
namespace {

TEST(Gemms, OneShapeIsOneProduct) {
  const GemmEngine engine;
  Gemms gemms(engine);
  const std::size_t a = gemms.add({.batch = 1, .m = 8, .n = 16, .k = 4}, DType::f32);
  EXPECT_EQ(gemms.add({.batch = 1, .m = 8, .n = 16, .k = 4}, DType::f32), a);
  EXPECT_NE(gemms.add({.batch = 1, .m = 16, .n = 8, .k = 4}, DType::f32), a);
  EXPECT_NE(gemms.add({.batch = 3, .m = 8, .n = 16, .k = 4}, DType::f32), a);
  EXPECT_THROW(gemms.add({.batch = 1, .m = 0, .n = 16, .k = 4}, DType::f32), ContractViolation);
}

TEST(Gemms, EveryProductRunsInEveryDtype) {
  const GemmEngine engine;
  Gemms gemms(engine);
  std::vector<std::size_t> numbers;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const std::int64_t batch : {1, 5}) {
      for (const std::int64_t size : {1, 33, 64}) {
        numbers.push_back(
            gemms.add({.batch = batch, .m = size, .n = 2 * size, .k = size + 1}, dtype));
      }
    }
  }
  gemms.allocate();
  for (const std::size_t number : numbers) {
    gemms.run(number);
  }
}

TEST(Gemms, TheWorkIsReallyDone) {
  const GemmEngine engine;
  Gemms gemms(engine);
  const Gemm shape{.batch = 1, .m = 512, .n = 512, .k = 512};
  const std::size_t number = gemms.add(shape, DType::f32);
  gemms.allocate();
  gemms.run(number);
  const std::int64_t begin_ns = now_ns();
  gemms.run(number);
  const double time_ns = static_cast<double>(now_ns() - begin_ns);
  EXPECT_LT(flops(shape).value / time_ns, 2000.0) << "GFLOP/s of one core: nothing was computed";
}

TEST(GemmEngine, SaysWhatItDoesWithBf16) {
  const GemmEngine engine;
  EXPECT_EQ(engine.usable(DType::f32), DType::f32);
  const bool has_bf16 = engine.usable(DType::bf16) == DType::bf16;
  EXPECT_EQ(engine.describe().find("no bf16") == std::string::npos, has_bf16) << engine.describe();
  EXPECT_EQ(engine.describe().rfind("oneDNN ", 0), 0U) << engine.describe();
}

}  // namespace
}  // namespace fsdp::mpi
