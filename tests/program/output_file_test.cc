#include "program/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"

namespace txl {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() { fs::create_directories(folder_); }
  ~OutputFileTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const {
    return absl::StrCat(folder_, "/", name);
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.insert(entry.path().filename());
    }
    return names;
  }
  static absl::Status Put(const std::string& path, absl::string_view text) {
    const auto file = OutputFile::Open(path);
    if (!file.ok()) return file.status();
    const absl::Status written = (*file)->Write(text);
    return written.ok() ? (*file)->Finish() : written;
  }

  const std::string folder_ =
      absl::StrCat(testing::TempDir(), "/output_file_", getpid());
};

TEST_F(OutputFileTest, IsThereWholeOrAsItWas) {
  std::ofstream(Path("file")) << "before";
  {
    const auto file = OutputFile::Open(Path("file"));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Write("half").ok());
  }
  EXPECT_EQ(Read(Path("file")), "before");
  EXPECT_TRUE(Put(Path("file"), "whole").ok());
  EXPECT_EQ(Read(Path("file")), "whole");
  EXPECT_EQ(Names(), std::set<std::string>{"file"});
}

TEST_F(OutputFileTest, TakesTheModeAndNoNameThatAFileHas) {
  std::ofstream(Path("file.tmp")) << "the user's";
  const auto file = OutputFile::Open(Path("file"), 0600);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Finish().ok());
  struct stat found = {};
  ASSERT_EQ(stat(Path("file").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  EXPECT_EQ(Read(Path("file.tmp")), "the user's");
  EXPECT_EQ(Names(), (std::set<std::string>{"file", "file.tmp"}));
}

TEST_F(OutputFileTest, ALinkStaysOne) {
  fs::create_directories(Path("far"));
  for (const char* before : {"", "before"}) {  // dangling at first
    if (*before != '\0') std::ofstream(Path("far/file")) << before;
    fs::remove(Path("link"));
    fs::remove(Path("second"));
    fs::create_symlink("far/file", Path("second"));
    fs::create_symlink(Path("second"), Path("link"));
    EXPECT_TRUE(Put(Path("link"), "new").ok());
    EXPECT_TRUE(fs::is_symlink(Path("link")));
    EXPECT_TRUE(fs::is_symlink(Path("second")));
    EXPECT_EQ(Read(Path("far/file")), "new");
    EXPECT_EQ(Names(), (std::set<std::string>{"far", "link", "second"}));
  }
  fs::create_symlink("loop", Path("loop"));
  EXPECT_THAT(Put(Path("loop"), "new").message(), HasSubstr(Path("loop")));
}

TEST_F(OutputFileTest, APipeIsWrittenItself) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = Read(Path("pipe")); });
  EXPECT_TRUE(Put(Path("pipe"), "through").ok());
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(fs::is_fifo(Path("pipe")));
  EXPECT_EQ(Names(), std::set<std::string>{"pipe"});
}

// A shell opens a file so, and /dev/stdout leads to it.
TEST_F(OutputFileTest, ADescriptorIsWrittenItself) {
  std::ofstream(Path("file")) << "before ";
  const int fd = open(Path("file").c_str(), O_WRONLY | O_APPEND);
  ASSERT_GE(fd, 0);
  fs::create_symlink(absl::StrCat("/proc/self/fd/", fd), Path("link"));
  EXPECT_TRUE(Put(Path("link"), "one ").ok());
  EXPECT_TRUE(Put(absl::StrCat("/dev/fd/", fd), "two").ok());
  close(fd);
  EXPECT_EQ(Read(Path("file")), "before one two");
}

TEST_F(OutputFileTest, ErrorsNameThePathAndLeaveNothing) {
  EXPECT_THAT(Put(Path("none/file"), "").message(),
              HasSubstr(Path("none/file: cannot be written")));
  EXPECT_FALSE(Put(folder_, "").ok());
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = {.rlim_cur = 4, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status full = Put(Path("file"), "more than four");
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(full.message(), HasSubstr(Path("file: cannot be written")));
  EXPECT_TRUE(Names().empty());
}

}  // namespace
}  // namespace txl
