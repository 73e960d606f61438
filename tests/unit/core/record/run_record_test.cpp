// The record on disk: what JSON says, what it never says, and that nothing is ever lost or
// overwritten.
#include "core/record/run_record.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "core/units/error.hpp"

namespace {
bool file_system_has_links = true;
}

/// Stands in front of the C library's link(), so that a file system without hard links can be had
/// anywhere.
extern "C" int link(const char* from, const char* to) noexcept {
  if (file_system_has_links) {
    return ::linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
  }
  errno = EPERM;
  return -1;
}

namespace fsdp {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view python = FSDP_TEST_PYTHON;
constexpr std::string_view without_python = "no Python with jsonschema was found at configure time";
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// A folder of its own, gone when the test ends.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "fsdp_record_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("mkdtemp failed");
    }
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }
  std::vector<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_)) {
      names.insert(entry.path().filename().string());
    }
    return {names.begin(), names.end()};
  }

 private:
  fs::path path_;
};

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Measurement a_measurement() {
  return {.rank_step_ns = {{10.5e6, 11e6}, {12e6, 11.5e6}},
          .step_ns = {11e6, 12e6},
          .summary = {.n = 2, .median = 11.5e6, .low = 11e6, .high = 12e6},
          .warmup = 3,
          .stopped = "time cap 20 s; error 4 %",
          .verified_steps = 2};
}

CandidateRecord a_candidate() {
  CandidateRecord candidate;
  candidate.policy = "a unit every 2 blocks, prefetch 1/2, keep";
  candidate.unit_blocks = 2;
  candidate.forward_prefetch = 1;
  candidate.backward_prefetch = 2;
  candidate.reshard_after_forward = "keep";
  candidate.outcome = "measured";
  candidate.units = 7;
  candidate.schedule_hash = "0123456789abcdef";
  candidate.memory = {
      .resident = {100}, .optimizer = {200}, .transient_live = {30}, .arenas = {140}, .pools = {}};
  candidate.predicted_ns = 10.25e6;
  candidate.measurement = a_measurement();
  candidate.against_default =
      Comparison{.difference_ns = {.n = 2, .median = -1e6, .low = {}, .high = {}},
                 .relative = -0.08,
                 .verdict = "faster"};
  candidate.metrics = StepMetrics{.step = {11'500'000},
                                  .compute = {8'000'000},
                                  .copies = {500'000},
                                  .collectives = {6'000'000},
                                  .exposed_wait = {3'000'000},
                                  .all_gather_busbw = 2.5e9,
                                  .reduce_scatter_busbw = 1.5e9};
  candidate.allocated_bytes = 140;
  candidate.peak_live_bytes = 30;
  return candidate;
}

ClusterSpec a_cluster() {
  ClusterSpec cluster;
  cluster.name = "here";
  cluster.origin = "calibrated on this machine";
  cluster.ranks = 2;
  cluster.collectives = {
      {.kind = CollectiveKind::all_gather,
       .dtype = DType::bf16,
       .ranks = 2,
       .curve = {{{{1024}, {5000}}, {{1048576}, {250000}}}}},
      {.kind = CollectiveKind::reduce_scatter, .dtype = DType::f32, .ranks = 2, .curve = {}}};
  cluster.copies = {{.kind = CopyKind::chunk_cat, .curve = {{{{4096}, {900}}}}}};
  cluster.gemms = {
      {.gemm = {.batch = 1, .m = 64, .n = 32, .k = 16}, .dtype = DType::bf16, .time = {77}}};
  cluster.gemm_rate = {2.5e11};
  cluster.gemm_latency = {1500};
  cluster.issue_cost = {20};
  return cluster;
}

RunRecord a_record() {
  RunRecord record;
  record.command = "tune";
  record.backend = "mpi";
  record.provenance = "measured";
  record.config_yaml = "model: gpt2.yaml\nseed: 1\n";
  record.model = "gpt2";
  record.scaling = "vocabulary 50257 -> 4096";
  record.parameters = 124'439'808;
  record.shard = 2;
  record.tokens_per_rank = 1024;
  record.seed = std::numeric_limits<std::uint64_t>::max();
  record.verdict = "every 2 is 8 % faster than the default";
  record.default_index = 1;
  record.winner_index = 0;
  CandidateRecord pruned;
  pruned.policy = "a unit a block, prefetch 0/1, reshard";
  pruned.reshard_after_forward = "reshard";
  pruned.is_default = true;
  pruned.outcome = "pruned by simulation";
  record.candidates = {a_candidate(), pruned};
  record.cluster = a_cluster();
  record.winner_timeline = {{"all_gather", "all_gather", "root", "forward", 0, 2000},
                            {"compute", "compute", "root", "backward", 2000, 9000}};
  record.winner_predicted_timeline = {{"compute", "compute", "root", "forward", 0, 8000}};
  record.memory_limit_bytes = std::int64_t{80} << 30;
  record.environment = {.tool_version = "0.1.0",
                        .git_state = "abc1234",
                        .started_utc = "2025-01-01T00:00:00Z",
                        .hosts = {"node0", "node0"},
                        .cpu = "A CPU",
                        .logical_cpus = 8,
                        .libraries = {{"MPI", "MPICH 4.0"}, {"oneDNN", "2.6.3"}},
                        .variables = {{"OMP_NUM_THREADS", "1"}}};
  return record;
}

std::string write_text(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}

struct Verdict {
  int exit_code = -1;
  std::string output;
};

Verdict validate(const std::vector<std::string>& paths) {
  const std::string folder = FSDP_SOURCE_DIR;
  std::string command = std::string(python) + " '" + folder +
                        "/tests/unit/core/record/validate_record.py' '" + folder +
                        "/results/record.schema.json'";
  for (const std::string& path : paths) {
    command += " '" + path + "'";
  }
  Verdict verdict;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) {
    verdict.output += buffer.data();
  }
  verdict.exit_code = WEXITSTATUS(::pclose(pipe));
  return verdict;
}

