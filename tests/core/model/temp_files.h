#ifndef TESTS_CORE_MODEL_TEMP_FILES_H_
#define TESTS_CORE_MODEL_TEMP_FILES_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace strata {

// A directory of a test's own, removed with all that is in it.
class TempDirectory {
 public:
  TempDirectory() {
    std::string name = ::testing::TempDir() + "/modelXXXXXX";
    if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << name;
    path_ = name;
  }
  ~TempDirectory() { std::filesystem::remove_all(path_); }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }

  // Returns the path of the file.  A new one each time: ext4 flushes a file
  // that is truncated and written again.
  std::string Write(const std::string& name, std::string_view content) const {
    std::filesystem::remove(Path(name));
    std::ofstream file(Path(name), std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    return Path(name);
  }

 private:
  std::string path_;
};

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace strata

#endif  // TESTS_CORE_MODEL_TEMP_FILES_H_
