#include "remote/internal/http_store.h"

#include <fmt/format.h>

#include "core/error.h"
#include "remote/internal/resumed_download.h"
#include "remote/remote_error.h"
#include "remote/transport.h"

namespace rondo::detail {

namespace {

bool is_busy(const HttpResponse& answer) {
  return answer.status >= 500 || answer.status == 429 || answer.status == 408;
}

class HttpStore final : public RemoteStore {
 public:
  HttpStore(const RemoteAddress& address, RemoteSettings settings)
      : folder_(fmt::format("{}://{}/{}", address.scheme, address.authority, address.path)),
        query_(address.query.empty() ? "" : "?" + address.query),
        retry_(std::move(settings.retry)),
        on_download_(std::move(settings.on_download)),
        transport_(make_transport(retry_, /*follows=*/true)) {
    if (folder_.back() != '/') {
      folder_ += '/';
    }
  }

  void upload(const std::filesystem::path&, const std::string&) override { refuse_writing(); }

  void put(const std::string&, std::string_view) override { refuse_writing(); }

  void remove(const std::string&) override { refuse_writing(); }

  void check_access() override { refuse_writing(); }

  std::vector<std::string> list() override {
    throw UsageError(folder_ +
                     ": a web server gives no list of its files: name them without wildcards");
  }

  std::optional<std::string> read(const std::string& name) override {
    std::string bytes;
    HttpResponse answer;
    with_retries(retry_, [&] {
      bytes.clear();
      answer = get(name, {}, [&](const HttpResponse&, std::string_view more) { bytes += more; });
    });
    return answer.status == kNotFound ? std::nullopt : std::optional<std::string>(bytes);
  }

  bool download(const std::string& name, const std::filesystem::path& file) override {
    return resumed_download(
        address_of(name),
        file,
        retry_,
        "",
        on_download_,
        [&](const RangeRequest& range, const BodySink& sink) { return get(name, range, sink); });
  }

  /// Not every server answers HEAD.
  std::string version(const std::string& name) override {
    HttpResponse answer;
    with_retries(retry_, [&] {
      answer = transport_->send({"HEAD", folder_ + name + query_, {}, ""});
      if (is_busy(answer)) {
        throw RemoteError(fmt::format("{}: the server answers {}", address_of(name), answer.status),
                          true);
      }
    });
    return answer.status == 200 ? answer.version() : "";
  }

  std::string address_of(const std::string& name) const override { return folder_ + name; }

 private:
  [[noreturn]] void refuse_writing() const {
    throw UsageError(folder_ +
                     ": rondo only reads from web servers; checkpoints go to s3://, "
                     "gs://, oci:// or file://");
  }

  HttpResponse get(const std::string& name, const RangeRequest& range, const BodySink& sink) {
    HttpRequest request;
    request.url = folder_ + name + query_;
    request.headers = range.headers();
    HttpResponse answer = transport_->send(request, sink);
    if (answer.status != 200 && answer.status != 206 && answer.status != kNotFound) {
      throw RemoteError(fmt::format("{}: the server answers {}", address_of(name), answer.status),
                        is_busy(answer));
    }
    return answer;
  }

  std::string folder_;
  std::string query_;
  RetryPolicy retry_;
  DownloadProgress on_download_;
  std::unique_ptr<HttpTransport> transport_;
};

}  // namespace

std::unique_ptr<RemoteStore> make_http_store(const RemoteAddress& address,
                                             RemoteSettings settings) {
  return std::make_unique<HttpStore>(address, std::move(settings));
}

}  // namespace rondo::detail
