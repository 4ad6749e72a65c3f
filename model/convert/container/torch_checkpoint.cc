#include "model/convert/container/torch_checkpoint.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "model/base/status_macros.h"
#include "model/convert/container/native_checkpoint.h"
#include "model/convert/container/pickle_machine.h"
#include "model/convert/container/pickle_text.h"
#include "model/convert/container/plain_data.h"
#include "model/convert/container/zip_directory.h"

namespace txl {
namespace {

constexpr uint64_t kTarMagicOffset = 257;

bool LooksLikeTar(const ByteSource& file) {
  const absl::StatusOr<std::string> magic = ReadText(file, kTarMagicOffset, 5);
  return magic.ok() && *magic == "ustar";
}

absl::StatusOr<NativeCheckpoint> Named(absl::StatusOr<PlainData> plain,
                                       absl::string_view container,
                                       const std::string& path) {
  if (!plain.ok()) return std::move(plain).status();
  return NativeCheckpoint{.path = path,
                          .container = std::string(container),
                          .tensors = std::move(plain->tensors),
                          .data = std::move(plain->data)};
}

}  // namespace

bool LooksLikeTorchFile(const ByteSource& file) {
  return LooksLikeZip(file) || LooksLikeTorchLegacy(file);
}

absl::StatusOr<NativeCheckpoint> ReadTorchBytes(
    std::shared_ptr<const ByteSource> file) {
  const std::string& path = file->name();
  if (LooksLikeZip(*file)) {
    return Named(ReadTorchZip(file), "torch zip", path);
  }
  if (LooksLikeTorchLegacy(*file)) {
    return Named(ReadTorchLegacy(file), "torch legacy", path);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": ",
      file->size() == 0 ? "is an empty file"
      : LooksLikeTar(*file)
          ? "is a tar file, as torch before 0.2 wrote them; not supported"
          : "is not a torch file"));
}

absl::StatusOr<NativeCheckpoint> ReadTorchFile(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(auto file, OpenFile(path));
  return ReadTorchBytes(std::move(file));
}

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

namespace {

// 0x1950a86a20f9469cfc6c, little-endian.
constexpr absl::string_view kLegacyMagic(
    "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr int64_t kVersion = 1001;
// The first pickle is shorter in every protocol.
constexpr uint64_t kMagicBytes = 32;

class LegacyStorages : public TorchStorages {
 public:
  explicit LegacyStorages(std::shared_ptr<const ByteSource> file)
      : file_(std::move(file)) {}

  // What the persistent ids in the pickle of the object say about storages.
  absl::Status Expect(const PickleArena& arena) {
    for (const PickleValue* id : arena.persistent()) {
      if (ModuleClass(*id) != nullptr) continue;
      const absl::StatusOr<StorageRef> ref = ParseStorageRef(*id);
      if (!ref.ok()) return Bad(*file_, ref.status().message());
      const auto [known, added] = expected_.emplace(ref->key, *ref);
      if (!added && (known->second.type != ref->type ||
                     known->second.numel != ref->numel)) {
        return Bad(*file_, absl::StrCat("storage ", Printable(ref->key),
                                        " has two types or sizes"));
      }
    }
    return absl::OkStatus();
  }

  // The storages lie behind `position` in the order of `keys`.
  absl::Status Locate(const PickleValue& keys, uint64_t position) {
    for (const PickleValue* key : keys.items()) {
      const std::string name(key->text);
      const auto ref = expected_.find(name);
      if (!key->IsText() || ref == expected_.end()) {
        return Bad(*file_,
                   absl::StrCat("the storage keys name ", Printable(name),
                                ", which no tensor uses"));
      }
      TXL_ASSIGN_OR_RETURN(const std::string count,
                           ReadText(*file_, position, sizeof(uint64_t)));
      position += sizeof(uint64_t);
      const uint64_t numel = ZipFields(count).U64();
      if (numel != static_cast<uint64_t>(ref->second.numel)) {
        return Bad(*file_, absl::StrCat("storage ", Printable(name),
                                        " is said to have ", ref->second.numel,
                                        " elements but has ", numel));
      }
      const auto bytes = static_cast<uint64_t>(ref->second.bytes());
      if (bytes > file_->size() - position) {
        return Bad(*file_, absl::StrCat("is truncated inside storage ",
                                        Printable(name)));
      }
      auto& source = sources_[name];
      if (source != nullptr) {
        return Bad(*file_, absl::StrCat("the storage keys name ",
                                        Printable(name), " twice"));
      }
      TXL_ASSIGN_OR_RETURN(
          source, Slice(file_, position, bytes,
                        absl::StrCat("storage ", Printable(name), " of ",
                                     file_->name())));
      position += bytes;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<const ByteSource>> Open(
      const StorageRef& ref) override {
    const auto source = sources_.find(ref.key);
    if (source == sources_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "its storage ", Printable(ref.key), " lacks in the storage keys"));
    }
    if (!ref.view.has_value()) return source->second;
    auto& view = views_[{ref.key, ref.view->key}];
    const uint64_t offset = ref.view->offset * ref.type->bytes;
    const uint64_t bytes = ref.view->size * ref.type->bytes;
    if (view.source == nullptr) {
      TXL_ASSIGN_OR_RETURN(view.source, Slice(source->second, offset, bytes,
                                              source->second->name()));
      view.offset = offset;
    } else if (view.offset != offset || view.source->size() != bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "its storage's view ", Printable(ref.view->key), " has two sizes"));
    }
    return view.source;
  }

