#include "cli/component_examples.h"

#include <fmt/format.h>

#include <map>
#include <vector>

namespace rondo {

namespace {

/// Keys by the name of their component. A text that begins with "[" is a whole example.
using Examples = std::map<std::string_view, std::string_view>;

struct ExampleFamily {
  std::string_view name;
  std::string_view form;          ///< {0} is the component, {1} its keys
  std::string_view without_keys;  ///< the same for no keys
  Examples examples;
};

const ExampleFamily kModelsExamples = {
    "model",
    "[trainer.init]\nmodel = {{ name = \"{0}\", {1} }}\n",
    "[trainer.init]\nmodel = {{ name = \"{0}\" }}\n",
    {{"Mlp", "sizes = [784, 256, 10], dropout = 0.1"},
     {"Cnn", "image_size = 28, classes = 10, widths = [16, 32]"},
     {"ResNet", "blocks = 3, width = 16, classes = 10"},
     {"Lstm", "layers = 2, width = 128, vocabulary = 65"},
     {"Gru", "layers = 2, width = 128, vocabulary = 65"},
     {"Gpt", "layers = 4, heads = 4, width = 128, context = 64, vocabulary = 65"},
     {"ScriptModel", "path = \"model.ts\", inputs = [\"image\"], loss = \"cross_entropy\""},
     {"TableMlp", "hidden = [128, 128], dropout = 0.1"},
     {"DeepResNet", "depth = 18, width = 16, classes = 10, stem = \"cifar\""},
     {"MobileNet", "width = 0.5, classes = 10, stem = \"cifar\""},
     {"Vit", "image_size = 32, patch = 4, layers = 4, classes = 10"},
     {"UNet", "channels = 1, classes = 4, width = 8, depth = 2"},
     {"Forecaster", "body = \"tcn\", horizon = 8, width = 24"},
     {"Autoencoder", "sizes = [784, 128, 32]"},
     {"Vae", "sizes = [784, 256, 16], beta = 0.5"},
     {"Diffusion", "image_size = 28, width = 16, depth = 2, steps = 100"}}};

const ExampleFamily kLossesExamples = {
    "loss function",
    "[trainer.init]\nmodel = {{ name = \"Mlp\", sizes = [784, 10], loss = {{ {0} = {{ {1} }} }} "
    "}}\n",
    "[trainer.init]\nmodel = {{ name = \"Mlp\", sizes = [784, 10], loss = \"{0}\" }}\n",
    {{"CrossEntropy", "label_smoothing = 0.1"},
     {"Focal", "gamma = 2.0"},
     {"Dice",
      "[trainer.init]\n"
      "model = { name = \"UNet\", classes = 4, loss = { Dice = { background = false } } }\n"},
     {"BCE",
      "[trainer.init]\n"
      "model = { name = \"Autoencoder\", sizes = [784, 32], loss = \"BCE\" }\n"},
     {"KL", ""},
     {"MSE",
      "[trainer.init]\n"
      "model = { name = \"Forecaster\", horizon = 8, loss = \"MSE\" }\n"},
     {"L1",
      "[trainer.init]\n"
      "model = { name = \"Forecaster\", horizon = 8, loss = \"L1\" }\n"},
     {"MAE",
      "[trainer.init]\n"
      "model = { name = \"Forecaster\", horizon = 8, loss = \"MAE\" }\n"},
     {"Huber",
      "[trainer.init]\n"
      "model = { name = \"Forecaster\", horizon = 8, loss = { Huber = { delta = 0.5 } } }\n"},
     {"Quantile",
      "[trainer.init]\n"
      "model = { name = \"Forecaster\", horizon = 8, "
      "loss = { Quantile = { quantiles = [0.1, 0.5, 0.9] } } }\n"}}};

const ExampleFamily kDatasetsExamples = {
    "dataset",
    "[trainer.fit.train_dataloader]\ndataset = \"{0}\"\n{1}\nlabel = \"train\"\nbatch_size = 16\n",
    "[trainer.fit.train_dataloader]\ndataset = \"{0}\"\nlabel = \"train\"\nbatch_size = 16\n",
    {{"Glyphs", "size = 8000\nmax_rotation_deg = 10.0"},
     {"IdxImages", "split = \"train\"\nfolder = \"mnist\""},
     {"CifarBinary", "layout = \"cifar10\"\nmean = [0.49, 0.48, 0.45]\nstd = [0.25, 0.24, 0.26]"},
     {"SocketStream", "path = \"/tmp/samples.sock\"\nepoch_samples = 10000"},
     {"TarShards",
      "file = \"shards/*.tar\"\ntensors = { image = \"png\", label = \"cls\" }\n"
      "height = 28\nwidth = 28\nchannels = 1\nshuffle_buffer = 8"},
     {"TextTokens", "file = \"input.txt\"\nfolder = \"shakespeare\"\ncontext = 64"},
     {"TokenizedText",
      "file = \"input.txt\"\nfolder = \"shakespeare\"\nvocabulary = \"words\"\ncontext = 64"},
     {"TokenBin", "file = \"tokens.bin\"\ncontext = 64\ndtype = \"uint16\""},
     {"CsvTable",
      "file = \"flowers.csv\"\nlabel_column = \"species\"\nlabel_type = \"category\"\n"
      "scale = \"standard\"\nsplit = { part = \"train\", val = 0.2 }"},
     {"ArrayFiles",
      "arrays = { image = \"images.npy\", label = { file = \"labels.safetensors\", entry = \"y\" } "
      "}"},
     {"AudioFolder",
      "root = \"sounds\"\nframes = 4096\nsample_rate = 8000\nspectrogram = \"log_mel\""},
     {"ImageFolder",
      "root = \"pictures\"\nheight = 28\nwidth = 28\nchannels = 1\ncrop = \"random\"\nflip = 0.5"},
     {"Shapes", "size = 1000\nside = 32\nmost_shapes = 3"},
     {"Waves", "size = 1000\nwindow = 48\nhorizon = 8"},
     {"LmdbRecords", "file = \"records.mdb\"\ntensors = { features = \"npy\", label = \"cls\" }"},
     {"Subset", "of = { Glyphs = { size = 8000 } }\nfrom = 1000\ncount = 500"},
     {"Concat", "parts = [{ Glyphs = { size = 400 } }, { Glyphs = { size = 400, seed = 1 } }]"},
     {"Interleave",
      "parts = [{ Glyphs = { size = 400 } }, { Glyphs = { size = 400, noise = 0.3 } }]\n"
      "shares = [3, 1]"},
     {"SampleRing", "capacity = 4096\nmin_samples = 256\ndraw = \"priority\""},
     {"Windows",
      "parts = [{ CsvTable = { file = \"measured.csv\", label_column = \"\" } }]"
      "\nlength = 8\nhorizon = 2"}}};

const ExampleFamily kOptimizersExamples = {
    "optimizer",
    "[trainer.init.optimizer.{0}]\n{1}\n",
    "[trainer.init.optimizer.{0}]\n",
    {{"AdaBelief", "lr = 1e-3\nweight_decay = 1e-2"},
     {"Adadelta", "lr = 1.0\nrho = 0.95"},
     {"Adafactor", "lr = 1e-2"},
     {"Adagrad", "lr = 1e-2"},
     {"Adam", "lr = 1e-3\nbetas = [0.9, 0.99]"},
     {"AdamW",
      "lr = 2e-3\nweight_decay = 0.05\ndecay_biases_and_norms = false\n"
      "params = [{ params = [\"layer0.*\"], lr = 1e-3 }]"},
     {"Adamax", "lr = 2e-3"},
     {"ASGD", "lr = 1e-2\nt0 = 1000.0"},
     {"DecoupledAdamW", "lr = 1e-3\nweight_decay = 1e-5"},
     {"DecoupledSGDW", "lr = 0.1\nmomentum = 0.9\nweight_decay = 5e-4"},
     {"LAMB", "lr = 2e-3\nweight_decay = 0.01"},
     {"LARS", "lr = 0.1\nmomentum = 0.9\ntrust_coefficient = 1e-3"},
     {"Lion", "lr = 1e-4\nweight_decay = 0.1"},
     {"Muon", "lr = 0.02\nadamw_lr = 3e-4\nadamw = [\"layer1.*\"]"},
     {"NAdam", "lr = 2e-3"},
     {"RAdam", "lr = 1e-3"},
     {"RMSprop", "lr = 1e-3\nmomentum = 0.9"},
     {"Rprop", "lr = 1e-2"},
     {"SGD", "lr = 0.1\nmomentum = 0.9\nnesterov = true"}}};

const ExampleFamily kSchedulersExamples = {
    "scheduler",
    "[[trainer.init.schedulers]]\n{0} = {{ {1} }}\n",
    "",
    {{"ConstantLR", "learning_rate = 0.05"},
     {"CosineAnnealingLR", "initial_learning_rate = 0.1, T_max = 0.25, eta_min = 0.001"},
     {"CosineAnnealingWarmRestarts", "initial_learning_rate = 0.1, T_0 = 0.2, T_mult = 2.0"},
     {"CosineDecayLR", "initial_learning_rate = 0.1, end_learning_rate = 0.001, warmup = 0.1"},
     {"CyclicLR", "base_lr = 0.01, max_lr = 0.1, step_size_up = 0.1, mode = \"triangular2\""},
     {"ExponentialLR", "initial_learning_rate = 0.1, decay_rate = 0.5, total_iters = \"1ep\""},
     {"InverseExponentialTimeDecayLR",
      "initial_learning_rate = 0.1, decay_rate = 0.5, total_iters = \"1ep\""},
     {"InverseSquareRootDecayLR", "initial_learning_rate = 0.1, warmup_steps = 100, warmup = 100"},
     {"LinearLR", "initial_learning_rate = 0.1, end_learning_rate = 0.01, total_iters = 0.8"},
     {"MultiplicativeLR", "initial_learning_rate = 0.1, coefficient = 0.99"},
     {"MultiStepLR", "initial_learning_rate = 0.1, milestones = [0.5, 0.75], gamma = 0.1"},
     {"OneCycleLR", "initial_learning_rate = 0.01, max_lr = 0.1, pct_start = 0.4"},
     {"PiecewiseConstantLR", "learning_rates = [0.01, 0.1, 0.001], milestones = [0.1, 0.8]"},
     {"PolynomialLR", "initial_learning_rate = 0.1, end_learning_rate = 0.01, power = 2.0"},
     {"ReduceLROnPlateau",
      "initial_learning_rate = 0.1, metric = \"val/loss\", patience = 2, factor = 0.5"},
     {"StepLR", "initial_learning_rate = 0.1, step_size = \"1ep\", gamma = 0.5"},
     {"WarmupStableDecayLR",
      "learning_rate = 0.1, warmup_iters = 0.1, decay_iters = 0.2, decay = \"sqrt\""},
     {"ChainedScheduler",
      "[[trainer.init.schedulers]]\nChainedScheduler = { schedulers = [\n"
      "  { LinearLR = { initial_learning_rate = 0.1, end_learning_rate = 0.05 } },\n"
      "  { ExponentialLR = { initial_learning_rate = 0.1, decay_rate = 0.9 } },\n] }\n"},
     {"ProductLR",
      "[[trainer.init.schedulers]]\nProductLR = { schedulers = [\n"
      "  { CosineDecayLR = { initial_learning_rate = 0.1 } },\n"
      "  { StepLR = { initial_learning_rate = 1.0, step_size = \"1ep\", gamma = 0.9 } },\n] }\n"},
     {"SequentialLR",
      "[[trainer.init.schedulers]]\nSequentialLR = { schedulers = [\n"
      "  { LinearLR = { initial_learning_rate = 0.0, end_learning_rate = 0.1, total_iters = 0.1 } "
      "},\n"
      "  { CosineDecayLR = { initial_learning_rate = 0.1, total_iters = 0.9 } },\n] }\n"}}};

const ExampleFamily kSparsityExamples = {
    "sparsity algorithm",
    "[trainer.init.sparsity]\nsparsity = {{ from = 0.2, to = 0.8 }}\n"
    "algorithm = {{ {0} = {{ {1} }} }}\nupdate = {{ every = 100 }}\n",
    "[trainer.init.sparsity]\nsparsity = {{ from = 0.2, to = 0.8 }}\n"
    "algorithm = \"{0}\"\nupdate = {{ every = 100 }}\n",
    {{"Static", "[trainer.init.sparsity]\nsparsity = 0.5\nalgorithm = \"Static\"\n"},
     {"GMP", ""},
     {"SET", "drop_fraction = 0.2"},
     {"RigL", "drop_fraction = 0.3, decay = \"cosine\""}}};

const ExampleFamily kStepsExamples = {
    "step",
    "[trainer.init.step.{0}]\n{1}\n",
    "[trainer.init.step.{0}]\n",
    {{"StandardStep", ""},
     {"Sam", "rho = 0.05"},
     {"Distillation",
      "teacher = { name = \"Mlp\", sizes = [784, 512, 10] }\ntemperature = 2.0\nweight = 0.5"}}};

const ExampleFamily kMetricsExamples = {"metric",
                                        "[[trainer.init.metrics]]\n{0} = {{ {1} }}\n",
                                        "[[trainer.init.metrics]]\n{0} = true\n",
                                        {{"Accuracy", "top_k = 5, label = \"top5\""},
                                         {"ConfusionMatrix", "classes = 10"},
                                         {"Precision", "classes = 10, average = \"macro\""},
                                         {"Recall", "classes = 10, average = \"macro\""},
                                         {"F1", "classes = 10, average = \"weighted\""},
                                         {"IoU", "classes = 4, target = \"mask\""},
                                         {"Mean", "output = \"loss\", label = \"mean_loss\""},
                                         {"Auroc", "classes = 10"},
                                         {"AveragePrecision", "classes = 10"},
                                         {"MeanSquaredError", "output = \"prediction\""},
                                         {"RootMeanSquaredError", "output = \"prediction\""},
                                         {"MeanAbsoluteError", "output = \"prediction\""},
                                         {"R2", "output = \"prediction\""},
                                         {"Perplexity", ""},
                                         {"BitsPerByte", "bytes_per_token = 1.0"}}};

const ExampleFamily kAlgorithmsExamples = {
    "algorithm",
    "[[trainer.init.algorithms]]\n{0} = {{ {1} }}\n",
    "[[trainer.init.algorithms]]\n{0} = true\n",
    {{"ChannelsLast", ""},
     {"ColOut", "p_row = 0.15, p_col = 0.15"},
     {"CutMix", "alpha = 1.0"},
     {"CutOut", "num_holes = 1, length = 0.5"},
     {"GradientClipping", "clipping_type = \"norm\", clipping_threshold = 1.0"},
     {"GyroDropout", "p = 0.3, sigma = 256, tau = 16"},
     {"LabelSmoothing", "smoothing = 0.1"},
     {"LayerFreezing", "freeze_start = 0.5, freeze_level = 1.0"},
     {"MixUp", "alpha = 0.2"},
     {"NoOpModel", ""},
     {"ProgressiveResizing", "initial_scale = 0.5, delay_fraction = 0.5, size_increment = 4"},
     {"RandAugment", "severity = 9, depth = 2"},
     {"AugMix", "severity = 3, width = 3"},
     {"SelectiveBackprop", "start = 0.5, end = 0.9, keep = 0.5"},
     {"SeqLengthWarmup", "duration = 0.3, min_seq_length = 8, max_seq_length = 64"},
     {"StochasticDepth", "layers = [\"stage*_block*.norm2\"], drop_rate = 0.2"},
     {"BlurPool", "min_channels = 16"},
     {"SqueezeExcite", "min_channels = 16, latent_channels = 8"},
     {"GhostBatchNorm", "ghost_batch_size = 16"},
     {"WeightStandardization", "n_last_layers_ignore = 0"},
     {"Factorize", "min_features = 16, latent_features = 8"},
     {"LowPrecisionLayerNorm", ""},
     {"LowPrecisionGroupNorm", ""}}};

const ExampleFamily kCallbacksExamples = {
    "callback",
    "[[trainer.init.callbacks]]\n{0} = {{ {1} }}\n",
    "[[trainer.init.callbacks]]\n{0} = true\n",
    {{"Alert", "metric = \"val/loss\", when = \"> 3.0\", level = \"error\", then = \"stop\""},
     {"AugmentImages", "flip = 0.5, shift = 2"},
     {"AverageWeights", "kind = \"ema\", decay = 0.999"},
     {"CheckGradients",
      "[trainer.init]\nbackend = { mode = \"eager\" }\nprecision = { dtype = \"fp64\" }\n"
      "callbacks = [{ CheckGradients = { elements = 4 } }]\n"},
     {"ComputeNorm", ""},
     {"CountParams", "order_by = \"elements\", descending = true"},
     {"EarlyStopper", "metric = \"val/loss\", patience = \"3ep\", min_delta = 1e-4"},
     {"Evaluator", "loader = \"val\", metrics = [{ Recall = { classes = 10 } }], every_n_vals = 2"},
     {"ExportForInference", "file = \"model.ts\", format = \"torchscript\""},
     {"FlopUtilization", ""},
     {"GlobalFlags", "deterministic_algorithms = true"},
     {"GradientNoiseScale", "smoothing = 0.95"},
     {"HangWatchdog", "timeout_s = 600.0, then = \"abort\""},
     {"ImageVisualizer", "input = \"image\", count = 4, every = 500"},
     {"KeepBestCheckpoints", "metric = \"val/loss\", n = 3"},
     {"KeepNCheckpoints", "n = 3"},
     {"LoadCheckpointStates", "states = [\"model\"]"},
     {"LogInputSummaries", ""},
     {"LogOptimizerParamGroup", "keys = [\"lr\", \"weight_decay\"]"},
     {"LogSparsity",
      "[trainer.init]\nsparsity = { sparsity = 0.5 }\ncallbacks = [{ LogSparsity = true }]\n"},
     {"Lora", "modules = [\"layer*\"], rank = 8, alpha = 16.0"},
     {"MemoryMonitor", ""},
     {"MemorySnapshot", "after = 5"},
     {"NanPolicy", "then = \"roll_back\", most = 3, lr_factor = 0.5"},
     {"NormalizeInputs", "input = \"image\", shape = [1, 28, 28]"},
     {"NotifyCommand", "command = \"cat >> messages.txt\""},
     {"NotifyMail",
      "server = \"smtp://mail.example.org:587\", from = \"rondo@example.org\", to = "
      "[\"you@example.org\"], user = \"you\", password = \"env:MAIL_PASSWORD\""},
     {"NotifyWebhook", "url = \"env:SLACK_WEBHOOK\""},
     {"OpProfiler", "wait = 5, warmup = 10, active = 20"},
     {"OptimizerMonitor", "only_global = true"},
     {"RunTimeLimit", "limit_s = 3600.0"},
     {"RuntimeEstimator", "time_unit = \"minutes\""},
     {"SampleText", "length = 200, temperature = 0.8, prompt = \"The \""},
     {"SaveCheckpointState", "k = 2, states = [\"model\"]"},
     {"SavePerformanceData", ""},
     {"SaveScript", "file = \"trained.ts\""},
     {"ScopedTrainFlags", "deterministic_algorithms = true"},
     {"ScopedValidateFlags", "deterministic_algorithms = true"},
     {"SelectiveGrad", "share = 0.1"},
     {"SkipSamples", "samples = 640, after = 500"},
     {"SpeedMonitor", "window = 50, time_unit = \"minutes\""},
     {"SystemMetricsMonitor", ""},
     {"SummaryTensorListener", "tensor_names = [\"grad/*\"]"},
     {"NormTensorListener", "tensor_names = [\"param/*\", \"grad/*\"]"},
     {"DumpAvailableTensorNames", ""},
     {"DumpActivations", "tensor_names = [\"output/*\"], steps = 2"},
     {"ThresholdStopper", "metric = \"val/accuracy\", threshold = 0.99"},
     {"VerifyNumerics", ""}}};

const ExampleFamily kLoggersExamples = {
    "logger",
    "[[trainer.init.loggers]]\n{0} = {{ {1} }}\n",
    "[[trainer.init.loggers]]\n{0} = true\n",
    {{"CsvLogger", "path = \"metrics.csv\", log_steps = 100"},
     {"InMemoryLogger", "log_steps = 10"},
     {"JsonlLogger", "exclude = [\"l2_norm/*\"]"},
     {"ProgressLogger", "log_steps = \"1ep\""},
     {"RecordLogger", "exclude = [\"l2_norm/*/0.*\"]"},
     {"TensorBoardLogger", "summary_dir = \"events\", log_steps = 50"}}};

/// Sections of [trainer.init], by the key that holds them.
const ExampleFamily kTrainerExamples = {
    "trainer",
    "[trainer.init.{0}]\n{1}\n",
    "[trainer.init.{0}]\n",
    {{"backend", "mode = \"traced\"\nthreads = \"auto\"\non_nan = \"explain\""},
     {"distributed", "virtual_ranks = 2"},
     {"precision", "dtype = \"bf16\"\nmax_gradient_norm = 1.0"},
     {"sparsity", "sparsity = { from = 0.0, to = 0.8 }\nalgorithm = \"RigL\""},
     {"loop", "max_duration = \"3ep\"\neval_frequency = \"1ep\"\ngrad_accum_steps = 2"},
     {"checkpoint", "steps = 500\nasync = true"},
     {"logging", "log_steps = 50\nlog_level = \"warning\""},
     {"autorestart", "max_num_restarts = 3"},
     {"init",
      "[trainer.init]\n"
      "model_dir = \"runs/glyphs\"\n"
      "seed = 1\n"
      "model = { name = \"Mlp\", sizes = [784, 256, 10] }\n"
      "optimizer = { AdamW = { lr = 2e-3 } }\n"
      "loop = { max_steps = 1000, eval_frequency = 250 }\n"
      "metrics = [{ F1 = { classes = 10 } }]\n"
      "callbacks = [{ EarlyStopper = { metric = \"val/loss\", patience = \"5ep\" } }]\n"},
     {"loader",
      "[trainer.fit.train_dataloader]\n"
      "label = \"train\"\n"
      "dataset = \"Glyphs\"\n"
      "size = 8000\n"
      "batch_size = 64\n"
      "shuffle = true\n"},
     {"fit",
      "[trainer.fit]\n"
      "train_dataloader = { label = \"train\", dataset = \"Glyphs\", batch_size = 64, shuffle = "
      "true }\n"
      "val_dataloader = [{ label = \"val\", dataset = \"Glyphs\", split = \"val\", batch_size = 64 "
      "}]\n"},
     {"validate",
      "[trainer.validate]\nval_dataloader = \"val\"\nckpt_path = "
      "\"runs/glyphs/checkpoint_1000.pt\"\n"},
     {"validate_all",
      "[trainer.validate_all]\n"
      "val_dataloaders = [\"val\"]\n"
      "ckpt_paths = [\"runs/glyphs/checkpoint_*.pt\"]\n"},
     {"predict",
      "[trainer.predict]\n"
      "dataloader = { dataset = \"Glyphs\", split = \"val\", batch_size = 64 }\n"
      "subset_num_batches = 10\n"}}};

const std::vector<const ExampleFamily*>& example_families() {
  static const std::vector<const ExampleFamily*> all = {&kModelsExamples,
                                                        &kLossesExamples,
                                                        &kDatasetsExamples,
                                                        &kOptimizersExamples,
                                                        &kSchedulersExamples,
                                                        &kSparsityExamples,
                                                        &kStepsExamples,
                                                        &kMetricsExamples,
                                                        &kAlgorithmsExamples,
                                                        &kCallbacksExamples,
                                                        &kLoggersExamples,
                                                        &kTrainerExamples};
  return all;
}

std::string example_from(const ExampleFamily& family,
                         std::string_view name,
                         std::string_view keys) {
  if (keys.rfind('[', 0) == 0) {
    return std::string(keys);
  }
  return fmt::format(fmt::runtime(keys.empty() ? family.without_keys : family.form), name, keys);
}

}  // namespace

std::string example_of(std::string_view family, std::string_view name) {
  for (const ExampleFamily* one : example_families()) {
    const auto found = one->examples.find(name);
    if (one->name == family && found != one->examples.end()) {
      return example_from(*one, found->first, found->second);
    }
  }
  return "";
}

}  // namespace rondo
