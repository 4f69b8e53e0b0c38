#include "logs/json_members.hpp"

#include <array>
#include <cstdint>
#include <unordered_map>

namespace foretime {
namespace {

enum class Mark : std::uint8_t { kNone, kOpens, kCloses, kQuote, kSpace, kParts };

constexpr std::array<Mark, 256> kMarks = [] {
  std::array<Mark, 256> marks{};
  for (const char c : {'{', '['}) marks[static_cast<unsigned char>(c)] = Mark::kOpens;
  for (const char c : {'}', ']'}) marks[static_cast<unsigned char>(c)] = Mark::kCloses;
  for (const char c : {' ', '\t', '\r', '\n'}) marks[static_cast<unsigned char>(c)] = Mark::kSpace;
  for (const char c : {',', ':'}) marks[static_cast<unsigned char>(c)] = Mark::kParts;
  marks['"'] = Mark::kQuote;
  return marks;
}();

Mark mark_of(char c) { return kMarks[static_cast<unsigned char>(c)]; }

class Reader {
 public:
  explicit Reader(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  const char* at() const { return at_; }

  // Whether the next sign is this one, which is then behind.
  bool takes(char sign) {
    skip_space();
    if (at_ == end_ || *at_ != sign) return false;
    ++at_;
    return true;
  }

  bool is_over() {
    skip_space();
    return at_ == end_;
  }

  // A name and its colon; nothing if it is spelt with escapes.
  std::optional<std::string_view> name() {
    if (!takes('"')) return std::nullopt;
    const char* const first = at_;
    if (!skip_string()) return std::nullopt;
    const std::string_view name(first, static_cast<std::size_t>(at_ - 1 - first));
    if (name.find('\\') != std::string_view::npos || !takes(':')) return std::nullopt;
    skip_space();
    return name;
  }

  // Goes behind a value; brackets are counted, whatever their kind.
  bool skip_value() {
    skip_space();
    if (at_ == end_) return false;
    const char* const first = at_;
    switch (mark_of(*at_)) {
      case Mark::kQuote:
        ++at_;
        return skip_string();
      case Mark::kOpens:
        return skip_brackets();
      default:
        while (at_ != end_ && mark_of(*at_) == Mark::kNone) ++at_;
        return at_ != first;
    }
  }

 private:
  void skip_space() {
    while (at_ != end_ && mark_of(*at_) == Mark::kSpace) ++at_;
  }

  bool skip_string() {  // from behind its quote
    for (; at_ != end_; ++at_) {
      if (*at_ == '"') {
        ++at_;
        return true;
      }
      if (*at_ == '\\' && ++at_ == end_) return false;
    }
    return false;
  }

  bool skip_brackets() {
    std::size_t depth = 0;
    while (at_ != end_) {
      switch (mark_of(*at_++)) {
        case Mark::kOpens:
          ++depth;
          break;
        case Mark::kCloses:
          if (--depth == 0) return true;
          break;
        case Mark::kQuote:
          if (!skip_string()) return false;
          break;
        default:
          break;
      }
    }
    return false;
  }

  const char* at_;
  const char* end_;
};

class Picker {
 public:
  explicit Picker(const std::vector<std::vector<std::string>>& groups) : texts_(groups.size()) {
    for (std::size_t group = 0; group < groups.size(); ++group) {
      for (const std::string& name : groups[group]) group_of_[name] = group;
    }
  }

  bool pick_list(Reader& text, PickedMembers& into) {
    if (!text.takes('[')) return false;
    if (text.takes(']')) return true;
    do {
      if (!pick_object(text, into)) return false;
    } while (text.takes(','));
    return text.takes(']');
  }

 private:
  bool pick_object(Reader& text, PickedMembers& into) {
    if (!text.takes('{')) return false;
    for (std::string& each : texts_) each = "{";
    if (!text.takes('}')) {
      do {
        const auto name = text.name();
        if (!name) return false;
        if (!text.skip_value()) return false;
        const auto found = group_of_.find(*name);
        if (found == group_of_.end()) continue;
        std::string& picked = texts_[found->second];
        if (picked.size() > 1) picked += ',';
        picked.append(name->data() - 1, text.at());
      } while (text.takes(','));
      if (!text.takes('}')) return false;
    }
    for (const std::string& each : texts_) {
      into.texts.append(each).append(1, '}');
      into.ends.push_back(into.texts.size());
    }
    return true;
  }

  std::unordered_map<std::string_view, std::size_t> group_of_;
  std::vector<std::string> texts_;
};

}  // namespace

std::optional<PickedMembers> pick_members(std::string_view text, std::string_view list,
                                          const std::vector<std::vector<std::string>>& groups) {
  PickedMembers picked;
  Picker picker(groups);
  Reader reader(text);
  bool is_found = false;
  if (!reader.takes('{')) return std::nullopt;
  do {
    const auto name = reader.name();
    if (!name) return std::nullopt;
    if (*name != list) {
      if (!reader.skip_value()) return std::nullopt;
      continue;
    }
    if (is_found) return std::nullopt;
    is_found = true;
    picked.rest.assign(text.data(), reader.at()).append("[]");
    if (!picker.pick_list(reader, picked)) return std::nullopt;
    picked.rest.append(reader.at(), text.data() + text.size());
  } while (reader.takes(','));
  if (!is_found || !reader.takes('}') || !reader.is_over()) return std::nullopt;
  return picked;
}

}  // namespace foretime
