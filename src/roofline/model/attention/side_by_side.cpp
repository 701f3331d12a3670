#include "roofline/model/attention/side_by_side.hpp"

#include "roofline/model/deployment.hpp"
#include "roofline/model/lowering.hpp"

namespace roofline::model {

void SideBySide::lower(Lowering& to) const {
    first_->lower(to);
    to.enter("mixer", Group::attention);
    second_->lower(to);
    to.elementwise("add", to.hidden(), 2.0 * to.hidden(), to.hidden(), to.tokens());
}

std::string SideBySide::describe() const {
    return first_->describe() + " beside " + second_->describe();
}

Result<BlockPtr> SideBySide::on_rank(const Deployment& deployment) const {
    auto first = first_->on_rank(deployment);
    if (!first) return std::unexpected(first.error());
    auto second = second_->on_rank(deployment);
    if (!second) return std::unexpected(second.error());
    return std::make_shared<SideBySide>(*first, *second);
}

}  // namespace roofline::model
