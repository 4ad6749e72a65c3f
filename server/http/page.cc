#include "server/http/page.h"

#include <zlib.h>

#include <map>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/base/digest.h"
#include "server/http/http_call.h"

namespace txl {
namespace {

// Nothing but the page's own files runs, is shown or is asked, whatever stands
// in a model's text.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

struct PageFile {
  absl::string_view gzip;
  std::string etag;
  const char* type;
};

const char* TypeOf(absl::string_view name) {
  constexpr std::pair<const char*, const char*> kTypes[] = {
      {".html", "text/html; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".svg", "image/svg+xml"},
      {"LICENSE", "text/plain; charset=utf-8"}};
  for (const auto& [ending, type] : kTypes) {
    if (absl::EndsWith(name, ending)) return type;
  }
  return "application/octet-stream";
}

const std::map<std::string, PageFile>& Files() {
  static const auto& files = *[] {
    auto* made = new std::map<std::string, PageFile>;
    for (const EmbeddedFile& file : PageFiles()) {
      const std::string digest = Sha256Of(file.gzip);
      (*made)[file.name] = {
          file.gzip, absl::StrCat("\"", absl::BytesToHexString(digest), "\""),
          TypeOf(file.name)};
    }
    return made;
  }();
  return files;
}

// Of what gzip has packed. The files are ours: nothing here can fail.
std::string Unpacked(absl::string_view gzip) {
  z_stream stream = {};
  constexpr int kGzip = 16;
  inflateInit2(&stream, MAX_WBITS + kGzip);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzip.data()));
  stream.avail_in = static_cast<uInt>(gzip.size());
  std::string text;
  char part[16 << 10];
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(part);
    stream.avail_out = sizeof(part);
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(part, sizeof(part) - stream.avail_out);
  }
  inflateEnd(&stream);
  return text;
}

std::string NameOf(absl::string_view path) {
  if (path == "/") return "index.html";
  if (path == "/favicon.ico") return "favicon.svg";
  return absl::ConsumePrefix(&path, "/ui/") ? std::string(path) : "";
}

}  // namespace

bool IsPagePath(const std::string& path) {
  return Files().count(NameOf(path)) > 0;
}

bool AnswerPagePath(const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request();
  const auto found = Files().find(NameOf(request.path));
  if (found == Files().end()) return false;
  if (!AllowsMethod(*exchange, {"GET"})) return true;
  const PageFile& file = found->second;
  HttpReply reply;
  reply.content_type = file.type;
  reply.headers = {{"content-security-policy", kPolicy},
                   {"referrer-policy", "no-referrer"},
                   {"etag", file.etag},
                   // Asked for again each time, and sent only when another.
                   {"cache-control", "no-cache"},
                   {"vary", "Accept-Encoding"}};
  if (request.header("if-none-match") == file.etag) {
    reply.status = 304;
  } else if (absl::StrContains(request.header("accept-encoding"), "gzip")) {
    reply.headers.emplace_back("content-encoding", "gzip");
    reply.body = std::string(file.gzip);
  } else {
    reply.body = Unpacked(file.gzip);
  }
  exchange->Reply(std::move(reply));
  return true;
}

}  // namespace txl
