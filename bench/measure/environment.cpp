#include "bench/measure/environment.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

extern char** environ;

namespace fsdp {

namespace {

constexpr std::array<std::string_view, 19> variables{"SLURM_JOB_ID",
                                                     "SLURM_NTASKS",
                                                     "SLURM_JOB_NUM_NODES",
                                                     "SLURM_CPUS_PER_TASK",
                                                     "OMP_NUM_THREADS",
                                                     "OMP_PROC_BIND",
                                                     "OPENBLAS_CORETYPE",
                                                     "ONEDNN_MAX_CPU_ISA",
                                                     "DNNL_MAX_CPU_ISA",
                                                     "MPIR_CVAR_*",
                                                     "UCX_TLS",
                                                     "UCX_NET_DEVICES",
                                                     "UCX_RNDV_THRESH",
                                                     "UCX_RNDV_SCHEME",
                                                     "UCX_ZCOPY_THRESH",
                                                     "UCX_MEM_EVENTS",
                                                     "UCX_TCP_CM_REUSEADDR",
                                                     "UCX_WARN_UNUSED_ENV_VARS",
                                                     "MALLOC_ARENA_MAX"};

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), length};
}

std::string host_name() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "unknown";
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) {
      const std::size_t colon = line.find(": ");
      return colon == std::string::npos ? "unknown" : line.substr(colon + 2);
    }
  }
  return "unknown";
}

std::optional<Bytes> host_available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) {
      const std::size_t digit = line.find_first_of("0123456789");
      std::int64_t kib = 0;
      if (digit != std::string::npos) {
        std::from_chars(line.data() + digit, line.data() + line.size(), kib);
        return Bytes{kib * 1024};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view tool_version() { return FSDP_TUNE_VERSION; }
std::string_view git_state() { return FSDP_TUNE_GIT_STATE; }

std::span<const std::string_view> recorded_variables() { return variables; }

bool is_recorded_variable(std::string_view name) {
  return std::any_of(variables.begin(), variables.end(), [name](std::string_view allowed) {
    return allowed.ends_with('*') ? name.starts_with(allowed.substr(0, allowed.size() - 1))
                                  : name == allowed;
  });
}

EnvironmentInfo environment_info(ControlPlane& control, const Capabilities& capabilities) {
  EnvironmentInfo info;
  info.tool_version = tool_version();
  info.git_state = git_state();
  info.started_utc = utc_now();
  info.hosts = control.all_gather(host_name(), "collecting host names");
  info.cpu = cpu_model();
  info.logical_cpus = static_cast<int>(std::thread::hardware_concurrency());
  info.libraries = capabilities.libraries;
  info.libraries.emplace("compute", capabilities.compute);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos && is_recorded_variable(text.substr(0, equals))) {
      info.variables.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return info;
}

std::optional<Bytes> available_memory_per_rank(ControlPlane& control) {
  const auto hosts = control.all_gather(host_name(), "counting ranks a host");
  const auto here =
      std::count(hosts.begin(), hosts.end(), hosts[static_cast<std::size_t>(control.rank())]);
  const auto available = host_available_memory();
  double share = available ? static_cast<double>(available->value) / static_cast<double>(here) : -1;
  control.min({&share, 1}, "agreeing on available memory");
  return share < 0 ? std::nullopt : std::optional<Bytes>(Bytes{static_cast<std::int64_t>(share)});
}

}  // namespace fsdp
