# Run by roofline_embed_page (Embed.cmake): FOLDER/index.html.gz and FOLDER/script-hashes.txt as OUTPUT, a C++ source.
set(bytes "")
set(size 0)
set(hashes "")
if(EXISTS "${FOLDER}/index.html.gz")
    file(READ "${FOLDER}/index.html.gz" hex HEX)
    string(LENGTH "${hex}" digits)
    math(EXPR size "${digits} / 2")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
endif()
if(EXISTS "${FOLDER}/script-hashes.txt")
    file(STRINGS "${FOLDER}/script-hashes.txt" lines)
    string(REPLACE ";" " " hashes "${lines}")
endif()
file(WRITE "${OUTPUT}" "// Generated from the page that script/web built.
#include \"roofline/serve/server.hpp\"

namespace roofline::serve {
namespace {

constexpr unsigned char page[] = {${bytes} 0};

}  // namespace

Page embedded_page() {
    return {std::string(reinterpret_cast<const char*>(page), ${size}), \"${hashes}\"};
}

}  // namespace roofline::serve
")
