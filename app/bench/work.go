package bench

import "fmt"

// What two servers' counts of the same text may differ by, as a share of the
// larger. Up to sameCount the work is the same token for token: templates differ
// by a few tokens. Up to sameText the tokenizers differ, and the work is the same
// text. Beyond that one of them did not get the text.
const (
	sameCount = 0.02
	sameText  = 0.25
	// nearCount is how far our own count may be from the length asked for.
	nearCount = 0.05
)

// headTokens are the most tokens of a prompt that a server may have had before
// the text's fresh first line: what its template begins with.
const headTokens = 32

// apart returns the difference of two counts as a share of the larger.
func apart(a, b int) float64 {
	most := max(a, b, 1)
	return float64(most-min(a, b)) / float64(most)
}

// sameWork compares the counts of one text with the length it was made for. It
// says in words what the counts mean where they are not one another's, and why
// they can't be compared, or nothing.
func sameWork(want, ours, theirs int) (note, refused string) {
	switch d := apart(ours, theirs); {
	case apart(want, ours) > nearCount:
		return "", fmt.Sprintf("our server counts %d tokens in a text made for %d: its template or tokenizer is not the one that was sized", ours, want)
	case d > sameText:
		return "", fmt.Sprintf("the servers count %d and %d tokens in the same text: one cut it or knows another alphabet; give it the context, or the same model", ours, theirs)
	case d > sameCount:
		return fmt.Sprintf("the same text is %d tokens to us and %d to the other: the same work is the same text, and prefill counts our tokens for both", ours, theirs), ""
	}
	return "", ""
}
