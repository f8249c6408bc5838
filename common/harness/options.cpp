#include "common/harness/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "common/harness/npy.h"
#include "common/harness/user_error.h"

namespace ladder {
namespace {

/// Every value as typed: conversions are ours, so that every refusal can name the value, the rule and the way out.
struct Typed {
  std::string m, n, k, shape, dtype, out_dtype, variant, seed, input, a, b, out, on, time_limit;
  bool round = false, check = false, bench = false, json = false, guard = false, where = false;
};

template <class Number>
Number whole_number(const char* option, const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    throw UserError(fmt::format("{} {}: too large for a 64-bit number", option, text));
  }
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw UserError(
        fmt::format("{} {}: not a whole number{}", option, text, std::is_unsigned_v<Number> ? " of at least 0" : ""));
  }
  return value;
}

template <class Value>
Value one_of(const char* option, const std::string& text, const std::vector<std::pair<const char*, Value>>& choices) {
  std::string names;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (text == choices[i].first) return choices[i].second;
    names += fmt::format("{}{}", i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ", choices[i].first);
  }
  throw UserError(fmt::format("{} {}: must be {}", option, text, names));
}

std::string variants_text(const std::vector<Variant>& variants) {
  std::string text;
  for (const Variant& variant : variants) {
    text +=
        fmt::format("    {:<24} {}{}\n", variant.name, variant.what, &variant == &variants.front() ? " (default)" : "");
  }
  return text;
}

std::string settings_text(const std::vector<Setting>& settings) {
  if (settings.empty()) return "";
  std::string text = "Or by settings, NAME=VALUE with commas between them:\n";
  for (const Setting& setting : settings) {
    text +=
        fmt::format("    {:<24} {} (default {})\n", fmt::format("{}={}", setting.name, fmt::join(setting.values, "|")),
                    setting.what, setting.values.front());
  }
  return text;
}

std::string footer(const Rung& rung) {
  std::string text = "Shapes with a name:\n";
  for (const NamedShape& named : named_shapes()) {
    text += fmt::format("    {:<24} {:<22} {}\n", named.name, to_string(named.shape), named.use);
  }
  text += "Variants on Blackwell:\n" + variants_text(rung.blackwell);
  text += settings_text(rung.blackwell_settings.settings);
  if (!rung.hopper.empty()) text += "Variants on Hopper:\n" + variants_text(rung.hopper);
  text += settings_text(rung.hopper_settings.settings);
  text += "Exit status: 0 good, 1 a mismatch or a failed run, 2 bad input.";
  return text;
}

void declare(CLI::App& app, Typed& typed) {
  const auto value = [&](const char* name, std::string& target, const char* type, const char* what) {
    app.add_option(name, target, what)->type_name(type);
  };
  value("--m", typed.m, "M", "rows of A and D");
  value("--n", typed.n, "N", "rows of B, columns of D (a multiple of 8)");
  value("--k", typed.k, "K", "columns of A and B (a multiple of 8)");
  value("--shape", typed.shape, "MxNxK", "all three, as in 4096x4096x4096, or a name from the list below");
  value("--dtype", typed.dtype, "f16|bf16", "type of A and B (default f16)");
  value("--out-dtype", typed.out_dtype, "f16|bf16|f32", "type of D: that of A and B (default), or f32 as accumulated");
  value("--variant", typed.variant, "NAME", "which form of the kernel, from the list below");
  value("--seed", typed.seed, "N", "seed of the generated matrices (default 1)");
  value(
      "--input", typed.input, "KIND",
      "random (normal numbers, default), integer (exact, compared with ==) or position (D says what arrived; f32 out)");
  value("--a", typed.a, "A.npy", "read A: float16, or bf16 as uint16, or float32 with --round");
  value("--b", typed.b, "B.npy", "read B, stored as N rows of K");
  value("--out", typed.out, "D.npy", "write D (bf16 as uint16)");
  value("--on", typed.on, "WHERE",
        "auto (default: a GPU that can run this, else an emulated B200), gpu, b200 or h200 "
        "(emulated chips)");
  value("--time-limit", typed.time_limit, "SECONDS",
        "most time a kernel may take (default 20 on a GPU, none emulated)");
  const auto flag = [&](const char* name, bool& target, const char* what) {
    app.add_flag(name, target, what)->disable_flag_override();  // no --check=3
  };
  flag("--round", typed.round, "round float32 files to --dtype, to nearest even");
  flag("--check", typed.check, "compare D with references that share no code with the kernel or the emulator");
  flag("--bench", typed.bench, "time repeated launches");
  flag("--json", typed.json, "print one JSON object instead of text");
  flag("--guard", typed.guard, "run the build whose waits are bounded and trap naming their barrier");
  flag("--where", typed.where,
       "run nothing: say in JSON on what this would run, and which variants there are for that");
}

