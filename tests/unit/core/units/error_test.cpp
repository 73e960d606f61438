#include "core/units/error.hpp"

#include <gtest/gtest.h>

#include <array>

namespace fsdp {
namespace {

TEST(ExitCode, TheGraverOfTwoWinsInTheDocumentedOrder) {
  constexpr std::array<ExitCode, 8> ascending{
      ExitCode::ok,         ExitCode::warn,    ExitCode::no_verdict,  ExitCode::fail,
      ExitCode::wrong_data, ExitCode::timeout, ExitCode::environment, ExitCode::usage};
  for (std::size_t low = 0; low < ascending.size(); ++low) {
    for (std::size_t high = low; high < ascending.size(); ++high) {
      EXPECT_EQ(worst(ascending[low], ascending[high]), ascending[high]);
      EXPECT_EQ(worst(ascending[high], ascending[low]), ascending[high]);
    }
  }
}

TEST(Error, EveryKindKnowsItsExitCode) {
  EXPECT_EQ(UsageError("x").exit_code(), ExitCode::usage);
  EXPECT_EQ(EnvironmentError("x").exit_code(), ExitCode::environment);
  EXPECT_EQ(TimeoutError("x").exit_code(), ExitCode::timeout);
  EXPECT_STREQ(Error(ExitCode::wrong_data, "rank 3 differs").what(), "rank 3 differs");
}

TEST(Expects, NamesThePlaceOfTheBrokenPromise) {
  EXPECT_NO_THROW(expects(true, "never shown"));
  try {
    expects(false, "units are in forward order");
    FAIL() << "a broken promise went unnoticed";
  } catch (const ContractViolation& violation) {
    const std::string text = violation.what();
    EXPECT_NE(text.find("error_test.cpp:"), std::string::npos) << text;
    EXPECT_NE(text.find("units are in forward order"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace fsdp