TEST(RunRecordJson, CarriesEveryFigureWithItsUnit) {
  const Json json = Json::parse(to_json(a_record()));
  EXPECT_EQ(json.begin().key(), "fsdp_tune_record");
  EXPECT_EQ(json["fsdp_tune_record"], record_version);
  EXPECT_EQ(json["provenance"], "measured");
  EXPECT_EQ(json["seed"].get<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(json["model"]["scaling"], "vocabulary 50257 -> 4096");
  EXPECT_EQ(json["memory_limit_bytes"], std::int64_t{80} << 30);
  const Json& candidate = json["candidates"][0];
  EXPECT_EQ(candidate["predicted_step_ns"], 10.25e6);
  EXPECT_EQ(candidate["measurement"]["rank_step_ns"][1][0], 12e6);
  EXPECT_EQ(candidate["measurement"]["summary"]["low_ns"], 11e6);
  EXPECT_EQ(candidate["against_default"]["relative"], -0.08);
  EXPECT_EQ(candidate["memory"]["total_bytes"], 340);
  EXPECT_EQ(candidate["metrics"]["all_gather_busbw_bytes_per_second"], 2.5e9);
  EXPECT_EQ(json["cluster"]["collectives"][0]["points"][1]["time_ns"], 250000);
  EXPECT_EQ(json["winner_timeline"][1]["end_ns"], 9000);
  EXPECT_EQ(json["environment"]["libraries"]["oneDNN"], "2.6.3");
  EXPECT_EQ(json["config_yaml"], "model: gpt2.yaml\nseed: 1\n");
}

TEST(RunRecordJson, SaysNullForWhatDoesNotExist) {
  RunRecord record = a_record();
  record.scaling.clear();
  record.cluster.reset();
  record.winner_index.reset();
  const Json json = Json::parse(to_json(record));
  EXPECT_TRUE(json["model"]["scaling"].is_null());
  EXPECT_TRUE(json["cluster"].is_null());
  EXPECT_TRUE(json["winner_index"].is_null());
  const Json& pruned = json["candidates"][1];
  for (const char* key : {"predicted_step_ns", "measurement", "against_default", "metrics",
                          "allocated_bytes", "peak_live_bytes"}) {
    EXPECT_TRUE(pruned.contains(key) && pruned[key].is_null()) << key;
  }
}

TEST(RunRecordJson, NeverHoldsANumberThatIsNone) {
  RunRecord record = a_record();
  CandidateRecord& candidate = record.candidates[0];
  candidate.predicted_ns = infinity;
  candidate.measurement->step_ns[0] = nan;
  candidate.measurement->rank_step_ns[0][1] = -infinity;
  candidate.measurement->summary.median = nan;
  candidate.against_default->relative = infinity;
  candidate.metrics->all_gather_busbw = nan;
  record.cluster->gemm_rate = {infinity};
  const std::string text = to_json(record);
  const Json json = Json::parse(text);  // throws for NaN and Infinity
  EXPECT_TRUE(json["candidates"][0]["predicted_step_ns"].is_null());
  EXPECT_TRUE(json["candidates"][0]["measurement"]["step_ns"][0].is_null());
  EXPECT_TRUE(json["candidates"][0]["measurement"]["rank_step_ns"][0][1].is_null());
  EXPECT_TRUE(json["candidates"][0]["against_default"]["relative"].is_null());
  EXPECT_TRUE(json["cluster"]["gemm_rate_flops_per_second"].is_null());
}

TEST(RunRecordJson, KeepsOneLineForATimelineRowAndForAnIteration) {
  const std::string text = to_json(a_record());
  EXPECT_NE(text.find("\n          [10500000.0,11000000.0],\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n    {\"stream\":\"all_gather\",\"operation\":\"all_gather\",\"unit\":"
                      "\"root\",\"phase\":\"forward\",\"start_ns\":0,\"end_ns\":2000},\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.back(), '\n');
}

TEST(RunRecordJson, SurvivesTextThatIsNotUtf8) {
  RunRecord record = a_record();
  record.environment.hosts[0] =
      "n\xff"
      "de";
  EXPECT_EQ(Json::parse(to_json(record))["environment"]["hosts"][0],
            "n\xef\xbf\xbd"
            "de");
}

TEST(RunRecordSchema, AcceptsWhatIsWritten) {
  if (python.empty()) {
    GTEST_SKIP() << without_python;
  }
  const TemporaryFolder folder;
  RunRecord broken_numbers = a_record();
  broken_numbers.candidates[0].measurement->step_ns[0] = nan;
  RunRecord bare;
  bare.command = "replay";
  bare.backend = "sim";
  bare.provenance = "simulated: not a measurement";
  bare.model = "tiny";
  const Verdict verdict = validate({write_record(a_record(), folder.path(), "full"),
                                    write_record(broken_numbers, folder.path(), "numbers"),
                                    write_record(bare, folder.path(), "bare")});
  EXPECT_EQ(verdict.exit_code, 0) << verdict.output;
}

TEST(RunRecordSchema, RefusesABrokenRecord) {
  if (python.empty()) {
    GTEST_SKIP() << without_python;
  }
  const TemporaryFolder folder;
  const Json good = Json::parse(to_json(a_record()));
  std::vector<std::pair<std::string, Json>> broken;
  const auto add = [&](const std::string& why, const std::string& pointer, const Json& value) {
    Json json = good;
    json[Json::json_pointer(pointer)] = value;
    broken.emplace_back(why, json);
  };
  add("version", "/fsdp_tune_record", 2);
  add("unknown_key", "/extra", 1);
  add("unknown_inner_key", "/candidates/0/measurement/mean_ns", 1);
  add("text_for_number", "/candidates/0/predicted_step_ns", "10 ms");
  add("provenance", "/provenance", "probably measured");
  add("negative_time", "/winner_timeline/0/start_ns", -1);
  add("null_memory", "/candidates/0/memory/total_bytes", nullptr);
  Json missing = good;
  missing["candidates"][1].erase("memory");
  broken.emplace_back("missing_key", missing);
  for (const auto& [why, json] : broken) {
    const Verdict verdict = validate({write_text(folder / (why + ".json"), json.dump())});
    EXPECT_EQ(verdict.exit_code, 1) << why << ": " << verdict.output;
  }
}

TEST(WriteRecord, NeverOverwrites) {
  const TemporaryFolder folder;
  RunRecord record = a_record();
  const std::string first = write_record(record, folder / "a/b", "tune-job7");
  const std::string before = read(first);
  record.verdict = "another one";
  const std::string second = write_record(record, folder / "a/b", "tune-job7");
  const std::string third = write_record(record, folder / "a/b", "tune-job7");
  EXPECT_EQ(first, folder / "a/b/tune-job7.json");
  EXPECT_EQ(second, folder / "a/b/tune-job7-2.json");
  EXPECT_EQ(third, folder / "a/b/tune-job7-3.json");
  EXPECT_EQ(read(first), before);
  EXPECT_EQ(before, to_json(a_record()));
  EXPECT_EQ(Json::parse(read(second))["verdict"], "another one");
}

TEST(WriteRecord, LeavesNoTemporaryFile) {
  const TemporaryFolder folder;
  write_record(a_record(), folder.path(), "x");
  write_record(a_record(), folder.path(), "x");
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"x-2.json", "x.json"}));
}

