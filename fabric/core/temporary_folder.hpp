// A folder for temporary files that goes with its owner, and all that is in it.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace fabric {

// Returns the absolute path of $TMPDIR, or /tmp where that is not set or names no folder.
inline std::filesystem::path place_of_temporary_files() {
    std::error_code missing;
    const std::filesystem::path place = std::filesystem::temp_directory_path(missing);
    return missing ? "/tmp" : std::filesystem::absolute(place);
}

class TemporaryFolder {
  public:
    // `prefix` begins its name. Throws std::system_error when none can be made.
    explicit TemporaryFolder(std::string_view prefix) {
        const std::filesystem::path place = place_of_temporary_files();
        std::string name = (place / prefix).string() + "XXXXXX";
        if (mkdtemp(name.data()) == nullptr) {
            throw std::system_error(errno, std::generic_category(),
                                    "no temporary folder can be made in '" + place.string() +
                                        "' (TMPDIR names another)");
        }
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    [[nodiscard]] std::string file(std::string_view name) const {
        return path_ + "/" + std::string(name);
    }

  private:
    std::string path_;
};

}  // namespace fabric
