#include "tests/proto/api_reference.h"

#include <google/protobuf/compiler/importer.h>
#include <google/protobuf/descriptor.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace txl {
namespace {

namespace pb = google::protobuf;

class FirstError final : public pb::compiler::MultiFileErrorCollector {
 public:
  void AddError(const std::string& file, int line, int,
                const std::string& message) override {
    if (text.empty()) text = absl::StrCat(file, ":", line + 1, ": ", message);
  }
  std::string text;
};

// Type names of this API link to their own section.
std::string Link(absl::string_view name) {
  return absl::StrCat("[", name, "](#", absl::AsciiStrToLower(name), ")");
}

std::string TypeName(const pb::FieldDescriptor& field) {
  if (field.is_map()) {
    return absl::StrCat("map&lt;", TypeName(*field.message_type()->field(0)),
                        ", ", TypeName(*field.message_type()->field(1)),
                        "&gt;");
  }
  const pb::Descriptor* message = field.message_type();
  const pb::EnumDescriptor* choice = field.enum_type();
  const bool own = message != nullptr ? message->file()->package() == "txl.v1"
                                      : choice != nullptr;
  if (message != nullptr) {
    return own ? Link(message->name()) : message->full_name();
  }
  return own ? Link(choice->name()) : std::string(field.type_name());
}

std::string Label(const pb::FieldDescriptor& field) {
  if (field.is_repeated() && !field.is_map()) return "repeated ";
  if (field.has_optional_keyword()) return "optional ";
  const pb::OneofDescriptor* choice = field.real_containing_oneof();
  return choice == nullptr ? "" : absl::StrCat("one of ", choice->name(), ": ");
}

class Writer {
 public:
  void File(const pb::FileDescriptor& file) {
    for (int i = 0; i < file.service_count(); ++i) Service(*file.service(i));
    for (int i = 0; i < file.message_type_count(); ++i) {
      Message(*file.message_type(i));
    }
    for (int i = 0; i < file.enum_type_count(); ++i) Enum(*file.enum_type(i));
  }

  absl::StatusOr<std::string> Take() {
    if (!missing_.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("no comment: ", absl::StrJoin(missing_, ", ")));
    }
    return std::move(out_);
  }

 private:
  // Paragraphs of the comment, each in one line.
  template <typename Descriptor>
  std::string Comment(const Descriptor& descriptor, absl::string_view between) {
    pb::SourceLocation location;
    descriptor.GetSourceLocation(&location);
    const std::string text = absl::StrReplaceAll(location.leading_comments,
                                                 {{"<", "&lt;"}, {"|", "\\|"}});
    std::vector<std::string> paragraphs = {""};
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      line = absl::StripAsciiWhitespace(line);
      if (line.empty()) {
        if (!paragraphs.back().empty()) paragraphs.emplace_back();
        continue;
      }
      absl::StrAppend(&paragraphs.back(), paragraphs.back().empty() ? "" : " ",
                      line);
    }
    if (paragraphs.back().empty()) paragraphs.pop_back();
    if (paragraphs.empty()) missing_.push_back(descriptor.full_name());
    return absl::StrJoin(paragraphs, between);
  }

  void Service(const pb::ServiceDescriptor& service) {
    absl::StrAppend(&out_, "\n## ", service.name(), "\n\n",
                    Comment(service, "\n\n"), "\n");
    for (int i = 0; i < service.method_count(); ++i) {
      const pb::MethodDescriptor& method = *service.method(i);
      absl::StrAppend(&out_, "\n**", method.name(), "** (",
                      Link(method.input_type()->name()), ") → ",
                      method.server_streaming() ? "stream of " : "",
                      Link(method.output_type()->name()), "\n\n",
                      Comment(method, "\n\n"), "\n");
    }
  }

  void Message(const pb::Descriptor& message) {
    absl::StrAppend(&out_, "\n### ", message.name(), "\n\n",
                    Comment(message, "\n\n"), "\n");
    if (message.field_count() > 0) {
      absl::StrAppend(&out_, "\n| field | type | |\n|-|-|-|\n");
    }
    for (int i = 0; i < message.field_count(); ++i) {
      const pb::FieldDescriptor& field = *message.field(i);
      absl::StrAppend(&out_, "| `", field.name(), "` | ", Label(field),
                      TypeName(field), " | ", Comment(field, "<br>"), " |\n");
    }
  }

  void Enum(const pb::EnumDescriptor& choice) {
    absl::StrAppend(&out_, "\n### ", choice.name(), "\n\n",
                    Comment(choice, "\n\n"), "\n\n| value | |\n|-|-|\n");
    for (int i = 0; i < choice.value_count(); ++i) {
      const pb::EnumValueDescriptor& value = *choice.value(i);
      absl::StrAppend(&out_, "| `", value.name(), "` | ",
                      Comment(value, "<br>"), " |\n");
    }
  }

  std::string out_ =
      "# API reference\n\nPackage `txl.v1`, generated from the comments of "
      "[proto/txl/v1](../proto/txl/v1) by `build/bin/txl-api-reference proto > "
      "docs/api.md`.\n";
  std::vector<std::string> missing_;
};

}  // namespace

absl::StatusOr<std::string> MakeApiReference(
    const std::string& folder, const std::vector<std::string>& files) {
  pb::compiler::DiskSourceTree tree;
  tree.MapPath("", folder);
  tree.MapPath("", TXL_PROTOBUF_INCLUDE);  // google/protobuf/duration.proto
  FirstError error;
  pb::compiler::Importer importer(&tree, &error);
  Writer writer;
  for (const std::string& name : files) {
    const pb::FileDescriptor* file = importer.Import(name);
    if (file == nullptr) return absl::InvalidArgumentError(error.text);
    writer.File(*file);
  }
  return writer.Take();
}

std::vector<std::string> ApiFiles() {
  return {"txl/v1/generation_service.proto", "txl/v1/session_service.proto",
          "txl/v1/model_service.proto",      "txl/v1/admin_service.proto",
          "txl/v1/sampling.proto",           "txl/v1/token.proto"};
}

}  // namespace txl
