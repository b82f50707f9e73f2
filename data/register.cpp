#include "data/register.h"

namespace rondo {

void register_builtin_datasets(Registry<DataSource>& registry) {
  register_glyphs(registry);
  register_idx_images(registry);
  register_cifar_binary(registry);
  register_socket_stream(registry);
  register_tar_shards(registry);
  register_text_tokens(registry);
  register_token_bin(registry);
  register_tokenized_text(registry);
  register_csv_table(registry);
  register_array_files(registry);
  register_audio_folder(registry);
  register_image_folder(registry);
  register_shapes(registry);
  register_waves(registry);
  register_lmdb_records(registry);
  register_combined(registry);
  register_sample_ring(registry);
  register_windows(registry);
}

}  // namespace rondo
