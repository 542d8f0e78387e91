package tokenizer

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

func TestEncodeKeepsControlTokensOut(t *testing.T) {
	tok := load(t, tinyDir)
	end, ok := tok.TokenID("<|im_end|>")
	if !ok {
		t.Fatal("TokenID(<|im_end|>): none")
	}
	const typed = "a<|im_end|>b"
	if ids := tok.Encode(typed); slices.Contains(ids, end) || tok.Decode(ids, true) != typed {
		t.Errorf("Encode(%q) = %v: want text tokens only", typed, ids)
	}
	if ids := tok.EncodeWithAdded(typed); len(ids) != 3 || ids[1] != end {
		t.Errorf("EncodeWithAdded(%q) = %v, want %d between two others", typed, ids, end)
	}
}

func TestAddedTokensLongestFirst(t *testing.T) {
	f := file()
	set([]any{addedEntry(258, "<s>", true), addedEntry(259, "<s>ab", true), addedEntry(260, "ab<", true)}, "added_tokens")(f)
	tok, err := Load(marshal(t, f), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, text string
		want       []int32
	}{
		{"the shorter of two", "<s>a", []int32{258, 'a'}},
		{"the longer of two", "<s>abc", []int32{259, 'c'}},
		{"the earlier of two that overlap", "ab<s>", []int32{260, 's', '>'}},
		{"at both ends", "<s>c<s>", []int32{258, 'c', 258}},
		{"side by side", "<s><s>ab<s>", []int32{258, 259, 258}},
	} {
		t.Run(tt.name, func(t *testing.T) { diffIDs(t, "EncodeWithAdded", tt.text, tt.want, tok.EncodeWithAdded(tt.text)) })
	}
}

func TestBytes(t *testing.T) {
	tok := load(t, tinyDir)
	think, _ := tok.TokenID("<think>")
	for _, tt := range []struct {
		name string
		id   int32
		want string
	}{
		{"a byte of a character", tok.Encode("中")[0], "\xe4"},
		{"an added token", think, "<think>"},
		{"the last token", int32(tok.VocabSize() - 1), "<|audio_pad|>"},
		{"padding", int32(tok.VocabSize()), ""},
		{"far beyond", 1<<31 - 1, ""},
		{"negative", -1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tok.Bytes(tt.id)
			if !strings.HasPrefix(tt.want, string(got)) || (len(got) == 0) != (tt.want == "") {
				t.Errorf("Bytes(%d) = %q, want %q", tt.id, got, tt.want)
			}
			for i := range got {
				got[i] = '!'
			}
		})
	}
	if got := tok.Decode([]int32{think}, false); got != "<think>" {
		t.Errorf("Decode(<think>) = %q after the caller wrote into Bytes", got)
	}
}

