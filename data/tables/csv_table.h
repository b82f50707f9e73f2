#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/dataset_facts.h"
#include "core/state_dict.h"
#include "data/dataset.h"
#include "data/derived/scaled_columns.h"
#include "data/splits/table_split.h"
#include "data/tables/row_names.h"
#include "data/tables/table_format.h"

namespace rondo {

struct DecodedTable;
struct TableFit;

/// A table in text files: numbers, dates, truth values, words. A sample has
/// - "features", float32 [numbers]: numbers, dates, truth values and what says that one is missing
/// - "categories", int64 [columns]: columns of words; 0 stands for a word that training did not
/// have
/// - "label", int64 [] (a class), float32 [] (a value) or float32 [targets]
/// - "weight", float32 []
/// of which all but the first are there when the table has them. What a column needs, such as its
/// mean or its words, is learnt from the rows for training alone.
class CsvTable final : public Dataset, public ScaledColumns {
 public:
  struct Options {
    std::string file = {};                          ///< name, path or glob; must be given
    std::string label_column = "label";             ///< the column to predict; "": none
    std::string label_type = "class";               ///< "class", "category", "value" or "auto"
    std::optional<int64_t> classes = {};            ///< classes are below it, where it is given
    std::vector<std::string> feature_columns = {};  ///< in this order; all others when empty
    std::string delimiter = "auto";                 ///< "auto" or one character
    int64_t first = 0;                              ///< number of the first row that is used
    std::optional<int64_t> count = {};              ///< rows from there; all when absent
    std::optional<std::filesystem::path> data_dir = {};  ///< else the environment's RONDO_DATA
    std::string folder = {};                             ///< of data_dir, looked into as well

    std::string decimal = "auto";    ///< "auto", "." or ","
    std::string thousands = "auto";  ///< "auto", "none" or one character
    std::string header = "auto";     ///< "auto", "yes" or "no"
    std::string encoding = "auto";   ///< "auto", "utf-8" or "latin-1"
    int64_t skip_lines = 0;          ///< lines before the table
    std::string comment = {};        ///< lines that begin with it are left out; "": none
    std::vector<std::string> missing_values =
        TableFormat().missing_values;  ///< cells that stand for nothing, beside empty ones
    int64_t max_unpacked_bytes = int64_t{1} << 32;  ///< that a compressed file may become
    std::string query = {};  ///< a select statement, where `file` is an SQLite database

    std::vector<std::string> ignore_columns = {};  ///< names or globs
    std::vector<std::string> text_columns = {};    ///< read as words also where they are numbers
    std::vector<std::string> date_columns = {};    ///< read as dates also where they are numbers
    std::string date_order = "auto";               ///< "auto", "ymd", "dmy" or "mdy"
    std::vector<std::string> date_parts = {
        "days"};  ///< of a date: "days" (since 1970), "year", "month", "day", "weekday", "hour"
    std::vector<std::string> target_columns = {};  ///< several values to predict, no label_column
    std::string target_file = {};                  ///< where the label column is; "": in `file`
    std::string weight_column = {};                ///< a sample's weight in the loss; "": none
    std::string id_column = {};                    ///< names samples in predictions; "": none
    std::string missing = "error";  ///< "error", "mean", "median", "drop" or a number
    bool missing_indicator =
        false;                   ///< a feature more for each column in which numbers are missing
    std::string scale = "none";  ///< "none", "standard", "minmax", "robust" or "log"
    std::string target_scale = "none";  ///< the same for values to predict
    TableSplit split = {};              ///< which rows are used
    /// Folder that keeps the table as it was read, for the next start; "": none
    std::string cache = {};
  };

  /// \throws DataError  naming file, line and column of what is wrong
  explicit CsvTable(const Options& options);
  ~CsvTable() override;

  /// \throws UsageError  for options that are out of range or do not go together
  static void check(const Options& options);

  int64_t size() const override { return features_.size(0); }

  Sample get(int64_t index) const override;
  Batch get_batch(const std::vector<int64_t>& indices) const override;

  const std::vector<std::string>& feature_names() const { return facts_.feature_names; }

  DatasetFacts facts() const override { return facts_; }

  /// Also of a column that no tensor is called after, in double precision: numbers as they are,
  /// dates in seconds since 1970. Reads the files again for it.
  std::vector<double> numbers(const std::string& name) const override;

  /// What the columns needed, from the rows for training; what `take_fitted` gave after that.
  StateDict fitted() const override;

  /// Reads the table again with what another one learnt. Not while samples are taken.
  /// \throws DataError        naming columns that the table lacks or has beside them
  /// \throws CheckpointError  for a state that `fitted` did not give
  void take_fitted(const StateDict& fitted) override;

  /// Does nothing where `split` says which rows train.
  void learn_from(const std::vector<int64_t>& samples) override;

  std::vector<DatasetFacts::Target> feature_scales() const override;

  DatasetNotes notes() const override { return notes_; }

  /// What `id_column` holds; else the number of the row in its file, from 0, after the file's name
  /// where there are several.
  std::string sample_name(int64_t index) const override;

 private:
  void load(const TableFit* given);
  void read(const std::vector<std::filesystem::path>& paths, const TableFit* given);
  DecodedTable decoded() const;
  void take(DecodedTable table);
  std::vector<NamedTensor> tensors() const;

  Options options_;
  std::vector<size_t> learnt_rows_;  // of the table; empty: those that train
  std::unique_ptr<TableFit> fit_;
  DatasetFacts facts_;
  at::Tensor features_;    // float32 [rows, columns]
  at::Tensor categories_;  // int64 [rows, columns]; undefined where there are none
  at::Tensor labels_;      // [rows] or [rows, targets]; undefined where there are none
  at::Tensor weights_;     // float32 [rows]; undefined where there are none
  RowNames names_;
  DatasetNotes notes_;
};

}  // namespace rondo
