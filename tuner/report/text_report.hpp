// The report a person reads on stdout. What it says first is what to do.
#pragma once

#include <optional>
#include <string>

#include "core/config/run_config.hpp"
#include "tuner/report/run_summary.hpp"

namespace fsdp {

/// Model, mesh, batch and where the figures come from.
std::string header_text(const RunSummary& summary, const RunConfig& config);
/// Header, verdict, table of the candidates that went on, what was left out, how good the
/// predictions were.
std::string tune_text(const RunSummary& summary, const RunConfig& config);
/// Header and per-step figures of the one policy.
std::string replay_text(const RunSummary& summary, const RunConfig& config);
/// Where the record is and how to draw it; `path` as write_record returned it.
std::string record_text(const std::string& path);

/// Mean of |predicted / measured - 1| over the candidates that have both; nothing without any.
std::optional<double> prediction_error(const std::vector<Trial>& trials);

}  // namespace fsdp
