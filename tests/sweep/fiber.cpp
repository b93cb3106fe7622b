#include "fiber.hpp"

#include <cassert>
#include <utility>
#include <vector>

// AddressSanitizer has to be told that the stack changes (sanitizer/common_interface_defs.h).
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CLAIMQ_TELL_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define CLAIMQ_TELL_ASAN
#endif
#ifdef CLAIMQ_TELL_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace claimq::sweep {

namespace {

constexpr std::size_t stack_size = 512 * 1024;

void start_switch([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* bottom,
                  [[maybe_unused]] std::size_t size) {
#ifdef CLAIMQ_TELL_ASAN
    __sanitizer_start_switch_fiber(fake_stack, bottom, size);
#endif
}

void finish_switch([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** bottom,
                   [[maybe_unused]] std::size_t* size) {
#ifdef CLAIMQ_TELL_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, bottom, size);
#endif
}

// A simulation makes thousands of them, a few at a time.
std::vector<std::unique_ptr<char[]>>& spare_stacks() {
    static std::vector<std::unique_ptr<char[]>> stacks;
    return stacks;
}

std::unique_ptr<char[]> take_stack() {
    auto& spare = spare_stacks();
    if (spare.empty()) return std::make_unique_for_overwrite<char[]>(stack_size);
    auto stack = std::move(spare.back());
    spare.pop_back();
    return stack;
}

Fiber* being_entered = nullptr;

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(take_stack()) {}

Fiber::~Fiber() {
    assert(state_ != State::begun);
    spare_stacks().push_back(std::move(stack_));
}

void Fiber::resume() {
    assert(state_ != State::ended);
    if (std::exchange(state_, State::begun) == State::new_born) {
        getcontext(&inside_);
        inside_.uc_stack.ss_sp = stack_.get();
        inside_.uc_stack.ss_size = stack_size;
        inside_.uc_link = nullptr;
        makecontext(&inside_, &Fiber::enter, 0);
        being_entered = this;
    }
    void* fake_stack = nullptr;
    start_switch(&fake_stack, stack_.get(), stack_size);
    swapcontext(&outside_, &inside_);
    finish_switch(fake_stack, nullptr, nullptr);
}

void Fiber::yield() {
    void* fake_stack = nullptr;
    leave(&fake_stack);
    arrived(fake_stack);
}

void Fiber::enter() {
    Fiber& self = *being_entered;
    self.arrived(nullptr);
    self.body_();
    self.state_ = State::ended;
    self.leave(nullptr);  // for good
}

void Fiber::leave(void** fake_stack) {
    start_switch(fake_stack, outside_stack_, outside_stack_size_);
    swapcontext(&inside_, &outside_);
}

void Fiber::arrived(void* fake_stack) { finish_switch(fake_stack, &outside_stack_, &outside_stack_size_); }

}  // namespace claimq::sweep