/// The option that was probably meant.
std::string nearest_option(const CLI::App& app, const std::string& typed) {
  const auto distance = [](const std::string& a, const std::string& b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= b.size(); ++j) {
        const size_t above = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
        diagonal = above;
      }
    }
    return row[b.size()];
  };
  std::string best;
  size_t best_distance = std::min<size_t>(3, typed.size() / 2);
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const size_t d = distance(typed, name);
    if (d < best_distance) {
      best = name;
      best_distance = d;
    }
  }
  return best;
}

/// What CLI11 would say in its own way: an option twice, or without its value.
void check_values(const CLI::App& app, std::span<const char* const> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string name = arguments[i];
    const CLI::Option* option = name.starts_with("--") ? app.get_option_no_throw(name) : nullptr;
    if (option == nullptr || option->get_expected_min() == 0) continue;
    const auto again = std::find(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end(), name);
    if (again != arguments.end()) throw UserError(fmt::format("{}: given more than once", name));
    if (i + 1 == arguments.size() || std::string_view(arguments[i + 1]).starts_with("--")) {
      throw UserError(fmt::format("{0}: its value is missing, as in {0} {1}", name, option->get_type_name()));
    }
  }
}

[[noreturn]] void refuse_unknown(const CLI::App& app, const std::string& what) {
  const std::string name = what.substr(0, what.find('='));
  if (!name.starts_with("-")) {
    throw UserError(fmt::format("{}: an argument without an option; --help lists the options", name));
  }
  const std::string meant = nearest_option(app, name);
  throw UserError(fmt::format("{}: no such option; {}--help lists them", name,
                              meant.empty() ? "" : fmt::format("did you mean {}? ", meant)));
}

void read_dimensions(const Typed& typed, const Rung& rung, Options& options) {
  const int64_t default_k = rung.fixed_k != 0 ? rung.fixed_k : 1024;
  options.shape = {1024, 1024, default_k};
  if (!typed.shape.empty()) {
    if (!typed.m.empty() || !typed.n.empty() || !typed.k.empty()) {
      throw UserError(
          fmt::format("--shape {} and --m, --n, --k say the same thing twice; give one or the other", typed.shape));
    }
    options.shape = parse_shape(typed.shape);
  }
  if (!typed.m.empty()) options.shape.m = whole_number<int64_t>("--m", typed.m);
  if (!typed.n.empty()) options.shape.n = whole_number<int64_t>("--n", typed.n);
  if (!typed.k.empty()) options.shape.k = whole_number<int64_t>("--k", typed.k);
}

/// The type a file's elements will have on the device.
void check_file_type(const std::string& path, const NpyHeader& header, const Typed& typed, const Options& options) {
  if (header.type == DType::f32) {
    if (!options.round) {
      throw UserError(fmt::format("{}: holds float32 and tensor cores take 16 bits here; add --round to round to {}",
                                  path, name_of(options.in)));
    }
    return;
  }
  if (header.type == options.in) return;
  const bool asked = !typed.dtype.empty();
  throw UserError(fmt::format("{}: holds {} but {} {}; {}", path,
                              header.type == DType::f16 ? "float16" : "uint16, which is taken for bf16,",
                              asked ? "--dtype says" : "the other matrix is", name_of(options.in),
                              asked ? "leave --dtype out or convert the file" : "A and B must be of one type"));
}

