// Where a world listens, and what it leaves on disk: a socket and a tree of files in a folder of
// the user's own. Everything is made, looked at and removed relative to the folder's descriptor,
// and no link is followed: who replaces the folder, or a file in it, redirects nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/core/outcome.hpp"

namespace simverbs {

class WorldPlace {
  public:
    // Listens at `path`, whose folder is made where it is missing. Fails where that is not
    // possible, a world is served there already, or the folder is not one's own and closed to
    // others.
    static fabric::Outcome<std::unique_ptr<WorldPlace>> listen_at(const std::string& path);
    // Removes what a server that was killed has left at `path`; nothing where a world is served
    // there, or nothing is. Whether it did.
    static bool clear(const std::string& path);
    ~WorldPlace();
    WorldPlace(const WorldPlace&) = delete;
    WorldPlace& operator=(const WorldPlace&) = delete;

    // -1 once it is left.
    [[nodiscard]] int listener() const { return listener_; }
    // Nothing stays on disk; another world may listen here.
    void leave();

    // The path of the tree, for other programs.
    [[nodiscard]] const std::string& tree() const { return tree_path_; }
    // Makes an empty file, or a symbolic link, in the tree, with the folders on the way; `path`
    // is relative to the tree. What cannot be made is missing to the programs that look for it.
    // Files are names of one, if the file system has hard links: a tree has a thousand.
    void make_file(const std::string& path) const;
    void make_link(const std::string& path, const std::string& target) const;

  private:
    WorldPlace(int folder, std::string name, const std::string& path);
    // Returns why it cannot; empty: it listens.
    std::string begin_to_listen(const std::string& path);
    // The folder of a file of the tree, its last name in `name`; -1 where it cannot be made. It
    // stays open until a file of another folder is wanted.
    int folder_of(const std::string& path, std::string& name) const;
    void leave_last_folder() const;
    void forget_empty_file() const;
    // Makes a folder of the tree with those on the way; -1 where that fails.
    [[nodiscard]] int make_folder(const std::string& path) const;
    void remove_tree() const;

    int folder_;  // a descriptor
    std::string name_;
    std::string tree_path_;
    mutable std::string last_path_;  // of the folder that the last file was made in,
    mutable int last_folder_ = -1;   // and its descriptor; a tree has 20 files a folder
    mutable int empty_file_ = -1;    // a descriptor of the one that all are names of
    int listener_ = -1;
};

// The names of this user's worlds that are served in the folder of named ones (socket_path), in
// order. Clears the places of dead servers there, and adds their paths to `cleared`.
std::vector<std::string> find_worlds(std::vector<std::string>& cleared);

}  // namespace simverbs
