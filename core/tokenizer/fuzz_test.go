package tokenizer

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzRoundTrip encodes any bytes and decodes the ids again.
func FuzzRoundTrip(f *testing.F) {
	tok := load(f, demoDir)
	for _, tt := range brokenUTF8 {
		f.Add(tt.text)
	}
	eachLine(f, func(line struct{ Text string }) {
		if len(line.Text) < 200 {
			f.Add(line.Text)
		}
	}, "testdata", "encode.jsonl.gz")
	f.Fuzz(func(t *testing.T, text string) {
		valid := validUTF8(text)
		if utf8.ValidString(text) && valid != text {
			t.Errorf("validUTF8(%+q) = %+q, want no change", text, valid)
		}
		want := nfc(valid)
		if plain, ok := plainNFC(valid); ok && want != plain {
			t.Errorf("nfc(%+q) = %+q, want %+q", valid, want, plain)
		}
		if got := strings.Join(pieces(valid), ""); got != want {
			t.Errorf("pieces of %+q make %+q, want %+q", valid, got, want)
		}
		ids := tok.Encode(text)
		if got := tok.Decode(ids, true); got != want {
			t.Errorf("Decode(Encode(%+q)) = %+q, want %+q", text, got, want)
		}
		diffIDs(t, "a second Encode", text, ids, tok.Encode(text))
		for _, piece := range pieces(valid) {
			diffIDs(t, "merge", piece, plainMerge(tok, piece), tok.merges.appendMerged(nil, piece, &tok.vocab.ofByte))
		}
	})
}

// FuzzDecoder takes two bytes for an id; the demo vocabulary has 5,127.
func FuzzDecoder(f *testing.F) {
	tok := load(f, demoDir)
	eachLine(f, func(line struct{ IDs []int32 }) {
		var data []byte
		for _, id := range line.IDs {
			data = binary.LittleEndian.AppendUint16(data, uint16(id))
		}
		f.Add(data)
	}, "testdata", "decode.jsonl.gz")
	f.Fuzz(func(t *testing.T, data []byte) {
		var ids []int32
		for ; len(data) >= 2; data = data[2:] {
			ids = append(ids, int32(binary.LittleEndian.Uint16(data)%6000))
		}
		checkIncrements(t, tok, ids)
	})
}

// FuzzLoad reads any bytes for both files. What loads has to work. Minimising
// inputs of this size takes all the time unless -fuzzminimizetime is 10x or so.
func FuzzLoad(f *testing.F) {
	small, err := os.ReadFile(filepath.Join(tinyDir, "tokenizer.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(small, []byte("{}"))
	f.Add(marshal(f, file()), []byte(`{"eos_token": {"content": "<s>"}, "added_tokens_decoder": {"258": {"content": "<s>", "special": true}}}`))
	f.Fuzz(func(t *testing.T, tokenizer, config []byte) {
		tok, err := Load(tokenizer, config)
		if err != nil {
			return
		}
		const text = "Hé <s>abc<|im_end|> \xff"
		if got, want := tok.Decode(tok.Encode(text), false), "Hé <s>abc<|im_end|> \uFFFD"; got != want {
			t.Errorf("decoded %+q, want %+q", got, want)
		}
		for _, id := range tok.EncodeWithAdded(text) {
			if id < 0 || int(id) >= tok.VocabSize() {
				t.Errorf("id %d in a vocabulary of %d", id, tok.VocabSize())
			}
		}
	})
}
