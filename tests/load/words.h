#ifndef TESTS_LOAD_WORDS_H_
#define TESTS_LOAD_WORDS_H_

#include <iterator>
#include <random>
#include <string>

namespace strata {

// Words that tokenizers have as one token each, about.
inline constexpr const char* kWords[] = {
    "a",    "and",   "are",    "at",    "be",    "by",   "can",  "cold",
    "day",  "do",    "every",  "find",  "for",   "from", "good", "have",
    "he",   "house", "if",     "in",    "is",    "it",   "like", "long",
    "made", "many",  "more",   "new",   "night", "not",  "of",   "on",
    "one",  "or",    "people", "river", "she",   "some", "that", "the",
    "they", "this",  "to",     "tree",  "was",   "we",   "with", "you"};

// Puts `count` random words at the end of `text`, blanks between.
inline void AppendWords(int count, std::mt19937_64* random, std::string* text) {
  std::uniform_int_distribution<size_t> word(0, std::size(kWords) - 1);
  for (int i = 0; i < count; ++i) {
    if (!text->empty()) *text += ' ';
    *text += kWords[word(*random)];
  }
}

}  // namespace strata

#endif  // TESTS_LOAD_WORDS_H_