// A token spelt with characters outside the byte alphabet stands for those.
func TestTokenOutsideTheAlphabet(t *testing.T) {
	f := file()
	set(256, "model", "vocab", "中é")(f)
	drop("model", "vocab", "ab")(f)
	set([]any{}, "model", "merges")(f)
	tok, err := Load(marshal(t, f), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Decode([]int32{256}, false); got != "中é" {
		t.Errorf("Decode = %q, want %q", got, "中é")
	}
}

// The expected values are Python's bytes.decode("utf-8", "replace").
var brokenUTF8 = []struct{ name, text, want string }{
	{"valid", "aé中😀", "aé中😀"},
	{"a byte that begins nothing", "a\x80b", "a\uFFFDb"},
	{"two of them", "\x80\xbf", "\uFFFD\uFFFD"},
	{"cut off after one of two", "\xc3a", "\uFFFDa"},
	{"cut off after two of three", "\xe4\xb8a", "\uFFFDa"},
	{"cut off after three of four", "\xf0\x9f\x98a", "\uFFFDa"},
	{"cut off at the end", "a\xf0\x9f", "a\uFFFD"},
	{"two cut off", "\xe4\xb8\xe4\xb8", "\uFFFD\uFFFD"},
	{"overlong", "\xc0\x80", "\uFFFD\uFFFD"},
	{"overlong of three", "\xe0\x80\x80", "\uFFFD\uFFFD\uFFFD"},
	{"a surrogate", "\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},
	{"beyond Unicode", "\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
	{"bytes of no encoding", "\xfe\xff", "\uFFFD\uFFFD"},
	{"Unicode's own example", "a\xf1\x80\x80\xe1\x80\xc2b\x80c\x80\xbfd", "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd"},
}

func TestBrokenUTF8(t *testing.T) {
	tok := load(t, tinyDir)
	for _, tt := range brokenUTF8 {
		t.Run(tt.name, func(t *testing.T) {
			diffIDs(t, "Encode", tt.text, tok.Encode(tt.want), tok.Encode(tt.text))
			if got := tok.Decode(byteIDs(tok, tt.text), false); got != tt.want {
				t.Errorf("Decode of bytes %q = %+q, want %+q", tt.text, got, tt.want)
			}
		})
	}
}

// byteIDs returns a token a byte.
func byteIDs(tok *Tokenizer, text string) []int32 {
	var ids []int32
	for i := range len(text) {
		ids = append(ids, tok.vocab.ofByte[text[i]])
	}
	return ids
}

func TestDecoderHoldsBack(t *testing.T) {
	tok := load(t, tinyDir)
	end, _ := tok.TokenID("<|im_end|>")
	think, _ := tok.TokenID("<think>")
	letters := func(text string) []int32 { return byteIDs(tok, text) }
	for _, tt := range []struct {
		name string
		skip bool
		ids  []int32
		want []string // of each Add, then of Flush
	}{
		{"letters at once", false, letters("ab"), []string{"a", "b", ""}},
		{"a character of four bytes", false, letters("😀!"), []string{"", "", "", "😀", "!", ""}},
		{"cut off by a letter", false, letters("\xf0\x9fa"), []string{"", "", "\uFFFDa", ""}},
		{"cut off by another character", false, letters("\xe4\xe4\xb8\xad"), []string{"", "\uFFFD", "", "中", ""}},
		{"cut off at the end", false, letters("\xe4\xb8"), []string{"", "", "\uFFFD"}},
		{"never a character", false, letters("\xff"), []string{"\uFFFD", ""}},
		{"special tokens shown", false, []int32{end, think}, []string{"<|im_end|>", "<think>", ""}},
		{"special tokens skipped", true, []int32{end, think}, []string{"", "<think>", ""}},
		{"a special token within a character", true, slices.Insert(letters("中"), 2, end), []string{"", "", "", "中", ""}},
		{"padding within a character", false, slices.Insert(letters("中"), 1, 1<<20), []string{"", "", "", "中", ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := tok.NewDecoder(tt.skip)
			for range 2 { // the second time after a Flush
				var got []string
				for _, id := range tt.ids {
					got = append(got, d.Add(id))
				}
				if got = append(got, d.Flush()); !slices.Equal(got, tt.want) {
					t.Errorf("increments %+q, want %+q", got, tt.want)
				}
			}
		})
	}
}

// TestLongRuns takes far longer than a test may where anything is quadratic.
func TestLongRuns(t *testing.T) {
	tok := load(t, demoDir)
	for _, run := range runs {
		t.Run(run.name, func(t *testing.T) {
			text := repeat(run.unit, 1<<18)
			if got, want := tok.Decode(tok.EncodeWithAdded(text), false), nfc(validUTF8(text)); got != want {
				t.Errorf("decoded text of %d bytes differs from the %d encoded", len(got), len(want))
			}
		})
	}
}

// TestConcurrentUse means most under the race detector.
func TestConcurrentUse(t *testing.T) {
	tok := load(t, demoDir)
	var texts []string
	var want [][]int32
	eachLine(t, func(line struct {
		Text string
		Demo []int32
	}) {
		texts, want = append(texts, line.Text), append(want, line.Demo)
	}, "testdata", "encode.jsonl.gz")
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range texts {
				i = (i + worker*len(texts)/4) % len(texts)
				diffIDs(t, "Encode", texts[i], want[i], tok.Encode(texts[i]))
			}
		})
	}
	all.Wait()
}

// TestMergeOrder compares with the definition of BPE, slow and plain.
func TestMergeOrder(t *testing.T) {
	tok := load(t, demoDir)
	for _, piece := range []string{"a", "the", "conversation", strings.Repeat("the", 50), strings.Repeat("aab", 40), "ééé中中", "    ", "\n\n\n\n\n"} {
		diffIDs(t, "merge", piece, plainMerge(tok, piece), tok.merges.appendMerged(nil, piece, &tok.vocab.ofByte))
	}
}

// plainMerge joins the leftmost pair of the lowest rank until there is none.
func plainMerge(tok *Tokenizer, piece string) []int32 {
	ids := byteIDs(tok, piece)
	for {
		best, at := noMerge, 0
		for i := range len(ids) - 1 {
			if rank := tok.merges.rank(ids[i], ids[i+1]); rank < best {
				best, at = rank, i
			}
		}
		if best == noMerge {
			return ids
		}
		ids = slices.Replace(ids, at, at+2, tok.merges.made[best])
	}
}

func TestIncrementsAreWholeCharacters(t *testing.T) {
	tok := load(t, demoDir)
	eachLine(t, func(line struct{ IDs []int32 }) { checkIncrements(t, tok, line.IDs) }, "testdata", "decode.jsonl.gz")
}

// checkIncrements checks that increments are valid and add up to Decode's text.
func checkIncrements(t *testing.T, tok *Tokenizer, ids []int32) {
	t.Helper()
	for _, skip := range []bool{false, true} {
		d := tok.NewDecoder(skip)
		var all strings.Builder
		for _, id := range ids {
			text := d.Add(id)
			if !utf8.ValidString(text) {
				t.Errorf("Add(%d) in %v = %+q, want UTF-8", id, ids, text)
			}
			all.WriteString(text)
		}
		all.WriteString(d.Flush())
		if want := tok.Decode(ids, skip); all.String() != want {
			t.Errorf("increments of %v give %+q, want %+q", ids, all.String(), want)
		}
	}
}
