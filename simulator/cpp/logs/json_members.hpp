// Some members of the objects of a list, out of a JSON text, and nothing of the others: a scheduler
// tells of each job a hundred times what anybody asks. What is picked is as it stood in the text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretime {

struct PickedMembers {
  std::string rest;   // the text with an empty list
  std::string texts;  // of each object of the list, for each group of names, an object of its own
  std::vector<std::size_t> ends;  // of each of them
};

// Picks, of each object of the list with a name in the object that the text is, the members with
// names in a group; no name is in two. Nothing if the text has no such list, or is not understood;
// what is not picked is only looked through for its end.
std::optional<PickedMembers> pick_members(std::string_view text, std::string_view list,
                                          const std::vector<std::vector<std::string>>& groups);

}  // namespace foretime
