#include "base/flags.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>

#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/quote.h"

namespace strata {
namespace {

constexpr size_t kLineWidth = 80;

// A word of a command line that sets a flag.
struct Setting {
  std::string name;
  std::optional<std::string> value;  // what stands after =
};

// Nothing for a word that does not begin with a dash, and for "-".
std::optional<Setting> ParseSetting(absl::string_view word) {
  if (word.size() < 2 || !absl::ConsumePrefix(&word, "-")) return std::nullopt;
  absl::ConsumePrefix(&word, "-");
  const size_t equals = word.find('=');
  if (equals == word.npos) return Setting{std::string(word), std::nullopt};
  return Setting{std::string(word.substr(0, equals)),
                 std::string(word.substr(equals + 1))};
}

absl::CommandLineFlag* Find(const FlagList& flags, absl::string_view name) {
  const auto it = std::ranges::find_if(
      flags, [&](const auto* flag) { return flag->Name() == name; });
  return it != flags.end() ? *it : nullptr;
}

// Gives --name and --noname of a boolean their values.  Null: no such flag.
absl::CommandLineFlag* Resolve(const FlagList& flags, Setting* setting) {
  absl::CommandLineFlag* flag = Find(flags, setting->name);
  if (flag != nullptr) {
    if (!setting->value && flag->IsOfType<bool>()) setting->value = "true";
    return flag;
  }
  absl::string_view name = setting->name;
  if (setting->value || !absl::ConsumePrefix(&name, "no")) return nullptr;
  flag = Find(flags, name);
  if (flag == nullptr || !flag->IsOfType<bool>()) return nullptr;
  setting->value = "false";
  return flag;
}

template <typename... T>
bool IsOneOf(const absl::CommandLineFlag& flag) {
  return ((flag.IsOfType<T>() || flag.IsOfType<std::optional<T>>()) || ...);
}

// What values of its type look like.
const char* Needs(const absl::CommandLineFlag& flag) {
  if (IsOneOf<bool>(flag)) return "allowed are true, false";
  if (IsOneOf<absl::Duration>(flag)) {
    return "it needs a time with its unit, such as 500ms, 30s or 2m";
  }
  if (IsOneOf<float, double>(flag)) return "it needs a number";
  if (IsOneOf<uint32_t, uint64_t>(flag)) {
    return "it needs a whole number, 0 or more";
  }
  return "it needs a whole number";
}

absl::Status Set(const std::string& value, absl::CommandLineFlag* flag) {
  std::string error;  // repeats the value, as it is
  if (flag->ParseFrom(value, &error)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag->Name(), "=", Quote(value), ": ", Needs(*flag)));
}

// `text` in indented lines.
void AppendWrapped(const std::string& text, std::string* out) {
  std::string line = "     ";
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (line.size() + 1 + word.size() > kLineWidth) {
      absl::StrAppend(out, line, "\n");
      line = "     ";
    }
    absl::StrAppend(&line, " ", word);
  }
  absl::StrAppend(out, line, "\n");
}

}  // namespace

FlagList FlagsNamed(absl::Span<const char* const> names) {
  FlagList flags;
  for (const char* name : names) {
    flags.push_back(absl::FindCommandLineFlag(name));
    STRATA_CHECK(flags.back() != nullptr);
  }
  return flags;
}

FlagList FlagsIn(absl::Span<const absl::string_view> folders) {
  FlagList flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    const std::string file = flag->Filename();
    if (std::ranges::any_of(folders, [&](absl::string_view folder) {
          return absl::StrContains(file, folder);
        })) {
      flags.push_back(flag);
    }
  }
  std::ranges::sort(flags, {}, [](const absl::CommandLineFlag* flag) {
    return std::tuple(flag->Filename(), flag->Name());
  });
  return flags;
}

bool WantsHelp(const std::vector<std::string>& args) {
  for (const std::string& arg : args) {
    if (arg == "--") return false;
    if (arg == "--help" || arg == "-help" || arg == "-h") return true;
  }
  return false;
}

std::string FlagHelp(const FlagList& flags) {
  std::string text;
  std::string file;
  for (const absl::CommandLineFlag* flag : flags) {
    if (!text.empty() && flag->Filename() != file) text += "\n";
    file = flag->Filename();
    absl::StrAppend(&text, "  --", flag->Name(), "=", flag->DefaultValue(),
                    "\n");
    AppendWrapped(flag->Help(), &text);
  }
  return text;
}

absl::StatusOr<std::vector<std::string>> SetFlags(
    const std::vector<std::string>& args, const FlagList& flags) {
  std::vector<std::string> words;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--") {
      words.insert(words.end(), args.begin() + i + 1, args.end());
      break;
    }
    std::optional<Setting> setting = ParseSetting(args[i]);
    if (!setting) {
      words.push_back(args[i]);
      continue;
    }
    absl::CommandLineFlag* flag = Resolve(flags, &*setting);
    if (flag == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "unknown flag ", Quote("--" + setting->name), "; --help lists them"));
    }
    if (!setting->value && i + 1 == args.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", setting->name, " needs a value"));
    }
    const std::string value = setting->value ? *setting->value : args[++i];
    if (absl::Status set = Set(value, flag); !set.ok()) return set;
  }
  return words;
}

}  // namespace strata