 private:
  struct View {
    std::shared_ptr<const ByteSource> source;
    uint64_t offset = 0;
  };

  const std::shared_ptr<const ByteSource> file_;
  std::map<std::string, StorageRef> expected_;
  std::map<std::string, std::shared_ptr<const ByteSource>> sources_;
  std::map<std::pair<std::string, std::string>, View> views_;
};

// Whether a dictionary says that `name` is true, or nothing of it.
bool TrueOrAbsent(const PickleValue& dict, absl::string_view name) {
  const auto pairs = dict.pairs();
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pairs[i]->IsText() && pairs[i]->text == name) {
      return pairs[i + 1]->integer != 0;
    }
  }
  return true;
}

// The three pickles before the object.
absl::Status ReadHead(const ByteSource& file, PickleInput& input) {
  PickleArena arena;
  TXL_ASSIGN_OR_RETURN(const PickleValue* const magic,
                       ReadPickle(input, arena));
  if (magic->kind != PickleKind::kBigInt || magic->text != kLegacyMagic) {
    return Bad(file, "is not a torch file: its magic number is another");
  }
  TXL_ASSIGN_OR_RETURN(const PickleValue* const version,
                       ReadPickle(input, arena));
  if (version->kind != PickleKind::kInt || version->integer != kVersion) {
    return Bad(file, "is a torch file of an unknown version");
  }
  TXL_ASSIGN_OR_RETURN(const PickleValue* const system,
                       ReadPickle(input, arena));
  if (!TrueOrAbsent(*system, "little_endian")) {
    return Bad(file, "has big-endian tensors, which are not supported");
  }
  return absl::OkStatus();
}

}  // namespace

bool LooksLikeTorchLegacy(const ByteSource& file) {
  const absl::StatusOr<std::string> start =
      ReadText(file, 0, std::min(file.size(), kMagicBytes));
  return start.ok() && !start->empty() && start->front() == '\x80' &&
         absl::StrContains(*start, kLegacyMagic);
}

absl::StatusOr<PlainData> ReadTorchLegacy(
    std::shared_ptr<const ByteSource> file) {
  PickleInput input(*file);
  TXL_RETURN_IF_ERROR(ReadHead(*file, input));
  const uint64_t begin = input.position();
  PickleArena arena;
  TXL_ASSIGN_OR_RETURN(const PickleValue* const root, ReadPickle(input, arena));
  const uint64_t pickle_bytes = input.position() - begin;
  LegacyStorages storages(file);
  TXL_RETURN_IF_ERROR(storages.Expect(arena));
  TXL_ASSIGN_OR_RETURN(const PickleValue* const keys, ReadPickle(input, arena));
  if (keys->kind != PickleKind::kList) {
    return Bad(*file, "has no list of storage keys");
  }
  TXL_RETURN_IF_ERROR(storages.Locate(*keys, input.position()));
  return ToPlainData(*root, file->name(), pickle_bytes, &storages);
}

absl::StatusOr<nlohmann::json> ReadPickleBytes(
    std::shared_ptr<const ByteSource> file) {
  if (LooksLikeTorchFile(*file)) {
    TXL_ASSIGN_OR_RETURN(NativeCheckpoint checkpoint, ReadTorchBytes(file));
    return std::move(checkpoint.data);
  }
  PickleInput input(*file);
  PickleArena arena;
  TXL_ASSIGN_OR_RETURN(const PickleValue* const root, ReadPickle(input, arena));
  TXL_ASSIGN_OR_RETURN(PlainData plain, ToPlainData(*root, file->name(),
                                                    input.position(), nullptr));
  return std::move(plain.data);
}

absl::StatusOr<nlohmann::json> ReadPickleData(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(auto file, OpenFile(path));
  return ReadPickleBytes(std::move(file));
}

}  // namespace txl
