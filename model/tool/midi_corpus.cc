#include "model/tool/midi_corpus.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "model/music/midi_encoder.h"

namespace txl {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostShown = 8;  // kinds of what is left out

using Counts = std::map<std::string, int64_t>;

absl::StatusOr<std::vector<std::string>> MidiFilesBelow(
    const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    const std::string suffix =
        absl::AsciiStrToLower(entry->path().extension().string());
    std::error_code ignored;
    if ((suffix == ".mid" || suffix == ".midi") &&
        !entry->is_directory(ignored)) {
      files.push_back(entry->path().string());
    }
  }
  if (error) return Bad(folder, error.message());
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<MidiIds> ReadMidiFile(const std::string& path,
                                     const MidiEncoder& encoder) {
  TXL_ASSIGN_OR_RETURN(const std::string bytes,
                       ReadRegularFile(path, kMostMidiBytes));
  absl::StatusOr<MidiIds> music = encoder.Encode(bytes);
  if (!music.ok()) return Bad(path, music.status().message());
  return music;
}

std::string MostFrequent(const Counts& counts) {
  std::vector<std::pair<int64_t, std::string>> ordered;
  for (const auto& [what, count] : counts) ordered.emplace_back(-count, what);
  std::sort(ordered.begin(), ordered.end());
  const size_t shown = std::min(ordered.size(), kMostShown);
  std::string text =
      absl::StrJoin(ordered.begin(), ordered.begin() + shown, ", ",
                    [](std::string* out, const auto& each) {
                      absl::StrAppend(out, each.second, " (", -each.first, ")");
                    });
  if (shown < ordered.size()) {
    absl::StrAppend(&text, " and ", ordered.size() - shown, " other kinds");
  }
  return text;
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> IdsOfMidiFolder(
    const MidiFolder& folder, const Vocabulary& vocabulary, std::ostream& log) {
  TXL_ASSIGN_OR_RETURN(const MidiEncoder encoder,
                       MidiEncoder::Make(vocabulary));
  TXL_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                       MidiFilesBelow(folder.path));
  if (files.empty()) {
    return Bad(folder.path, "holds no MIDI file (*.mid, *.midi)");
  }
  std::vector<int64_t> ids;
  Counts left_out;
  size_t unreadable = 0;
  for (const std::string& file : files) {
    const absl::StatusOr<MidiIds> music = ReadMidiFile(file, encoder);
    if (!music.ok()) {
      log << music.status().message() << "\n";
      ++unreadable;
      continue;
    }
    ids.insert(ids.end(), music->ids.begin(), music->ids.end());
    if (encoder.end_id() >= 0) ids.push_back(encoder.end_id());
    for (const LeftOut& each : music->left_out) {
      left_out[each.what] += each.count;
    }
  }
  const std::string share =
      absl::StrCat(unreadable, " of ", files.size(), " MIDI files");
  if (unreadable == files.size()) {
    return Bad(folder.path, "none of its MIDI files can be read");
  }
  if (unreadable > 0 && !folder.skip_unreadable) {
    return Bad(folder.path, absl::StrCat(share,
                                         " cannot be read; --skip-unreadable "
                                         "leaves them out"));
  }
  log << files.size() - unreadable << " MIDI files, " << ids.size()
      << " tokens";
  if (unreadable > 0) log << "; " << share << " cannot be read";
  if (!left_out.empty()) log << "; left out: " << MostFrequent(left_out);
  log << "\n";
  return ids;
}

}  // namespace txl