TEST(WriteRecord, ManyWritersGetANameEach) {
  const TemporaryFolder folder;
  constexpr std::size_t writers = 8;
  std::vector<std::string> paths(writers);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < writers; ++i) {
    threads.emplace_back([&, i] {
      RunRecord record = a_record();
      record.verdict = "writer " + std::to_string(i);
      paths[i] = write_record(record, folder.path(), "same");
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (std::size_t i = 0; i < writers; ++i) {
    EXPECT_EQ(Json::parse(read(paths[i]))["verdict"], "writer " + std::to_string(i));
  }
  EXPECT_EQ(folder.names().size(), writers);
}

TEST(WriteRecord, SaysWhichFolderCannotBeUsedAndWhy) {
  const TemporaryFolder folder;
  const std::string file = write_text(folder / "file", "not a folder");
  for (const std::string& path : {file, file + "/below"}) {
    try {
      write_record(a_record(), path, "x");
      ADD_FAILURE() << path << " was accepted";
    } catch (const EnvironmentError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("'" + path + "'"), std::string::npos) << what;
      EXPECT_NE(what.find("Not a directory"), std::string::npos) << what;
      EXPECT_NE(what.find("'output'"), std::string::npos) << what;
      EXPECT_EQ(error.exit_code(), ExitCode::environment);
    }
  }
  EXPECT_EQ(read(file), "not a folder");
}

TEST(WriteRecord, NeedsNoHardLinks) {
  const TemporaryFolder folder;
  file_system_has_links = false;
  RunRecord record = a_record();
  const std::string first = write_record(record, folder.path(), "x");
  record.verdict = "another one";
  write_record(record, folder.path(), "x");
  file_system_has_links = true;
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"x-2.json", "x.json"}));
  EXPECT_EQ(read(first), to_json(a_record()));
  EXPECT_EQ(read(folder / "x-2.json"), to_json(record));
}