void read_files(const Typed& typed, Options& options) {
  if (typed.a.empty() != typed.b.empty()) {
    const bool have_a = !typed.a.empty();
    throw UserError(fmt::format("{} {} without {}: give both matrices or neither", have_a ? "--a" : "--b",
                                have_a ? typed.a : typed.b, have_a ? "--b" : "--a"));
  }
  if (typed.a.empty()) {
    if (options.round)
      throw UserError("--round: only rounds float32 files, and no --a and --b are given; leave it out");
    return;
  }
  if (!typed.input.empty()) {
    throw UserError(fmt::format("--input {} and --a {}: the matrices come from the files; leave --input out",
                                typed.input, typed.a));
  }
  options.input = Input::file;
  const NpyHeader a = read_npy_header(typed.a), b = read_npy_header(typed.b);
  if (typed.dtype.empty()) options.in = a.type != DType::f32 ? a.type : b.type != DType::f32 ? b.type : DType::f16;
  check_file_type(typed.a, a, typed, options);
  check_file_type(typed.b, b, typed, options);
  if (a.cols != b.cols) {
    throw UserError(
        fmt::format("{} is {} x {} and {} is {} x {}: D = A Bᵀ needs rows of one length K in both; transpose "
                    "the one that is stored K x N",
                    typed.a, a.rows, a.cols, typed.b, b.rows, b.cols));
  }
  const Shape shape{a.rows, b.rows, a.cols};
  const bool shape_given = !typed.shape.empty();
  const auto disagrees = [&](bool given, int64_t asked, int64_t found) { return given && asked != found; };
  if (disagrees(shape_given || !typed.m.empty(), options.shape.m, shape.m) ||
      disagrees(shape_given || !typed.n.empty(), options.shape.n, shape.n) ||
      disagrees(shape_given || !typed.k.empty(), options.shape.k, shape.k)) {
    throw UserError(
        fmt::format("the files make a {} multiplication, not the one asked for; leave --m, --n, --k and "
                    "--shape out",
                    to_string(shape)));
  }
  options.shape = shape;
}

/// Whether all that `text` sets (`accumulators=1,walk=4`) is among these settings, whatever the values.
bool knows_names(const VariantsBySetting& settings, std::string_view text) {
  while (true) {
    const std::string_view name = text.substr(0, text.find_first_of("=,"));
    if (std::none_of(settings.settings.begin(), settings.settings.end(),
                     [&](const Setting& setting) { return setting.name == name; })) {
      return false;
    }
    const size_t comma = text.find(',');
    if (comma == text.npos) return true;
    text.remove_prefix(comma + 1);
  }
}

void check_variant(const Rung& rung, const std::string& variant) {
  if (variant.empty()) return;
  std::string names;
  for (const auto* variants : {&rung.blackwell, &rung.hopper}) {
    for (const Variant& known : *variants) {
      if (variant == known.name) return;
      if (names.find(known.name) == names.npos) names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
    }
  }
  // The chip is not known yet: it is enough that the settings make sense on one of them.
  std::optional<UserError> refused;
  bool by_setting = false, said_by_one_that_knows = false;
  for (const VariantsBySetting* settings : {&rung.blackwell_settings, &rung.hopper_settings}) {
    if (!settings->variant) continue;
    by_setting = true;
    for (const Setting& setting : settings->settings) {
      if (variant != setting.name) continue;
      throw UserError(fmt::format("--variant {}: a setting wants a value: {}={}", variant, setting.name,
                                  fmt::join(setting.values, "|")));
    }
    if (variant.find('=') == variant.npos) continue;
    try {
      settings->variant(variant);
      return;
    } catch (const UserError& error) {
      const bool knows = knows_names(*settings, variant);
      if (!refused || (knows && !said_by_one_that_knows)) refused = error;
      said_by_one_that_knows |= knows;
    }
  }
  if (refused) throw *refused;
  throw UserError(fmt::format("--variant {}: {} has no such variant; it has {}{}", variant, rung.name, names,
                              by_setting ? ", and what its settings make (--help)" : ""));
}

