#include "model/convert/container/torch_zip.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "model/base/status_macros.h"
#include "model/convert/container/pickle_machine.h"
#include "model/convert/container/pickle_text.h"
#include "model/convert/container/zip_directory.h"
#include "model/convert/container/zip_fields.h"

namespace txl {
namespace {

constexpr uint64_t kMaxByteOrderBytes = 16;

class ZipStorages : public TorchStorages {
 public:
  ZipStorages(const ZipDirectory& zip, std::string stem)
      : zip_(zip), stem_(std::move(stem)) {}

  absl::StatusOr<std::shared_ptr<const ByteSource>> Open(
      const StorageRef& ref) override {
    const std::string name = absl::StrCat(stem_, "/data/", ref.key);
    const auto record = zip_.records.find(name);
    if (record == zip_.records.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("its storage ", Printable(ref.key), " has no record ",
                       Printable(name)));
    }
    if (record->second.bytes != static_cast<uint64_t>(ref.bytes())) {
      return absl::InvalidArgumentError(
          absl::StrCat("its storage is said to have ", ref.numel, " elements, ",
                       ref.bytes(), " bytes, but record ", Printable(name),
                       " has ", record->second.bytes));
    }
    std::shared_ptr<const ByteSource>& source = sources_[ref.key];
    if (source == nullptr) source = zip_.Open(name);
    if (!ref.view.has_value()) return source;
    auto& view = views_[{ref.key, ref.view->key}];
    if (view == nullptr) {
      TXL_ASSIGN_OR_RETURN(
          view, Slice(source, ref.view->offset * ref.type->bytes,
                      ref.view->size * ref.type->bytes, source->name()));
    }
    return view;
  }

 private:
  const ZipDirectory& zip_;
  const std::string stem_;
  std::map<std::string, std::shared_ptr<const ByteSource>> sources_;
  std::map<std::pair<std::string, std::string>,
           std::shared_ptr<const ByteSource>>
      views_;
};

// The folder inside the archive that holds data.pkl.
absl::StatusOr<std::string> FindStem(const ZipDirectory& zip) {
  std::string stem;
  for (const auto& [name, record] : zip.records) {
    absl::string_view found = name;
    if (!absl::ConsumeSuffix(&found, "/data.pkl") ||
        absl::StrContains(found, '/')) {
      continue;
    }
    if (!stem.empty()) {
      return Bad(*zip.file, "holds several data.pkl, so no torch file");
    }
    stem = std::string(found);
  }
  if (stem.empty()) {
    return Bad(*zip.file,
               "is a zip archive without data.pkl, so no torch file");
  }
  return stem;
}

absl::Status CheckByteOrder(const ZipDirectory& zip, const std::string& stem) {
  const std::string name = stem + "/byteorder";
  const auto record = zip.records.find(name);
  if (record == zip.records.end()) return absl::OkStatus();
  if (record->second.bytes <= kMaxByteOrderBytes) {
    TXL_ASSIGN_OR_RETURN(const std::string order,
                         ReadText(*zip.Open(name), 0, record->second.bytes));
    if (order == "little") return absl::OkStatus();
  }
  return Bad(*zip.file, "has big-endian tensors, which are not supported");
}

}  // namespace

absl::StatusOr<PlainData> ReadTorchZip(std::shared_ptr<const ByteSource> file) {
  TXL_ASSIGN_OR_RETURN(const ZipDirectory zip,
                       ReadZipDirectory(std::move(file)));
  TXL_ASSIGN_OR_RETURN(const std::string stem, FindStem(zip));
  TXL_RETURN_IF_ERROR(CheckByteOrder(zip, stem));
  const auto pickle = zip.Open(stem + "/data.pkl");
  PickleInput input(*pickle);
  PickleArena arena;
  TXL_ASSIGN_OR_RETURN(const PickleValue* const root, ReadPickle(input, arena));
  ZipStorages storages(zip, stem);
  return ToPlainData(*root, zip.file->name(), pickle->size(), &storages);
}

}  // namespace txl
