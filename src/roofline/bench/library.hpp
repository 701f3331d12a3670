// A shared library that is used where it is there: opened by the first of some names, its functions found by theirs.
#pragma once

#include <initializer_list>
#include <string>

#include "roofline/core/problem.hpp"

namespace roofline::bench {

class Library {
  public:
    static Result<Library> open(std::initializer_list<const char*> names);
    static Result<Library> open(const std::string& path);

    void* symbol(const char* name) const;
    template <class Function>
    bool find(const char* name, Function*& function) const {
        function = reinterpret_cast<Function*>(symbol(name));
        return function != nullptr;
    }

  private:
    explicit Library(void* handle) : handle_(handle) {}
    void* handle_;  // stays open: threads of such libraries do not survive their code
};

}  // namespace roofline::bench
