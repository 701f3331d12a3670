// Long lists of small things, in blocks. The first few hundred megabytes of all lists together lie in memory; what
// comes after lies in a file without a name that is mapped, and is let go of while other parts are read. So a trace of
// any size is analysed in bounded memory, and one that fits never touches the disk.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace roofline::analyze {

/// Where blocks come from; one for the whole program, for any number of threads.
namespace spool_room {
/// Never null: where neither memory nor a file is left, std::bad_alloc.
std::byte* take(std::size_t bytes);
void give_back(std::byte* block, std::size_t bytes) noexcept;
/// Lets go of mapped blocks: they come back from the file when they are looked at again.
void let_go() noexcept;
/// To be called now and then by loops over long lists.
inline void breathe(std::size_t count) noexcept {
    if ((count & 0x3FFFFU) == 0x3FFFFU) let_go();
}
/// Bytes that lie in the file at present.
std::size_t mapped();
/// Bytes of blocks that may lie in memory. For tests.
void keep_in_memory(std::size_t bytes);
inline constexpr std::size_t usual_bytes_in_memory = std::size_t{384} << 20U;
}  // namespace spool_room

template <class T>
class Spool {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

    static constexpr unsigned shift() {
        unsigned bits = 0;
        while ((sizeof(T) << (bits + 1)) <= (std::size_t{1} << 20U)) ++bits;
        return bits;
    }
    static constexpr std::size_t per_block = std::size_t{1} << shift();
    static constexpr std::size_t block_bytes = per_block * sizeof(T);

  public:
    template <class Owner, class Value>
    class Place {
      public:
        using iterator_category = std::random_access_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        using pointer = Value*;
        using reference = Value&;

        Place() = default;
        Place(Owner* owner, std::size_t at) : owner_(owner), at_(at) {}
        reference operator*() const { return (*owner_)[at_]; }
        pointer operator->() const { return &(*owner_)[at_]; }
        reference operator[](difference_type n) const { return *(*this + n); }
        Place& operator++() {
            spool_room::breathe(++at_);
            return *this;
        }
        Place operator++(int) { return {owner_, at_++}; }
        Place& operator--() {
            --at_;
            return *this;
        }
        Place operator--(int) { return {owner_, at_--}; }
        Place& operator+=(difference_type n) {
            at_ = static_cast<std::size_t>(static_cast<difference_type>(at_) + n);
            return *this;
        }
        Place& operator-=(difference_type n) { return *this += -n; }
        friend Place operator+(Place place, difference_type n) { return place += n; }
        friend Place operator+(difference_type n, Place place) { return place += n; }
        friend Place operator-(Place place, difference_type n) { return place -= n; }
        friend difference_type operator-(const Place& a, const Place& b) {
            return static_cast<difference_type>(a.at_) - static_cast<difference_type>(b.at_);
        }
        friend bool operator==(const Place& a, const Place& b) { return a.at_ == b.at_; }
        friend std::strong_ordering operator<=>(const Place& a, const Place& b) { return a.at_ <=> b.at_; }

      private:
        Owner* owner_ = nullptr;
        std::size_t at_ = 0;
    };
    using value_type = T;
    using iterator = Place<Spool, T>;
    using const_iterator = Place<const Spool, const T>;

    Spool() = default;
    Spool(std::size_t count, const T& value) { assign(count, value); }
    Spool(Spool&& other) noexcept { swap(other); }
    Spool& operator=(Spool&& other) noexcept {
        Spool taken(std::move(other));
        swap(taken);
        return *this;
    }
    Spool(const Spool&) = delete;
    Spool& operator=(const Spool&) = delete;
    ~Spool() { clear(); }

    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T& operator[](std::size_t i) { return blocks_[i >> shift()][i & (per_block - 1)]; }
    const T& operator[](std::size_t i) const { return blocks_[i >> shift()][i & (per_block - 1)]; }
    T& back() { return (*this)[size_ - 1]; }
    const T& back() const { return (*this)[size_ - 1]; }
    iterator begin() { return {this, 0}; }
    iterator end() { return {this, size_}; }
    const_iterator begin() const { return {this, 0}; }
    const_iterator end() const { return {this, size_}; }

    void push_back(const T& value) {
        if ((size_ & (per_block - 1)) == 0) add_block();
        new (&blocks_.back()[size_ & (per_block - 1)]) T(value);
        spool_room::breathe(++size_);
    }
    void assign(std::size_t count, const T& value) {
        clear();
        for (std::size_t i = 0; i < count; ++i) push_back(value);
    }
    void clear() noexcept {
        for (T* block : blocks_) spool_room::give_back(reinterpret_cast<std::byte*>(block), block_bytes);
        blocks_.clear();
        size_ = 0;
    }
    void swap(Spool& other) noexcept {
        std::swap(blocks_, other.blocks_);
        std::swap(size_, other.size_);
    }

  private:
    void add_block() {
        blocks_.push_back(nullptr);
        blocks_.back() = reinterpret_cast<T*>(spool_room::take(block_bytes));
    }

    std::vector<T*> blocks_;
    std::size_t size_ = 0;
};

/// In place: a stable sort would want as much again. `before` must tell any two things apart whose order matters.
template <class T, class Before>
void put_in_order(Spool<T>& all, const Before& before) {
    if (std::is_sorted(all.begin(), all.end(), before)) return;
    std::size_t asked = 0;
    std::sort(all.begin(), all.end(), [&](const T& a, const T& b) {
        spool_room::breathe(++asked);
        return before(a, b);
    });
}

}  // namespace roofline::analyze
