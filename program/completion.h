#pragma once

// Shell completion and a manual page, made of what --help shows.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace txl {

// "bash", "zsh", "fish".
const std::vector<std::string>& CompletionShells();

// A script for one of them, to be sourced: it completes commands, flags, the
// names that a flag takes, and files. Pure.
std::string CompletionScript(const CLI::App& program, const std::string& shell);

// A page of section 1 in the macros of man(7). Pure.
std::string ManPage(const CLI::App& program);

}  // namespace txl
