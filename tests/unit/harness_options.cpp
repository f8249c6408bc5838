// The command line of a rung: defaults, values, and everything that is refused before anything runs.

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "common/harness/npy.h"
#include "common/harness/options.h"
#include "common/harness/user_error.h"
#include "tests/catch.h"

using namespace ladder;
using test::contains;

namespace {

Rung rung(int64_t fixed_k = 0) {
  return {.name = "step99_test",
          .title = "a rung of no consequence",
          .blackwell = {{"plain", nullptr, "as it is"}, {"other", nullptr, "as it is not"}},
          .hopper = {},
          .tile_m = 128,
          .tile_n = 256,
          .tile_k = 16,
          .fixed_k = fixed_k};
}

CommandLine parse(const std::vector<std::string>& arguments, const Rung& of = rung()) {
  std::vector<const char*> pointers = {"step99_test"};
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  return parse_command_line(of, static_cast<int>(pointers.size()), pointers.data());
}

Options options(const std::vector<std::string>& arguments) {
  return parse(arguments).options.value();
}

std::string refusal(const std::vector<std::string>& arguments, const Rung& of = rung()) {
  try {
    parse(arguments, of);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

class Files {
 public:
  Files() : folder_(std::filesystem::temp_directory_path() / ("ladder-options-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(folder_);
  }
  ~Files() { std::filesystem::remove_all(folder_); }
  std::string matrix(const std::string& name, int64_t rows, int64_t cols, DType type) const {
    HostMatrix zero(rows, cols, type);
    std::memset(zero.data(), 0, zero.size_bytes());
    write_npy(folder_ / name, zero);
    return (folder_ / name).string();
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace

TEST_CASE("an empty command line is a plain run of a comfortable size") {
  const Options plain = options({});
  CHECK(plain.shape == Shape{1024, 1024, 1024});
  CHECK(plain.in == DType::f16);
  CHECK(plain.out == DType::f16);
  CHECK(plain.input == Input::random);
  CHECK(plain.on == "auto");
  CHECK_FALSE(plain.check);
  CHECK_FALSE(plain.time_limit_s.has_value());
  CHECK(parse({}, rung(16)).options.value().shape == Shape{1024, 1024, 16});
}

TEST_CASE("values reach the options") {
  const Options all = options({"--m",
                               "3",
                               "--n=40",
                               "--k",
                               "56",
                               "--dtype",
                               "bf16",
                               "--out-dtype",
                               "f32",
                               "--variant",
                               "other",
                               "--seed",
                               "18446744073709551615",
                               "--input",
                               "integer",
                               "--check",
                               "--bench",
                               "--json",
                               "--guard",
                               "--where",
                               "--on",
                               "b200",
                               "--time-limit",
                               "1.5"});
  CHECK(all.shape == Shape{3, 40, 56});
  CHECK(all.in == DType::bf16);
  CHECK(all.out == DType::f32);
  CHECK(all.variant == "other");
  CHECK(all.seed == UINT64_MAX);
  CHECK(all.input == Input::integer);
  CHECK((all.check && all.bench && all.json && all.guard && all.where));
  CHECK(all.on == "b200");
  CHECK(all.time_limit_s == 1.5);
  CHECK(options({"--dtype", "bf16"}).out == DType::bf16);
  CHECK(options({"--input", "position"}).out == DType::f32);
}

TEST_CASE("shapes by numbers and by name") {
  CHECK(options({"--shape", "1x8x16"}).shape == Shape{1, 8, 16});
  CHECK(options({"--shape", "square-4096"}).shape == Shape{4096, 4096, 4096});
  CHECK(options({"--shape", "prefill-attn-out"}).shape == Shape{8192, 8192, 8192});
  CHECK(options({"--shape", "prefill-mlp-up"}).shape == Shape{8192, 28672, 8192});
  CHECK(options({"--shape", "decode-attn-out"}).shape == Shape{256, 8192, 8192});
  CHECK(options({"--shape", "decode-qkv"}).shape == Shape{256, 10240, 8192});
  CHECK(options({"--shape", "decode-mlp-up"}).shape == Shape{256, 28672, 8192});
  CHECK(options({"--shape", "decode-mlp-down"}).shape == Shape{256, 8192, 28672});
  CHECK_THAT(refusal({"--shape", "1x2"}), contains("--shape 1x2") && contains("decode-qkv"));
  CHECK_THAT(refusal({"--shape", "1x8x16x"}), contains("not a shape"));
  CHECK_THAT(refusal({"--shape", "1x8x16", "--k", "16"}), contains("twice"));
}

TEST_CASE("shapes that TMA or the rung cannot take are refused with the rule and a shape that works") {
  CHECK_THAT(refusal({"--k", "12"}), contains("K = 12") && contains("16 bytes") && contains("8 or 16"));
  CHECK_THAT(refusal({"--n", "4"}), contains("N = 4") && contains("take 8"));
  CHECK_THAT(refusal({"--m", "0"}), contains("M = 0") && contains("at least 1"));
  CHECK_THAT(refusal({"--n", "-8"}), contains("N = -8"));
  CHECK_THAT(refusal({"--m", "2147483648"}), contains("2147483647"));
  CHECK_THAT(refusal({"--k", "32"}, rung(16)), contains("K = 32") && contains("must be 16"));
  CHECK(refusal({"--m", "1", "--n", "8", "--k", "8"}) == "accepted");
  CHECK(refusal({"--m", "2147483647", "--n", "8", "--k", "8"}) == "accepted");
}

TEST_CASE("every other mistake has its own line") {
  for (const auto& [arguments, parts] : std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>>{
           {{"--shpae", "1x8x8"}, {"--shpae", "did you mean --shape?"}},
           {{"--frobnicate"}, {"--frobnicate", "--help"}},
           {{"-q"}, {"-q", "no such option"}},
           {{"stray"}, {"stray", "without an option"}},
           {{"--m"}, {"--m"}},
           {{"--m", "many"}, {"--m many", "whole number"}},
           {{"--m", "1.5"}, {"--m 1.5", "whole number"}},
           {{"--m", "99999999999999999999"}, {"too large"}},
           {{"--m", "1", "--m", "2"}, {"--m"}},
           {{"--check=3"}, {"check"}},
           {{"--seed", "-1"}, {"--seed -1"}},
           {{"--dtype", "f32"}, {"--dtype f32", "f16 or bf16"}},
           {{"--out-dtype", "f64"}, {"--out-dtype f64", "f16, bf16 or f32"}},
           {{"--dtype", "bf16", "--out-dtype", "f16"}, {"--out-dtype f16 with bf16"}},
           {{"--input", "zeros"}, {"--input zeros", "position"}},
           {{"--input", "position", "--out-dtype", "f16"}, {"24 bits", "leave --out-dtype out"}},
           {{"--on", "b300"}, {"--on b300", "b200 or h200"}},
           {{"--variant", "fast"}, {"--variant fast", "plain, other"}},
           {{"--time-limit", "0"}, {"--time-limit 0"}},
           {{"--time-limit", "soon"}, {"--time-limit soon"}},
           {{"--time-limit", "nan"}, {"--time-limit nan"}},
           {{"--round"}, {"--round"}},
           {{"--out", "/nowhere/d.npy"}, {"/nowhere"}},
           {{"--out", "/tmp"}, {"is a folder"}},
           {{"--a", "a.npy"}, {"--a a.npy without --b"}},
           {{"--b", "b.npy"}, {"--b b.npy without --a"}},
           {{"--a", "", "--b", "b.npy"}, {"--a", "empty"}},
           {{"--a", "/nowhere/a.npy", "--b", "/nowhere/b.npy"}, {"/nowhere/a.npy", "cannot be read"}}}) {
    const std::string said = refusal(arguments);
    CAPTURE(arguments);
    CHECK(said.find('\n') == std::string::npos);
    for (const std::string& part : parts) CHECK_THAT(said, contains(part));
  }
}

TEST_CASE("matrices from files bring shape and type") {
  const Files files;
  const std::string a = files.matrix("a.npy", 5, 16, DType::f16), b = files.matrix("b.npy", 24, 16, DType::f16);
  const std::string a_bf16 = files.matrix("a16.npy", 5, 16, DType::bf16);
  const std::string b_bf16 = files.matrix("b16.npy", 24, 16, DType::bf16);
  const std::string a_f32 = files.matrix("a32.npy", 5, 16, DType::f32),
                    b_f32 = files.matrix("b32.npy", 24, 16, DType::f32);
  const Options plain = options({"--a", a, "--b", b});
  CHECK(plain.shape == Shape{5, 24, 16});
  CHECK(plain.in == DType::f16);
  CHECK(plain.input == Input::file);
  CHECK(options({"--a", a_bf16, "--b", b_bf16}).in == DType::bf16);
  CHECK(options({"--a", a_f32, "--b", b_f32, "--round"}).in == DType::f16);
  CHECK(options({"--a", a_f32, "--b", b_f32, "--round", "--dtype", "bf16"}).in == DType::bf16);
  CHECK(options({"--a", a_f32, "--b", b_bf16, "--round"}).in == DType::bf16);
  CHECK(options({"--a", a, "--b", b, "--m", "5", "--n", "24"}).shape == Shape{5, 24, 16});

  CHECK_THAT(refusal({"--a", a_f32, "--b", b_f32}), contains("float32") && contains("--round"));
  CHECK_THAT(refusal({"--a", a, "--b", b_bf16}), contains("b16.npy") && contains("one type"));
  CHECK_THAT(refusal({"--a", a, "--b", b, "--dtype", "bf16"}), contains("--dtype says bf16"));
  CHECK_THAT(refusal({"--a", a, "--b", b, "--m", "6"}), contains("5 x 24 x 16"));
  CHECK_THAT(refusal({"--a", a, "--b", b, "--shape", "5x24x24"}), contains("5 x 24 x 16"));
  CHECK_THAT(refusal({"--a", a, "--b", b, "--input", "integer"}), contains("leave --input out"));
  CHECK_THAT(refusal({"--a", a, "--b", files.matrix("c.npy", 24, 8, DType::f16)}),
             contains("24 x 8") && contains("5 x 16"));
  CHECK_THAT(refusal({"--a", a, "--b", a}), contains("N = 5"));
}

TEST_CASE("help names every option, shape and variant") {
  const CommandLine line = parse({"--help"});
  REQUIRE_FALSE(line.options.has_value());
  for (const char* part :
       {"--shape", "--m",     "--dtype",      "--out-dtype", "--variant",       "--seed",       "--input",
        "--a",     "--b",     "--out",        "--round",     "--check",         "--bench",      "--json",
        "--on",    "--guard", "--time-limit", "--where",     "decode-mlp-down", "as it is not", "Exit status"}) {
    CHECK_THAT(line.help, contains(part));
  }
}

TEST_CASE("variants by settings: the rung says which it takes, and help lists them") {
  Rung set = rung();
  set.blackwell_settings = {
      .variant = [](const std::string& name) -> Variant {
        if (name != "speed=2,colour=red") throw UserError("no " + name);
        return {name, nullptr, ""};
      },
      .settings = {{"speed", {"auto", "1..3"}, "how fast"}, {"colour", {"red", "blue"}, "which"}}};
  CHECK(parse({"--variant", "speed=2,colour=red"}, set).options.value().variant == "speed=2,colour=red");
  CHECK(parse({"--variant", "other"}, set).options.value().variant == "other");
  CHECK(refusal({"--variant", "speed=4"}, set) == "no speed=4");
  CHECK(refusal({"--variant", "fast"}, set) ==
        "--variant fast: step99_test has no such variant; it has plain, other, and what its settings make (--help)");
  CHECK(refusal({"--variant", "speed=2"}) == "--variant speed=2: step99_test has no such variant; it has plain, other");
  const std::string help = parse({"--help"}, set).help;
  CHECK_THAT(help, contains("    speed=auto|1..3          how fast (default auto)\n"));
  CHECK_THAT(help, contains("    colour=red|blue          which (default red)\n"));
  CHECK_THAT(parse({"--help"}).help, !contains("settings"));
}
