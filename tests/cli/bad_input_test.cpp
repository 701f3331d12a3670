// Wrong input gets one line that says what is wrong, exit code 2 and nothing on stdout; never a crash.
#include <algorithm>
#include <filesystem>
#include <unistd.h>

#include <gtest/gtest.h>

#include "cli/run.hpp"
#include "cli/schema.hpp"
#include "io/gguf_writer.hpp"

namespace roofline::cli::testing {
namespace {

using Arguments = std::vector<std::string>;

// One line on stderr that begins with the program's name and holds `says`.
void expect_refused(const Arguments& arguments, const std::string& says = "", const Environment& environment = {},
                    int exit_code = 2) {
    SCOPED_TRACE(typed(arguments));
    const Answer answer = run(arguments, environment);
    EXPECT_EQ(answer.exit_code, exit_code) << answer.err;
    EXPECT_EQ(answer.out, "");
    EXPECT_TRUE(answer.err.starts_with("roofline: ")) << answer.err;
    EXPECT_TRUE(answer.err.ends_with("\n")) << answer.err;
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
    EXPECT_NE(answer.err.find(says), std::string::npos) << answer.err << "should say: " << says;
    EXPECT_LT(answer.err.size(), 1000U) << answer.err;
}

Arguments predict(const Arguments& more) {
    Arguments arguments = {"predict", "llama-3.1-8b", "h100-sxm"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

const Json& sound_config() {
    static const Json config = parsed(
        R"({"model_type":"llama","hidden_size":64,"intermediate_size":128,"num_attention_heads":4,
            "num_key_value_heads":2,"num_hidden_layers":2,"vocab_size":100,"torch_dtype":"bfloat16"})");
    return config;
}

// The sound config with one value replaced by any text, valid JSON or not.
std::string config_with(const std::string& key, const std::string& text) {
    Json config = sound_config();
    config[key] = "@";
    std::string json = config.dump();
    const std::size_t at = json.find("\"@\"");
    return json.replace(at, 3, text);
}

TEST(BadInput, TheSoundConfigThatTheseTestsBreakIsTaken) {
    const TemporaryFolder folder;
    const Answer answer = run({"models", "show", folder.write("config.json", sound_config().dump())});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
}

TEST(BadInput, ALengthGivenToTheOptionOfTheFileLeavesNoFileBehind) {
    expect_refused(predict({"--output", "300"}), "--output-len 300");
    expect_refused({"plan", "llama-3.1-8b", "--devices", "h100-sxm:1", "-o", "128"}, "--output-len 128");
    expect_refused({"sweep", "llama-3.1-8b", "h100-sxm", "--output", "128,256"}, "--output-len 128,256");
    EXPECT_FALSE(std::filesystem::exists("300"));
    EXPECT_FALSE(std::filesystem::exists("128"));
}

TEST(BadInput, AMisspeltModelOrDeviceIsRefusedWithASuggestion) {
    expect_refused({"predict", "lama-3.1-8b", "h100-sxm"}, "llama-3.1-8b");
    expect_refused({"predict", "llama-3.1-8b", "h100-smx"}, "h100-sxm");
    expect_refused({"models", "show", "deepseek-v33"}, "deepseek-v3");
    expect_refused({"devices", "show", "tpu-v44"}, "tpu-v4");
    expect_refused({"op", "--flops", "1", "--bytes", "1", "--device", "a100-sxm-80g"}, "a100-sxm-80gb");
}

TEST(BadInput, AModelOrDeviceLikeNoOtherIsRefusedByName) {
    expect_refused({"predict", "zzzzzzzzzzzz", "h100-sxm"}, "zzzzzzzzzzzz");
    expect_refused({"predict", "llama-3.1-8b", "zzzzzzzzzzzz"}, "zzzzzzzzzzzz");
    expect_refused({"models", "show", ""});
    expect_refused({"devices", "show", ""});
    expect_refused({"predict", std::string(5000, 'x'), "h100-sxm"});
    expect_refused({"predict", "llama-3.1-8b", std::string(5000, 'x')});
    expect_refused({"predict", "two\nlines\x01\x1b[31m", "h100-sxm"});
    expect_refused({"predict", "llama-3.1-8b", "two\nlines"});
    expect_refused({"predict", "\xff\xfe", "\xff"});
}

TEST(BadInput, UnknownVerbsAndFlagsAreRefused) {
    expect_refused({"predikt", "llama-3.1-8b", "h100-sxm"});
    expect_refused({"--predict"});
    expect_refused(predict({"--bacth", "2"}), "--bacth");
    expect_refused(predict({"-z"}), "-z");
    expect_refused(predict({"one-too-many"}), "one-too-many");
    expect_refused({"models", "list"}, "list");
    expect_refused({"devices", "show", "h100-sxm", "a100"}, "a100");
    expect_refused({"op", "conv"}, "conv");
}

TEST(BadInput, MissingArgumentsAreNamed) {
    expect_refused({"predict"}, "MODEL");
    expect_refused({"predict", "llama-3.1-8b"}, "DEVICE");
    expect_refused({"predict", "--device", "h100-sxm"}, "MODEL");
    expect_refused({"predict", "--params", "8e9"}, "DEVICE");
    expect_refused({"devices", "show"});
    expect_refused({"models", "show"});
    expect_refused({"op"});
    expect_refused({"op", "gemm", "--m", "1", "--n", "1"}, "--k");
    expect_refused({"op", "attention", "--heads", "8"}, "--kv-len");
    expect_refused({"op", "--flops", "1"});
    expect_refused({"op", "--bytes", "1"});
    for (const char* option : {"--batch", "--context", "--dtype", "--set", "--format", "-o"})
        expect_refused(predict({option}), option);
    expect_refused({"predict", "llama-3.1-8b", "h100-sxm", "--params", "8e9"}, "--params");
}

TEST(BadInput, CountsThatAreNoCountsAreRefused) {
    for (const char* option : {"--batch", "--prompt", "--context", "--generate"}) {
        for (const char* value : {"-1", "0", "1.5", "abc", "1e30", "NaN", "nan", "inf", "-inf", "1e999", "0x10", "",
                                  " ", "1 2", "1,2,", "--", "9999999999"}) {
            expect_refused(predict({option, value}), option);
            expect_refused(predict({std::string(option) + "=" + value}), option);
        }
    }
    for (const char* option : {"--cached-prefix", "--chunk"}) {
        for (const char* value : {"-1", "1.5", "abc", "1e30", "NaN"}) expect_refused(predict({option, value}), option);
    }
    for (const char* value : {"-8e9", "0", "abc", "NaN", "inf", "1e300", ""})
        expect_refused({"predict", "--params=" + std::string(value), "--device", "h100-sxm"}, "--params");
    for (const char* value : {"-1", "0", "1.5", "abc", "1e30", "NaN", ""})
        expect_refused({"op", "gemm", "--m", value, "--n", "1", "--k", "1"}, "--m");
    for (const char* value : {"-1", "0", "abc", "NaN", "inf", "1e300"}) {
        expect_refused({"op", "--flops", value, "--bytes", "1"}, "--flops");
        expect_refused({"op", "--flops", "1", "--bytes", value}, "--bytes");
    }
    expect_refused({"op", "attention", "--q-len", "10", "--kv-len", "5", "--heads", "8"}, "--kv-len");
    expect_refused({"op", "gemm", "--m", "1", "--n", "1", "--k", "1", "--flops", "7"}, "--flops");
}

TEST(BadInput, UnknownNumberTypesAndChoicesAreRefused) {
    for (const char* option : {"--dtype", "--weight-dtype", "--activation-dtype", "--kv-cache-dtype"}) {
        expect_refused(predict({option, "nonsense"}), option);
        expect_refused(predict({option, "bf17"}), option);
    }
    expect_refused(predict({"--dtype", "bf15"}), "bf16");
    expect_refused(predict({"--activation-dtype", "q4_k_m"}), "q4_k_m");
    expect_refused({"op", "gemm", "--m", "1", "--n", "1", "--k", "1", "--dtype", "nonsense"}, "nonsense");
    expect_refused(predict({"--format", "xml"}), "xml");
    expect_refused({"op", "--flops", "1", "--bytes", "1", "--format", "csv"}, "csv");
    expect_refused(predict({"--stage", "warmup"}), "warmup");
    expect_refused(predict({"--attention", "ring"}), "ring");
    expect_refused(predict({"--mla", "maybe"}), "maybe");
    expect_refused({"op", "gemm", "--m", "1", "--n", "1", "--k", "1", "--traffic", "heavy"}, "heavy");
}

TEST(BadInput, HeadsThatCannotShareTheirKeysEvenlyAreRefused) {
    expect_refused({"op", "attention", "--kv-len", "4096", "--heads", "32", "--kv-heads", "7"}, "--kv-heads");
    expect_refused({"op", "attention", "--kv-len", "4096", "--heads", "8", "--kv-heads", "16"}, "--kv-heads");
}

TEST(BadInput, SettingsThatMeanNothingAreRefused) {
    for (const char* setting : {"nonsense",
                                "nonsense=2x",
                                "=2x",
                                "memory.bandwidth=",
                                "memory.bandwidth=-1x",
                                "memory.bandwidth=0x",
                                "memory.bandwidth=12",
                                "memory.bandwidth=12GB",
                                "memory.bandwidth=-12GB/s",
                                "memory.bandwidth=NaN",
                                "memory.bandwidth=inf",
                                "memory.bandwidth=nanx",
                                "memory.bandwidth=2xx",
                                "memory.bandwidth=fast",
                                "memory.bandwith=2x",
                                "memory=2x",
                                "matrix.fp7=2x",
                                "matrix.fp4=2x",
                                "compute=12",
                                "power=12",
                                "num_hidden_layers=-3",
                                "num_hidden_layers=0",
                                "num_hidden_layers=1e8",
                                "num_hidden_layers=\"x\"",
                                "hidden_size=1e300",
                                "hidden_size={}",
                                "model_type=2x",
                                "vocab_size=0.00001x"}) {
        expect_refused(predict({"--set", setting}));
    }
    expect_refused(predict({"--set", "memory.bandwith=2x"}), "memory.bandwidth");
    expect_refused(predict({"--set", "num_hiden_layers=3"}), "num_hidden_layers");
    expect_refused({"op", "--flops", "1", "--bytes", "1", "--set", "nonsense"}, "nonsense");
}

TEST(BadInput, FactorsThatLeaveTheRangeOfNumbersAreRefused) {
    // Accepted, they would print infinite times and a report with null for its numbers.
    for (const char* setting : {"memory.bandwidth=1e-320x", "memory.bandwidth=1e300x", "memory.capacity=1e300TB"}) {
        const Answer answer = run(predict({"--set", setting, "--format", "json"}));
        EXPECT_LT(answer.exit_code, 128) << setting;
        if (answer.exit_code != 0) continue;
        const auto found = Schema::published("report.schema.json").violations(parsed(answer.out));
        EXPECT_TRUE(found.empty()) << setting << "\n" << joined(found, 3);
        EXPECT_EQ(run(predict({"--set", setting})).out.find("nan%"), std::string::npos) << setting;
    }
}

TEST(BadInput, PathsThatAreNoFilesAreRefused) {
    const TemporaryFolder folder;
    const std::string empty = folder.make_folder("empty");
    expect_refused({"predict", "llama-3.1-8b", empty}, "folder");
    expect_refused({"predict", "llama-3.1-8b", empty + "/"}, "folder");
    expect_refused({"predict", empty, "h100-sxm"}, "config.json");
    expect_refused({"models", "show", empty + "/"}, "config.json");
    expect_refused({"models", "show", folder.path("missing.json")}, "no such file");
    expect_refused({"models", "show", folder.path("missing.gguf")}, "no such file");
    expect_refused({"devices", "show", folder.path("missing.json")}, "no such file");
    std::filesystem::create_symlink(folder.path("nowhere"), folder.path("broken.json"));
    expect_refused({"models", "show", folder.path("broken.json")}, "broken.json");
    expect_refused({"devices", "show", folder.path("broken.json")}, "broken.json");
    std::filesystem::create_symlink(folder.path("loop.gguf"), folder.path("loop.gguf"));
    expect_refused({"models", "show", folder.path("loop.gguf")}, "loop.gguf");
    const std::string file = folder.write("file.json", sound_config().dump());
    expect_refused({"models", "show", file + "/config.json"});
    expect_refused({"models", "show", "/" + std::string(5000, 'x') + ".json"});
    // Devices instead of files: endless, empty, a folder called like a weight file.
    expect_refused({"models", "show", "/dev/zero"});
    expect_refused({"models", "show", "/dev/null"});
    expect_refused({"devices", "show", "/dev/zero"});
    expect_refused({"models", "show", folder.make_folder("weights.gguf")}, "weights.gguf");
    folder.make_folder("odd/config.json");
    expect_refused({"models", "show", folder.path("odd")}, "folder");
    // A shard that is a broken link, a config that is one.
    folder.write("half/config.json", sound_config().dump());
    std::filesystem::create_symlink(folder.path("nowhere"), folder.path("half/model.safetensors"));
    expect_refused({"models", "show", folder.path("half")}, "model.safetensors");
}

TEST(BadInput, AFileThatMayNotBeReadIsRefused) {
    const TemporaryFolder folder;
    const std::string file = folder.write("secret.json", sound_config().dump());
    std::filesystem::permissions(file, std::filesystem::perms::none);
    if (::access(file.c_str(), R_OK) == 0) GTEST_SKIP() << "this user may read everything";
    expect_refused({"models", "show", file}, "cannot be opened");
    expect_refused({"devices", "show", file}, "cannot be opened");
}

TEST(BadInput, FilesThatAreNotWhatTheirNameSaysAreRefused) {
    const TemporaryFolder folder;
    std::string binary;
    for (int i = 0; i < 3000; ++i) binary += static_cast<char>(i * 7919 >> 3 & 0xff);
    for (const auto& [name, content] : std::initializer_list<std::pair<const char*, std::string>>{
             {"empty.json", ""},
             {"space.json", "  \n"},
             {"text.json", "hello"},
             {"binary.json", binary},
             {"zeros.json", std::string(100, '\0')},
             {"half.json", sound_config().dump().substr(0, 60)},
             {"list.json", "[]"},
             {"number.json", "42"},
             {"null.json", "null"},
             {"twice.json", sound_config().dump() + sound_config().dump()},
             {"object.json", "{}"},
             {"deep.json", std::string(100000, '[')},
             {"deep-objects.json", "{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}"},
             {"latin1.json", "{\"model_type\":\"\xe9\"}"},
             {"schema.json", R"({"schema":"roofline.model/9"})"},
             {"schema-number.json", R"({"schema":1})"},
             {"schema-alone.json", R"({"schema":"roofline.model/1"})"},
             {"config-list.json", R"({"schema":"roofline.model/1","name":"x","config":[]})"}}) {
        const std::string file = folder.write(name, content);
        expect_refused({"models", "show", file}, name);
        expect_refused({"predict", file, "h100-sxm"}, name);
        expect_refused({"devices", "show", file}, name);
        expect_refused({"predict", "llama-3.1-8b", file}, name);
    }
    for (const char* name : {"config.json", "model.gguf"}) {
        folder.write(std::string("binary-folder/") + name, binary);
        expect_refused({"models", "show", folder.path("binary-folder")}, name);
        std::filesystem::remove(folder.path("binary-folder/" + std::string(name)));
    }
}

TEST(BadInput, ConfigsWithMissingFieldsAreRefusedWithTheFieldsName) {
    const TemporaryFolder folder;
    for (const char* key : {"hidden_size", "num_attention_heads", "num_hidden_layers", "vocab_size"}) {
        Json config = sound_config();
        config.erase(key);
        expect_refused({"models", "show", folder.write("config.json", config.dump())}, key);
        expect_refused({"models", "show", folder.path()}, key);
    }
}

TEST(BadInput, ConfigsWithWrongValuesAreRefusedWithTheFieldsName) {
    const TemporaryFolder folder;
    for (const char* key : {"hidden_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers",
                            "intermediate_size", "vocab_size"}) {
        for (const char* value : {"-1", "0", "1.5", "1e300", "1e18", "18446744073709551616", "\"64\"", "true", "[]",
                                  "[64]", "{}", "NaN", "Infinity", "-Infinity"}) {
            const std::string file = folder.write("config.json", config_with(key, value));
            expect_refused({"models", "show", file}, key);
        }
        for (const char* value : {"1e400", "nan", "0x40", "064", "", "6 4"})
            expect_refused({"models", "show", folder.write("config.json", config_with(key, value))}, "not valid JSON");
    }
    for (const char* value : {"1", "[]", "{}", "true"})
        expect_refused({"models", "show", folder.write("config.json", config_with("model_type", value))}, "model_type");
    // 4 heads cannot be shared evenly by 3.
    expect_refused({"models", "show", folder.write("config.json", config_with("num_key_value_heads", "3"))},
                   "num_key_value_heads");
}

TEST(BadInput, SizesThatAreLargeButAllowedStayNumbers) {
    const TemporaryFolder folder;
    Json config = sound_config();
    for (const char* key : {"hidden_size", "intermediate_size", "vocab_size"}) config[key] = 1000000000;
    config["num_hidden_layers"] = 10000;
    const std::string file = folder.write("config.json", config.dump());
    const Answer answer =
        run({"predict", file, "h100-sxm", "--batch", "1e9", "--prompt", "1e9", "--context", "1e9", "--format", "json"});
    EXPECT_EQ(answer.exit_code, 1) << answer.err;
    const auto found = Schema::published("report.schema.json").violations(parsed(answer.out));
    EXPECT_TRUE(found.empty()) << joined(found);
}

TEST(BadInput, AQuantisationConfigThatCannotBeReadOrIsNotKnownIsRefused) {
    const TemporaryFolder folder;
    folder.write("config.json", sound_config().dump());
    for (const char* content : {"", "[", "{\"quantization\":"}) {
        folder.write("hf_quant_config.json", content);
        expect_refused({"models", "show", folder.path()}, "hf_quant_config");
    }
    for (const char* content : {"[]", "3", "\"FP8\"", R"({"quantization":{"quant_algo":8}})"}) {
        folder.write("hf_quant_config.json", content);
        expect_refused({"models", "show", folder.path()}, "hf_quant_config");
    }
    folder.write("hf_quant_config.json", R"({"quantization":{"quant_algo":"FP3"}})");
    expect_refused({"models", "show", folder.path()}, "quant_algo");
}

TEST(BadInput, EveryTruncationOfAGgufIsRefused) {
    const TemporaryFolder folder;
    const auto bytes = io::testing::tiny_llama().file();
    const std::string whole(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    ASSERT_EQ(run({"models", "show", folder.write("whole.gguf", whole)}).exit_code, 0);
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{4}, std::size_t{7},
                                     std::size_t{8}, std::size_t{23}, std::size_t{24}, std::size_t{100},
                                     std::size_t{500}, std::size_t{1500}, whole.size() / 2, whole.size() - 1}) {
        expect_refused({"models", "show", folder.write("cut.gguf", whole.substr(0, length))}, "cut.gguf");
    }
}

TEST(BadInput, EveryChangedByteOfAGgufHeaderIsAnAnswerOrARefusalNeverACrash) {
    const TemporaryFolder folder;
    const auto bytes = io::testing::tiny_llama().file();
    const std::string whole(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::size_t header = io::testing::tiny_llama().header().size();
    for (std::size_t at = 0; at < header; at += 13) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ 0xff);
        const Answer answer = run({"models", "show", folder.write("changed.gguf", changed), "--format", "json"});
        EXPECT_TRUE(answer.exit_code == 0 || answer.exit_code == 2) << "byte " << at << ": " << answer.exit_code;
    }
}

TEST(BadInput, SafetensorsThatAreBrokenAreRefused) {
    const TemporaryFolder folder;
    folder.write("config.json", sound_config().dump());
    const std::string eight("\x08\0\0\0\0\0\0\0", 8);
    const std::string huge("\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
    for (const std::string& content : {std::string(), std::string("x"), eight, eight + "{\"a\":1} ", huge + "{}"}) {
        const std::string file = folder.write("model.safetensors", content);
        expect_refused({"models", "show", folder.path()}, "model.safetensors");
        expect_refused({"models", "show", file}, "model.safetensors");
    }
    std::filesystem::remove(folder.path("model.safetensors"));
    for (const char* content : {"", "[]", "{}", R"({"weight_map":3})"}) {
        folder.write("model.safetensors.index.json", content);
        expect_refused({"models", "show", folder.path()}, "model.safetensors.index.json");
    }
    const TemporaryFolder lonely;
    expect_refused({"models", "show", lonely.write("model.safetensors", "x")}, "config.json");
}

TEST(BadInput, AnAnswerThatCannotBeWrittenLeavesNothingBehind) {
    const TemporaryFolder folder;
    expect_refused(predict({"-o", folder.path("missing/report.txt")}), "missing/report.txt");
    EXPECT_TRUE(folder.is_empty());
    expect_refused(predict({"-o", folder.path()}), "folder");
    expect_refused({"devices", "-o", folder.path("missing/list.txt")}, "list.txt");
    expect_refused({"models", "show", "gpt2", "-o", folder.path("missing/model.txt")}, "model.txt");
    expect_refused({"op", "--flops", "1", "--bytes", "1", "-o", folder.path("missing/op.txt")}, "op.txt");
    EXPECT_TRUE(folder.is_empty());
    // A refused question does not touch a file that is there already.
    const std::string file = folder.write("kept.txt", "mine");
    expect_refused(predict({"--batch", "0", "-o", file}), "--batch");
    EXPECT_EQ(text_of_file(file), "mine");
}

TEST(BadInput, AFullDiskIsNotTakenForAnAnswer) {
    if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full here";
    for (const Arguments& question :
         {predict({}), predict({"--format", "json"}), {"devices"}, {"models", "show", "gpt2"}}) {
        const Answer answer = run(question, {}, "/dev/full");
        EXPECT_EQ(answer.exit_code, 2) << typed(question);
        EXPECT_EQ(answer.err, "roofline: stdout: cannot be written\n") << typed(question);
    }
}

TEST(BadInput, TextFromOutsideNeverBreaksTheOneLine) {
    const TemporaryFolder folder;
    expect_refused(predict({"--dtype", "two\nlines"}), "--dtype");
    expect_refused({"op", "--flops", "1", "--bytes", "1", "--dtype", "two\nlines"}, "--dtype");
    expect_refused(predict({"--set", "two\nlines=2x"}), "--set");
    expect_refused(predict({"--set", "memory.bandwidth=two\nlines"}), "--set");
    expect_refused(predict({"--batch", "two\nlines"}), "--batch");
    expect_refused(predict({"-o", folder.path("missing/two\nlines")}), "cannot be written");
    expect_refused({"models", "show", folder.write("config.json", R"({"hidden_size":"two\nlines"})")}, "hidden_size");
    expect_refused({"devices", "show", folder.write("device.json", R"({"schema":"two\nlines"})")}, "schema");
    expect_refused({"models", "show", folder.write("two\nlines.txt", "{")}, "JSON");
    expect_refused({"devices", "show", folder.write("two\nlines.txt", "{")}, "JSON");
    expect_refused({"models", "show", folder.write("\x1b[31m.json", "{")}, "JSON");
}

TEST(BadInput, BytesThatAreNoUtf8AreNoReasonToCrash) {
    const TemporaryFolder folder;
    const std::string file = folder.write(
        "mod\xff"
        "el/config.json",
        sound_config().dump());
    const Arguments questions[] = {
        {"models", "show", file, "--format", "json"},
        {"models", "show",
         folder.path("mod\xff"
                     "el"),
         "--format", "json"},
        {"predict", file, "h100-sxm", "--format", "json"},
        {"predict", "gpt2", "h100-sxm", "--format", "json", "-o", folder.path("\xff.json")},
    };
    for (const Arguments& question : questions) {
        const Answer answer = run(question);
        EXPECT_TRUE(answer.exit_code == 0 || answer.exit_code == 2) << typed(question) << ": " << answer.exit_code;
    }
    EXPECT_EQ(run({"models", "show", file}).exit_code, 0);
    EXPECT_EQ(run({"predict", file, "h100-sxm"}).exit_code, 0);
}

TEST(ExitCodes, TheOwnMachineWithoutAProfileIsNotHere) {
    const TemporaryFolder folder;
    const Environment environment = {{"XDG_CONFIG_HOME", folder.path()}};
    expect_refused({"predict", "llama-3.1-8b", "this"}, "profile", environment, 4);
    expect_refused({"devices", "show", "this"}, "profile", environment, 4);
    expect_refused({"op", "--flops", "1", "--bytes", "1", "--device", "this"}, "profile", environment, 4);
    EXPECT_TRUE(folder.is_empty());
    expect_refused({"predict", "llama-3.1-8b", "this"}, "profile", {{"XDG_CONFIG_HOME", ""}, {"HOME", folder.path()}},
                   4);
}

TEST(ExitCodes, TheOwnMachineWithAProfileIsADeviceLikeOthers) {
    const TemporaryFolder folder;
    folder.write("roofline/this.json", text_of_file(ROOFLINE_SOURCE_DIR "/data/devices/l40s.json"));
    const Environment environment = {{"XDG_CONFIG_HOME", folder.path()}};
    EXPECT_EQ(run({"predict", "llama-3.1-8b", "this"}, environment).out, run({"predict", "llama-3.1-8b", "l40s"}).out);
    folder.write("roofline/this.json", "{");
    expect_refused({"predict", "llama-3.1-8b", "this"}, "this.json", environment, 2);
}

TEST(ExitCodes, AModelThatDoesNotFitHasAnAnswerButExitsWithOne) {
    for (const char* format : {"table", "md", "csv", "json"}) {
        const Answer answer = run({"predict", "llama-3.1-405b", "h100-sxm", "--format", format});
        EXPECT_EQ(answer.exit_code, 1) << format;
        EXPECT_NE(answer.out, "") << format;
        EXPECT_EQ(answer.err, "") << format;
    }
    const std::string text = run({"predict", "llama-3.1-405b", "h100-sxm"}).out;
    EXPECT_NE(text.find("DOES NOT FIT"), std::string::npos);
    // What follows are times all the same, and it says of what.
    EXPECT_NE(text.find("times    hypothetical"), std::string::npos);
    EXPECT_NE(text.find("request, hypothetical: it does not fit"), std::string::npos);
    const std::string json = run({"predict", "llama-3.1-405b", "h100-sxm", "--format", "json"}).out;
    EXPECT_NE(json.find("\"hypothetical\": true"), std::string::npos);
    const std::string fits = run({"predict", "llama-3.1-8b", "h100-sxm", "--format", "json"}).out;
    EXPECT_NE(fits.find("\"hypothetical\": false"), std::string::npos);
    // Under load there is no such thing as a time of what does not run.
    EXPECT_NE(run({"predict", "llama-3.1-405b", "h100-sxm", "--saturated"}).out.find("nothing is served under load"),
              std::string::npos);
    EXPECT_EQ(run({"predict", "llama-3.1-8b", "h100-sxm", "--batch", "10000"}).exit_code, 1);
}

TEST(ExitCodes, HelpAndVersionAreAnswers) {
    for (const Arguments& question : {Arguments{"--help"},
                                      {"-h"},
                                      {"predict", "--help"},
                                      {"op", "--help"},
                                      {"devices", "--help"},
                                      {"devices", "show", "--help"},
                                      {"models", "--help"},
                                      {"models", "show", "-h"},
                                      {"--version"}}) {
        const Answer answer = run(question);
        EXPECT_EQ(answer.exit_code, 0) << typed(question);
        EXPECT_NE(answer.out, "") << typed(question);
        EXPECT_EQ(answer.err, "") << typed(question);
    }
    EXPECT_TRUE(run({"--version"}).out.starts_with("roofline "));
}

TEST(ExitCodes, NoQuestionAtAllShowsTheHelpButIsBadInput) {
    const Answer answer = run({});
    EXPECT_EQ(answer.exit_code, 2);
    EXPECT_EQ(answer.out, "");
    EXPECT_NE(answer.err.find("predict"), std::string::npos);
}

}  // namespace
}  // namespace roofline::cli::testing
