#include "roofline/cli/program.hpp"

int main(int argc, char** argv) {
    return roofline::cli::run(argc, argv);
}
