#include "roofline/analyze/chrome_trace.hpp"

#include <cstring>
#include <span>

#include <fmt/format.h>

#include "roofline/analyze/json_scan.hpp"

namespace roofline::analyze {

std::string_view ChromeEvent::argument(std::string_view key) const {
    for (const auto& [written, value] : arguments) {
        if (written == key) return value;
    }
    return {};
}

namespace {

void clear(ChromeEvent& event) {
    event.phase = event.category = event.name = event.process = event.thread = event.time = event.duration = {};
    event.arguments.clear();
    event.passed_over = false;
}

void scan_arguments(JsonScan& scan, ChromeEvent& event) {
    if (scan.next() != '{') {  // null, or something of another tool
        scan.value();
        return;
    }
    scan.open_object();
    bool first = true;
    std::string_view key;
    while (scan.member(key, first)) event.arguments.emplace_back(key, scan.value());
}

/// One event; whether it is whole shows in the scan.
void scan_event(JsonScan& scan, ChromeEvent& event, const ChromeReader& reader) {
    clear(event);
    if (!scan.open_object()) return;
    bool first = true;
    std::string_view key;
    while (scan.member(key, first)) {
        if (key == "args") {
            const bool told = !event.name.empty() && !event.category.empty();
            if (told && reader.wants_arguments && !reader.wants_arguments(event)) {
                event.passed_over = true;
                scan.value();
            } else {
                scan_arguments(scan, event);
            }
            continue;
        }
        const std::string_view value = scan.value();
        if (key.size() < 2) continue;
        switch (key[0]) {
            case 'p':
                if (key == "ph") event.phase = value;
                if (key == "pid") event.process = value;
                break;
            case 't':
                if (key == "ts") event.time = value;
                if (key == "tid") event.thread = value;
                break;
            case 'd':
                if (key == "dur") event.duration = value;
                break;
            case 'c':
                if (key == "cat") event.category = value;
                break;
            case 'n':
                if (key == "name") event.name = value;
                break;
            default:
                break;
        }
    }
}

enum class Place { start, in_object, in_events, in_object_again, done };

class Windows {
  public:
    Windows(Input& input, const ChromeReader& reader) : input_(input), reader_(reader) {}

    Result<ChromeEnd> run() {
        while (place_ != Place::done) {
            JsonScan scan(buffer_.data() + at_, buffer_.data() + filled_);
            step(scan);
            if (scan.good()) {
                at_ += scan.position();
            } else if (scan.failed()) {
                return fail(fmt::format("{}: byte {}: expected {}, found {}", input_.name(),
                                        base_ + at_ + scan.position(), scan.expected(), found(at_ + scan.position())));
            } else if (ended_) {
                end_.cut = true;
                break;
            } else if (auto more = refill(); !more) {
                return std::unexpected(more.error());
            }
        }
        end_.bytes = base_ + filled_;
        return end_;
    }

  private:
    std::string found(std::size_t position) const {
        if (position >= filled_) return "the end of the file";
        const auto byte = static_cast<unsigned char>(buffer_[position]);
        if (byte >= 0x20 && byte < 0x7F) return fmt::format("'{}'", buffer_[position]);
        return fmt::format("the byte 0x{:02x}", byte);
    }

    /// Keeps what is not read yet and fills up behind it; doubles the window where it holds not even one event.
    Result<void> refill() {
        const std::size_t left = filled_ - at_;
        if (left >= largest_event) {
            return fail(fmt::format("{}: byte {}: one event of more than {} MiB", input_.name(), base_ + at_,
                                    largest_event >> 20U));
        }
        if (left > 0 && at_ > 0) std::memmove(buffer_.data(), buffer_.data() + at_, left);
        base_ += at_;
        at_ = 0;
        if (buffer_.size() < window_bytes) buffer_.resize(window_bytes);
        if (left * 2 > buffer_.size()) buffer_.resize(buffer_.size() * 2);
        const auto got = input_.read(std::span(buffer_).subspan(left));
        if (!got) return std::unexpected(got.error());
        filled_ = left + *got;
        ended_ = filled_ < buffer_.size();
        if (reader_.progress) {
            if (const auto done = input_.progress()) reader_.progress(*done);
        }
        return {};
    }

    /// One event, one member of the outer object, or one bracket. Only acts when all of it was there.
    void step(JsonScan& scan) {
        switch (place_) {
            case Place::start: {
                if (scan.next() == '\xEF') {  // a byte order mark
                    for (const char mark : {'\xEF', '\xBB', '\xBF'}) scan.require(mark, "a byte order mark");
                }
                if (scan.take('[')) {
                    bare_ = true;
                    enter_events();
                } else if (scan.require('{', "an object or an array")) {
                    place_ = Place::in_object;
                    fresh_ = true;
                }
                return;
            }
            case Place::in_object:
            case Place::in_object_again: {
                bool first = fresh_;
                std::string_view key;
                if (!scan.member(key, first)) {
                    if (scan.good()) place_ = Place::done;
                    return;
                }
                if (key == "traceEvents" && place_ == Place::in_object && scan.next() == '[') {
                    scan.open_array();
                    fresh_ = false;
                    enter_events();
                    return;
                }
                const std::string_view value = scan.value();
                if (!scan.good()) return;
                fresh_ = false;
                if (reader_.header) reader_.header(key, value);
                return;
            }
            case Place::in_events: {
                bool first = fresh_;
                if (!scan.element(first)) {
                    if (scan.good()) {
                        place_ = bare_ ? Place::done : Place::in_object_again;
                        fresh_ = false;
                    }
                    return;
                }
                scan_event(scan, event_, reader_);
                if (!scan.good()) return;
                fresh_ = false;
                ++end_.events;
                reader_.event(event_);
                return;
            }
            case Place::done:
                return;
        }
    }

    void enter_events() {
        place_ = Place::in_events;
        fresh_ = true;
    }

    Input& input_;
    const ChromeReader& reader_;
    std::string buffer_;
    std::size_t at_ = 0;
    std::size_t filled_ = 0;
    std::uint64_t base_ = 0;
    bool ended_ = false;
    bool bare_ = false;
    bool fresh_ = true;
    Place place_ = Place::start;
    ChromeEvent event_;
    ChromeEnd end_;
};

}  // namespace

Result<ChromeEnd> read_chrome_trace(Input& input, const ChromeReader& reader) {
    return Windows(input, reader).run();
}

}  // namespace roofline::analyze
