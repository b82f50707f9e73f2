#pragma once

#include "core/registry.h"
#include "data/dataset.h"

namespace rondo {

void register_array_files(Registry<DataSource>& registry);
void register_audio_folder(Registry<DataSource>& registry);
void register_cifar_binary(Registry<DataSource>& registry);
void register_combined(Registry<DataSource>& registry);
void register_csv_table(Registry<DataSource>& registry);
void register_glyphs(Registry<DataSource>& registry);
void register_idx_images(Registry<DataSource>& registry);
void register_image_folder(Registry<DataSource>& registry);
void register_lmdb_records(Registry<DataSource>& registry);
void register_sample_ring(Registry<DataSource>& registry);
void register_shapes(Registry<DataSource>& registry);
void register_socket_stream(Registry<DataSource>& registry);
void register_tar_shards(Registry<DataSource>& registry);
void register_text_tokens(Registry<DataSource>& registry);
void register_token_bin(Registry<DataSource>& registry);
void register_tokenized_text(Registry<DataSource>& registry);
void register_waves(Registry<DataSource>& registry);
void register_windows(Registry<DataSource>& registry);

/// Every data set that a config can name without a plugin.
void register_builtin_datasets(Registry<DataSource>& registry);

}  // namespace rondo
