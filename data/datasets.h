#pragma once

// Every data set, and environments whose steps become data.

#include "data/array_files.h"
#include "data/audio/audio_folder.h"
#include "data/cifar_binary.h"
#include "data/combined.h"
#include "data/csv_table.h"
#include "data/glyphs.h"
#include "data/idx_images.h"
#include "data/images/image_folder.h"
#include "data/lmdb_records.h"
#include "data/pendulum.h"
#include "data/replay_buffer.h"
#include "data/sample_ring.h"
#include "data/shapes.h"
#include "data/socket_stream.h"
#include "data/tar_shards.h"
#include "data/tensor_dataset.h"
#include "data/text_tokens.h"
#include "data/token_bin.h"
#include "data/waves.h"
#include "data/windows.h"
