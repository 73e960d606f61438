#include "tuner/app/agreement.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace fsdp {

namespace {

/// FNV-1a, 64 bit.
std::string hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return fmt::format("{:016x}", hash);
}

std::string encode(const LoadedConfig& loaded) {
  return nlohmann::json{{"code", static_cast<int>(loaded.code)},
                        {"message", loaded.message},
                        {"hash", loaded.config ? hash_of(print_config(*loaded.config)) : ""}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", rank_list(ranks));
}

std::optional<SharedFailure> failed_ranks(const std::vector<nlohmann::json>& reports) {
  SharedFailure failure{ExitCode::ok, ""};
  std::map<std::string, std::vector<int>> ranks_by_message;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const auto code = static_cast<ExitCode>(reports[rank].at("code").get<int>());
    if (code != ExitCode::ok) {
      failure.code = worst(failure.code, code);
      ranks_by_message[reports[rank].at("message").get<std::string>()].push_back(
          static_cast<int>(rank));
    }
  }
  if (ranks_by_message.empty()) {
    return std::nullopt;
  }
  for (const auto& [message, ranks] : ranks_by_message) {
    const bool all = ranks.size() == reports.size();
    failure.message += failure.message.empty() ? "" : "\n";
    failure.message += all ? message : fmt::format("{}: {}", ranks_text(ranks), message);
  }
  return failure;
}

}  // namespace

std::string rank_list(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) {
      ++last;
    }
    text += text.empty() ? "" : ",";
    text += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return text;
}

std::optional<SharedFailure> agree_on_config(ControlPlane& control, const LoadedConfig& loaded) {
  std::vector<nlohmann::json> reports;
  for (const auto& text : control.all_gather(encode(loaded), "comparing configurations")) {
    reports.push_back(nlohmann::json::parse(text));
  }
  if (auto failure = failed_ranks(reports)) {
    return failure;
  }
  std::vector<int> different;
  for (std::size_t rank = 1; rank < reports.size(); ++rank) {
    if (reports[rank].at("hash") != reports[0].at("hash")) {
      different.push_back(static_cast<int>(rank));
    }
  }
  if (different.empty()) {
    return std::nullopt;
  }
  return SharedFailure{
      ExitCode::environment,
      fmt::format("{} read another configuration than rank 0; every host needs the same run file, "
                  "the same files it names and the same command line",
                  ranks_text(different))};
}

void agree_on_plans(ControlPlane& control, const std::vector<std::string>& hashes) {
  const auto lists =
      control.all_gather(fmt::format("{}", fmt::join(hashes, " ")), "comparing plans");
  std::vector<int> different;
  for (std::size_t rank = 1; rank < lists.size(); ++rank) {
    if (lists[rank] != lists[0]) {
      different.push_back(static_cast<int>(rank));
    }
  }
  if (!different.empty()) {
    throw EnvironmentError(
        fmt::format("{} chose other plans than rank 0; run the same build of fsdp-tune on one kind "
                    "of host",
                    ranks_text(different)));
  }
}

ExitCode agree_on_exit(ControlPlane& control, ExitCode code) {
  ExitCode result = code;
  for (const auto& text :
       control.all_gather(std::to_string(static_cast<int>(code)), "agreeing on the exit code")) {
    result = worst(result, static_cast<ExitCode>(std::stoi(text)));
  }
  return result;
}

}  // namespace fsdp
