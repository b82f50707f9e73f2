#include <sqlite3.h>

#include <system_error>

#include "record/summary_index.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

struct CloseIndex {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};

struct EndLookup {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

using IndexFile = std::unique_ptr<sqlite3, CloseIndex>;
using Lookup = std::unique_ptr<sqlite3_stmt, EndLookup>;

constexpr const char* kIndexTable =
    "create table if not exists summaries(path text primary key, inode integer, size integer, "
    "modified integer, text text)";

/// Those that were added last.
constexpr const char* kForgetOld =
    "delete from summaries where rowid <= (select max(rowid) from summaries) - 20000";

constexpr int kPatience = 50;  // milliseconds that another reader may write

/// Null when it cannot be used.
IndexFile opened_index(const fs::path& file) {
  sqlite3* raw = nullptr;
  const bool is_open = sqlite3_open(file.c_str(), &raw) == SQLITE_OK;
  IndexFile database(raw);
  if (!is_open) {
    return nullptr;
  }
  sqlite3_busy_timeout(raw, kPatience);
  const bool has_table = sqlite3_exec(raw, kIndexTable, nullptr, nullptr, nullptr) == SQLITE_OK;
  return has_table ? std::move(database) : nullptr;
}

bool is_damaged(const fs::path& file) {
  sqlite3* raw = nullptr;
  sqlite3_open(file.c_str(), &raw);
  const IndexFile database(raw);
  const int code = sqlite3_exec(raw, kIndexTable, nullptr, nullptr, nullptr);
  return code == SQLITE_NOTADB || code == SQLITE_CORRUPT;
}

Lookup prepared(sqlite3* database, const char* sql) {
  sqlite3_stmt* raw = nullptr;
  sqlite3_prepare_v2(database, sql, -1, &raw, nullptr);
  return Lookup(raw);
}

void bind_text(sqlite3_stmt* statement, int place, const std::string& text) {
  sqlite3_bind_text(statement, place, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

}  // namespace

struct SummaryIndex::Database {
  IndexFile file;
  Lookup find;
  Lookup add;
  bool has_added = false;
};

SummaryIndex::SummaryIndex(const fs::path& file) {
  if (file.empty()) {
    return;
  }
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  IndexFile database = opened_index(file);
  if (database == nullptr && is_damaged(file)) {
    fs::remove(file, error);
    database = opened_index(file);
  }
  if (database == nullptr) {
    return;
  }
  Lookup find = prepared(database.get(),
                         "select text from summaries where path = ? and inode = ? and size = ? and "
                         "modified = ?");
  Lookup add = prepared(database.get(), "insert or replace into summaries values(?, ?, ?, ?, ?)");
  if (find != nullptr && add != nullptr) {  // else the table has another form
    database_ =
        std::make_unique<Database>(Database{std::move(database), std::move(find), std::move(add)});
  }
}

SummaryIndex::~SummaryIndex() {
  if (database_ != nullptr && database_->has_added) {
    sqlite3_exec(database_->file.get(), kForgetOld, nullptr, nullptr, nullptr);
    sqlite3_exec(database_->file.get(), "commit", nullptr, nullptr, nullptr);
  }
}

std::optional<std::string> SummaryIndex::find(const FileIdentity& file) {
  if (database_ == nullptr) {
    return std::nullopt;
  }
  sqlite3_stmt* const statement = database_->find.get();
  bind_text(statement, 1, file.path.string());
  sqlite3_bind_int64(statement, 2, file.inode);
  sqlite3_bind_int64(statement, 3, file.size);
  sqlite3_bind_int64(statement, 4, file.modified);
  std::optional<std::string> text;
  if (sqlite3_step(statement) == SQLITE_ROW) {
    const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(statement, 0));
    const auto size = static_cast<size_t>(sqlite3_column_bytes(statement, 0));
    text = bytes == nullptr ? std::string() : std::string(bytes, size);
  }
  sqlite3_reset(statement);
  return text;
}

void SummaryIndex::add(const FileIdentity& file, const std::string& text) {
  if (database_ == nullptr) {
    return;
  }
  if (!database_->has_added) {  // one transaction for all
    if (sqlite3_exec(database_->file.get(), "begin immediate", nullptr, nullptr, nullptr) !=
        SQLITE_OK) {
      return;
    }
    database_->has_added = true;
  }
  sqlite3_stmt* const statement = database_->add.get();
  bind_text(statement, 1, file.path.string());
  sqlite3_bind_int64(statement, 2, file.inode);
  sqlite3_bind_int64(statement, 3, file.size);
  sqlite3_bind_int64(statement, 4, file.modified);
  bind_text(statement, 5, text);
  sqlite3_step(statement);
  sqlite3_reset(statement);
}

}  // namespace rondo
