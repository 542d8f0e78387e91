// Package grammar holds a model's output to a grammar.
//
// A Grammar is a set of texts, built from literals, choices, rules that may
// call each other, and Lexemes: sets of texts that need no stack, such as the
// strings and numbers of JSON. Beside bytes it may have Controls in it, which
// stand for control tokens of a vocabulary.
//
// A Vocabulary is what is known of a tokenizer. Bound to it, a grammar says
// after each token which tokens may come next, as a Mask. It rules out a token
// only if no text of the grammar goes on with the token's bytes: how a text is
// cut into tokens, also within its characters, makes no difference. And since
// every state leads to a text, as long as each byte has a token of its own
// there is always one to choose.
//
// Masks are found when they are needed and kept: for a place within a lexeme
// once for all the rules that use it, else for a whole state.
//
// Calls within calls end at MaxDepth. Text, JSON and JSON Schema are for the
// packages above.
package grammar
