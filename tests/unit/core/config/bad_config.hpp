// The form of an error catalogue: a text that must be refused, where, and with which words.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/config/run_config.hpp"

namespace fsdp {

struct BadConfig {
  std::string text;
  int line;
  int column;
  std::string key;
  std::string reason;      ///< a part of it
  std::string suggestion;  ///< a part of it; empty: there must be none
};

/// A model that every run file may name.
inline const std::string tiny_model =
    "model: {name: tiny, family: gpt2, vocab: 64, positions: 16, layers: 2, hidden: 8, heads: 2}\n";

inline void expect_refused(const BadConfig& bad) {
  SCOPED_TRACE(bad.text);
  try {
    load_run_config_text(bad.text, "run.yaml");
    ADD_FAILURE() << "was accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.place().file, "run.yaml");
    EXPECT_EQ(error.place().line, bad.line) << error.what();
    EXPECT_EQ(error.place().column, bad.column) << error.what();
    EXPECT_EQ(error.place().key, bad.key);
    EXPECT_NE(error.reason().find(bad.reason), std::string::npos) << error.what();
    EXPECT_NE(error.suggestion().find(bad.suggestion), std::string::npos) << error.what();
    EXPECT_EQ(error.suggestion().empty(), bad.suggestion.empty()) << error.what();
    EXPECT_EQ(error.exit_code(), ExitCode::usage);
  }
}

inline void expect_all_refused(const std::vector<BadConfig>& catalogue) {
  for (const BadConfig& bad : catalogue) {
    expect_refused(bad);
  }
}

}  // namespace fsdp