void check_writable(const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored)) {
    throw UserError(fmt::format("--out {}: there is no folder {}; make it first", path, folder.string()));
  }
  if (std::filesystem::is_directory(path, ignored)) {
    throw UserError(fmt::format("--out {}: is a folder; name a file in it", path));
  }
  const std::string written = std::filesystem::exists(path, ignored) ? path : folder.empty() ? "." : folder.string();
  if (access(written.c_str(), W_OK) != 0) {
    throw UserError(fmt::format("--out {}: cannot be written ({}); name another place", path, std::strerror(errno)));
  }
}

Options convert(const Typed& typed, const Rung& rung) {
  Options options;
  options.round = typed.round;
  options.check = typed.check;
  options.bench = typed.bench;
  options.json = typed.json;
  options.guard = typed.guard;
  options.where = typed.where;
  options.variant = typed.variant;
  options.a_path = typed.a;
  options.b_path = typed.b;
  options.out_path = typed.out;
  if (!typed.on.empty()) options.on = typed.on;
  one_of<int>("--on", options.on, {{"auto", 0}, {"gpu", 0}, {"b200", 0}, {"h200", 0}});
  if (!typed.seed.empty()) options.seed = whole_number<uint64_t>("--seed", typed.seed);
  if (!typed.dtype.empty()) {
    options.in = one_of<DType>("--dtype", typed.dtype, {{"f16", DType::f16}, {"bf16", DType::bf16}});
  }
  if (!typed.input.empty()) {
    options.input =
        one_of<Input>("--input", typed.input,
                      {{"random", Input::random}, {"integer", Input::integer}, {"position", Input::position}});
  }
  if (!typed.time_limit.empty()) {
    char* end = nullptr;
    const double seconds = std::strtod(typed.time_limit.c_str(), &end);
    if (*end != '\0' || !std::isfinite(seconds) || seconds <= 0) {
      throw UserError(fmt::format("--time-limit {}: must be a number of seconds above 0", typed.time_limit));
    }
    options.time_limit_s = seconds;
  }
  read_dimensions(typed, rung, options);
  read_files(typed, options);
  options.out = options.input == Input::position ? DType::f32 : options.in;
  if (!typed.out_dtype.empty()) {
    const DType out = one_of<DType>("--out-dtype", typed.out_dtype,
                                    {{"f16", DType::f16}, {"bf16", DType::bf16}, {"f32", DType::f32}});
    if (out != DType::f32 && out != options.in) {
      throw UserError(fmt::format("--out-dtype {} with {} inputs: D is of the inputs' type or f32", typed.out_dtype,
                                  name_of(options.in)));
    }
    if (out != DType::f32 && options.input == Input::position) {
      throw UserError(
          fmt::format("--out-dtype {} with --input position: the position code needs all 24 bits of f32; "
                      "leave --out-dtype out",
                      typed.out_dtype));
    }
    options.out = out;
  }
  check_shape(options.shape, rung.fixed_k, rung.name);
  check_variant(rung, options.variant);
  check_writable(options.out_path);
  return options;
}

}  // namespace

const char* name_of(Input input) {
  switch (input) {
    case Input::random:
      return "random";
    case Input::integer:
      return "integer";
    case Input::position:
      return "position";
    case Input::file:
      break;
  }
  return "file";
}

CommandLine parse_command_line(const Rung& rung, int argc, const char* const* argv) {
  Typed typed;
  CLI::App app{fmt::format("{}: {}\nD = A Bᵀ with A: M x K, B: N x K, D: M x N, all row-major.", rung.name, rung.title),
               rung.name};
  declare(app, typed);
  app.footer(footer(rung));
  check_values(app, std::span(argv + 1, argv + argc));
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {std::nullopt, app.help()};
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> extras = app.remaining();
    refuse_unknown(app, extras.empty() ? "?" : extras.front());
  } catch (const CLI::ParseError& error) {
    throw UserError(fmt::format("{}; --help lists the options", error.what()));
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0 && option->get_expected_min() > 0 && option->results().front().empty()) {
      throw UserError(fmt::format("{}: has an empty value; give one or leave the option out", option->get_name()));
    }
  }
  return {convert(typed, rung), {}};
}

}  // namespace ladder
