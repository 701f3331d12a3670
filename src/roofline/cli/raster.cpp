#include "roofline/cli/raster.hpp"

#include <dlfcn.h>
#include <initializer_list>

#include <fmt/format.h>

namespace roofline::cli {
namespace {

// The few functions that are needed, declared as their headers do (librsvg 2.46 and cairo 1.10 or newer).
struct Rectangle {  // RsvgRectangle
    double x, y, width, height;
};
using WriteFunction = int (*)(void* closure, const unsigned char* data, unsigned length);

struct Libraries {
    void* (*handle_new_from_data)(const unsigned char*, std::size_t, void** error) = nullptr;
    int (*handle_render_document)(void* handle, void* cairo, const Rectangle*, void** error) = nullptr;
    void (*object_unref)(void*) = nullptr;
    void* (*image_surface_create)(int format, int width, int height) = nullptr;
    void* (*pdf_surface_create)(WriteFunction, void* closure, double width, double height) = nullptr;
    void* (*create)(void* surface) = nullptr;
    void (*scale)(void* cairo, double x, double y) = nullptr;
    int (*status)(void* cairo) = nullptr;
    void (*destroy)(void* cairo) = nullptr;
    void (*surface_finish)(void* surface) = nullptr;
    int (*surface_status)(void* surface) = nullptr;
    void (*surface_destroy)(void* surface) = nullptr;
    int (*surface_write_to_png_stream)(void* surface, WriteFunction, void* closure) = nullptr;
};

void* open_library(std::initializer_list<const char*> names) {
    for (const char* name : names) {
        if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    }
    return nullptr;
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
}

Result<Libraries> load() {
    const auto missing = [](const char* what) {
        return std::unexpected(Problem{
            fmt::format("{}: not on this machine, and PNG and PDF are drawn with it (Debian: librsvg2-2; macOS: brew "
                        "install librsvg); .svg and .html need nothing",
                        what),
            true});
    };
    // Never closed: they keep state of their own until the end.
    void* rsvg = open_library({"librsvg-2.so.2", "librsvg-2.2.dylib"});
    if (rsvg == nullptr) return missing("librsvg");
    void* cairo = open_library({"libcairo.so.2", "libcairo.2.dylib"});
    if (cairo == nullptr) return missing("cairo");
    void* object = open_library({"libgobject-2.0.so.0", "libgobject-2.0.0.dylib"});
    if (object == nullptr) return missing("gobject");
    Libraries found;
    const bool all = find(rsvg, "rsvg_handle_new_from_data", found.handle_new_from_data) &&
                     find(rsvg, "rsvg_handle_render_document", found.handle_render_document) &&
                     find(object, "g_object_unref", found.object_unref) &&
                     find(cairo, "cairo_image_surface_create", found.image_surface_create) &&
                     find(cairo, "cairo_pdf_surface_create_for_stream", found.pdf_surface_create) &&
                     find(cairo, "cairo_create", found.create) && find(cairo, "cairo_scale", found.scale) &&
                     find(cairo, "cairo_status", found.status) && find(cairo, "cairo_destroy", found.destroy) &&
                     find(cairo, "cairo_surface_finish", found.surface_finish) &&
                     find(cairo, "cairo_surface_status", found.surface_status) &&
                     find(cairo, "cairo_surface_destroy", found.surface_destroy) &&
                     find(cairo, "cairo_surface_write_to_png_stream", found.surface_write_to_png_stream);
    if (!all) return missing("a newer librsvg");
    return found;
}

/// The size a chart says itself: width="960" height="640" of its first line.
double size_in(const std::string& svg, const char* key) {
    const std::string sign = fmt::format(" {}=\"", key);
    const std::size_t at = svg.find(sign);
    return at == std::string::npos ? 0.0 : std::strtod(svg.c_str() + at + sign.size(), nullptr);
}

int append(void* closure, const unsigned char* data, unsigned length) {
    static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), length);
    return 0;  // CAIRO_STATUS_SUCCESS
}

enum class Kind { png, pdf };

Result<std::string> draw(const std::string& svg, Kind kind) {
    const auto libraries = load();
    if (!libraries) return std::unexpected(libraries.error());
    const double width = size_in(svg, "width");
    const double height = size_in(svg, "height");
    if (!(width > 0.0 && height > 0.0 && width < 20000.0 && height < 20000.0)) return fail("a chart without a size");
    void* handle =
        libraries->handle_new_from_data(reinterpret_cast<const unsigned char*>(svg.data()), svg.size(), nullptr);
    if (handle == nullptr) return fail("librsvg: cannot read the chart");
    constexpr double dots = 2.0;
    std::string bytes;
    void* surface =
        kind == Kind::png
            ? libraries->image_surface_create(0, static_cast<int>(width * dots), static_cast<int>(height * dots))
            : libraries->pdf_surface_create(append, &bytes, width * 0.75, height * 0.75);  // points
    void* cairo = libraries->create(surface);
    const double factor = kind == Kind::png ? dots : 0.75;
    libraries->scale(cairo, factor, factor);
    const Rectangle place{0.0, 0.0, width, height};
    bool good = libraries->handle_render_document(handle, cairo, &place, nullptr) != 0 && libraries->status(cairo) == 0;
    if (good && kind == Kind::png) good = libraries->surface_write_to_png_stream(surface, append, &bytes) == 0;
    libraries->destroy(cairo);
    libraries->surface_finish(surface);
    good = good && libraries->surface_status(surface) == 0;
    libraries->surface_destroy(surface);
    libraries->object_unref(handle);
    if (!good || bytes.empty()) return fail("librsvg: could not draw the chart");
    return bytes;
}

}  // namespace

Result<std::string> png_of(const std::string& svg) {
    return draw(svg, Kind::png);
}

Result<std::string> pdf_of(const std::string& svg) {
    return draw(svg, Kind::pdf);
}

}  // namespace roofline::cli