/// A file size limit stands for a full disk: both make write() fail in the middle of the text.
TEST(WriteRecord, LeavesNothingBehindWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 512, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string what;
  try {
    write_record(a_record(), folder.path(), "x");
  } catch (const EnvironmentError& error) {
    what = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(what.find("cannot write '" + folder.path()), std::string::npos) << what;
  EXPECT_NE(what.find("free some space"), std::string::npos) << what;
  EXPECT_TRUE(folder.names().empty());
}

TEST(WriteRecord, RefusesANameThatIsAPath) {
  const TemporaryFolder folder;
  EXPECT_THROW(write_record(a_record(), folder.path(), "../x"), ContractViolation);
  EXPECT_THROW(write_record(a_record(), folder.path(), ""), ContractViolation);
}

Schedule a_schedule() {
  Schedule schedule;
  FsdpUnit unit;
  unit.name = "model.layers.0";
  schedule.plan.units = {unit};
  schedule.ops = {
      {.work = Allocate{{0}}, .unit = {0}, .stream = Stream::all_gather_copy_in, .after = {}},
      {.work = CopyIn{{0}, {1}}, .unit = {0}, .stream = Stream::all_gather_copy_in, .after = {}},
      {.work = AllGather{{GroupKind::shard, 2}, {1}, {1}, 1, 2, DType::bf16},
       .unit = {0},
       .stream = Stream::all_gather,
       .after = {}},
      {.work = Compute{{}, DType::bf16, {1}, {}},
       .phase = Phase::backward,
       .unit = {0},
       .after = {}},
      {.work = Free{{0}}, .unit = {0}, .after = {}},
      {.work = StepEnd{}, .phase = Phase::backward, .unit = {}, .after = {}}};
  return schedule;
}

TEST(TimelineRows, NameWhatTakesTimeAndLeaveOutTheRest) {
  const Timeline timeline{.spans = {{0, 0}, {1, 5}, {5, 9}, {9, 20}, {20, 20}, {20, 20}},
                          .step = {20}};
  const std::vector<TimelineRow> rows = timeline_rows(a_schedule(), timeline);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].operation, "copy_in");
  EXPECT_EQ(rows[0].stream, "all_gather_copy_in");
  EXPECT_EQ(rows[1].operation, "all_gather");
  EXPECT_EQ(rows[1].unit, "model.layers.0");
  EXPECT_EQ(rows[1].phase, "forward");
  EXPECT_EQ(rows[2].operation, "compute");
  EXPECT_EQ(rows[2].phase, "backward");
  EXPECT_EQ(rows[2].start_ns, 9);
  EXPECT_EQ(rows[2].end_ns, 20);
}

TEST(TimelineRows, RefuseATimelineOfAnotherSchedule) {
  const Timeline timeline{.spans = {{0, 1}}, .step = {1}};
  EXPECT_THROW(timeline_rows(a_schedule(), timeline), ContractViolation);
}

}  // namespace
}  // namespace fsdp
