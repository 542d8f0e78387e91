package tokenizer

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// classVersion is the version of Unicode whose classes the reference has.
const classVersion = "16.0.0"

// TestClassesAgreeWithGo differs from Go's tables only in what one of the two
// versions of Unicode has not assigned yet.
func TestClassesAgreeWithGo(t *testing.T) {
	differ := 0
	for r := range rune(utf8.MaxRune + 1) {
		got, want := classes.of(r), goClass(r)
		if got == want {
			continue
		}
		differ++
		newer := want != other && got == other && unicode.Version > classVersion
		older := want == other && !assigned(r) && unicode.Version < classVersion
		if !newer && !older {
			t.Errorf("%U: class %d, want %d", r, got, want)
		}
	}
	t.Logf("%d characters of Unicode %s or %s differ", differ, unicode.Version, classVersion)
}

func goClass(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsMark(r):
		return mark
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

func assigned(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf, unicode.Co)
}

// Each want is what normalizers.NFC() of Hugging Face tokenizers returns.
func TestNFC(t *testing.T) {
	marks := strings.Repeat("\u0301", 100)
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"ASCII", "abc", "abc"},
		{"composed already", "é中", "é中"},
		{"decomposed", "xe\u0301y", "xéy"},
		{"two marks out of order", "a\u0302\u0323", "ậ"},
		{"a mark at the start", "\u0301e", "\u0301e"},
		{"Hangul", "\u1112\u1161\u11ab", "한"},
		{"Hangul syllable and final", "하\u11ab", "한"},
		{"a singleton", "\u212b", "Å"},
		{"excluded from composition", "\u0958", "\u0915\u093c"},
		{"a compatibility character", "ﬁ①", "ﬁ①"},
		{"more marks than package norm takes", "e" + marks, "é" + marks[2:]},
		{"a mark behind those that goes before them", "q" + marks + "\u0323", "q\u0323" + marks},
		{"as many, composed already", "x" + marks, "x" + marks},
		{"a mark of Unicode 14 is no mark", "a\u0898\u0301", "a\u0898\u0301"},
		{"nor does it change places", "a\u0345\u0898", "a\u0345\u0898"},
		{"a composite of Unicode 13 stays in two", "\U00011935\U00011930", "\U00011935\U00011930"},
		{"and one is not taken apart", "\U00011938", "\U00011938"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := nfc(tt.text); got != tt.want {
				t.Errorf("nfc(%+q) = %+q, want %+q", tt.text, got, tt.want)
			}
		})
	}
}

// plainNFC returns what package norm makes of a text, where that has to be the
// reference's normal form too.
func plainNFC(text string) (normal string, ok bool) {
	marks := 0
	for i, r := range text {
		marks++
		if p := norm.NFD.PropertiesString(text[i:]); p.BoundaryBefore() && p.Decomposition() == nil {
			marks = 0
		}
		if late(r) || marks > 7 { // a character decomposes to 4 at most
			return "", false
		}
	}
	return norm.NFC.String(text), true
}
