#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/measure/sampler.hpp"

namespace fsdp {

namespace {

std::string encode(const DataMismatch& mismatch) {
  return nlohmann::json{{"rank", mismatch.rank},
                        {"op", mismatch.op.value},
                        {"unit", mismatch.unit},
                        {"operation", mismatch.operation},
                        {"element", mismatch.element},
                        {"expected", mismatch.expected},
                        {"found", fmt::format("{}", mismatch.found)}}
      .dump();
}

/// `found` travels as text: poisoned buffers hold NaN, which JSON cannot.
DataMismatch decode(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  return {.rank = json.at("rank").get<int>(),
          .op = {json.at("op").get<std::int32_t>()},
          .unit = json.at("unit").get<std::string>(),
          .operation = json.at("operation").get<std::string>(),
          .element = json.at("element").get<std::int64_t>(),
          .expected = json.at("expected").get<double>(),
          .found = std::stod(json.at("found").get<std::string>())};
}

}  // namespace

void agree_on_contents(ControlPlane& control, const std::optional<DataMismatch>& found) {
  constexpr double none = std::numeric_limits<double>::max();
  double lowest = found ? control.rank() : none;
  control.min({&lowest, 1}, "agreeing on contents");
  if (lowest == none) {
    return;
  }
  const auto texts = control.all_gather(found ? encode(*found) : "", "collecting a mismatch");
  throw WrongData(decode(texts[static_cast<std::size_t>(lowest)]));
}

}  // namespace fsdp
