// Puts a record on disk so that a reader meets a whole document or none, and never a changed one.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/record/run_record.hpp"
#include "core/units/error.hpp"

namespace fsdp {
namespace {

/// Enough for any folder a person keeps, and an end for a file system that answers nonsense.
constexpr int most_numbers = 100000;

[[noreturn]] void fail(const std::string& action, const std::string& path, int error) {
  std::string advice = "check the path and its permissions, or name another folder under 'output'";
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    advice = "free some space, or name another folder under 'output'";
  }
  throw EnvironmentError(
      fmt::format("cannot {} '{}': {}; {}", action, path, std::strerror(error), advice));
}

/// An open file descriptor; closing it here never reports, so whoever cares calls close().
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
  }
  int descriptor() const { return descriptor_; }
  /// 0, or the error that closing reported (a network file system may report a full disk here).
  int close() { return ::close(std::exchange(descriptor_, -1)) == 0 ? 0 : errno; }

 private:
  int descriptor_;
};

/// The unfinished record; removed unless it has become the finished one.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void create_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    fail("create the folder", folder, error.value());
  }
  if (!std::filesystem::is_directory(folder, error)) {
    fail("write records into", folder, ENOTDIR);
  }
}

std::string numbered(const std::string& stem, int number, const std::string& ending) {
  return number == 1 ? stem + ending : fmt::format("{}-{}{}", stem, number, ending);
}

/// Opens a new file of a name that nobody uses; ranks of other hosts may share the folder and this
/// process id.
int open_new(const std::string& stem, std::string& path) {
  for (int number = 1; number <= most_numbers; ++number) {
    path = numbered(stem, number, ".tmp");
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) {
      return descriptor;
    }
    if (errno != EEXIST) {
      fail("create", path, errno);
    }
  }
  fail("create", path, EEXIST);
}

void write_all(int descriptor, const std::string& text, const std::string& path) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(descriptor, text.data() + written, text.size() - written);
    if (count < 0 && errno != EINTR) {
      fail("write", path, errno);
    }
    written += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  // EINVAL: a file system without fsync; what write() took is all it promises.
  if (::fsync(descriptor) != 0 && errno != EINVAL) {
    fail("write", path, errno);
  }
}

/// Where hard links do not exist, an empty file reserves the name and is replaced by its owner.
int reserve_and_rename(const std::string& from, const std::string& to) {
  const int descriptor = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return errno;
  }
  ::close(descriptor);
  if (::rename(from.c_str(), to.c_str()) != 0) {
    const int error = errno;
    ::unlink(to.c_str());
    return error;
  }
  return 0;
}

/// Gives the finished file its name unless the name is taken. 0, or errno.
int publish(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) {
    return 0;
  }
  const int error = errno;
  const bool no_links = error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK;
  return no_links ? reserve_and_rename(from, to) : error;
}

/// The name itself must survive a crash too; file systems that cannot sync a folder are left alone.
void sync_folder(const std::string& folder) {
  const File file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.descriptor() >= 0) {
    static_cast<void>(::fsync(file.descriptor()));
  }
}

}  // namespace

std::string write_record(const RunRecord& record, const std::string& folder,
                         const std::string& name) {
  expects(!name.empty() && name.find('/') == std::string::npos, "a record's name is a file name");
  expects(!folder.empty(), "a record's folder has a name");
  const std::string text = to_json(record);
  create_folder(folder);

  const std::filesystem::path base(folder);
  std::string temporary_path;
  File file(open_new((base / fmt::format(".{}.{}", name, ::getpid())).string(), temporary_path));
  const TemporaryFile temporary(temporary_path);
  write_all(file.descriptor(), text, temporary.path());
  if (const int error = file.close(); error != 0) {
    fail("write", temporary.path(), error);
  }

  const std::string stem = (base / name).string();
  for (int number = 1; number <= most_numbers; ++number) {
    const std::string path = numbered(stem, number, ".json");
    const int error = publish(temporary.path(), path);
    if (error == 0) {
      sync_folder(folder);
      return path;
    }
    if (error != EEXIST) {
      fail("write", path, error);
    }
  }
  fail("write", stem + ".json", EEXIST);
}

}  // namespace fsdp
