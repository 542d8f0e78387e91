package tokenizer

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestJSONReader(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       string // the scalar, or "error: " and a part of the error
	}{
		{"a string", `"aé"`, `"aé"`},
		{"short escapes", `"\"\\\/\b\f\n\r\t"`, "\"\"\\/\b\f\n\r\t\""},
		{"an escape", `"x\u00E9y\u4e2d"`, `"xéy中"`},
		{"a surrogate pair", `"\ud83d\ude00"`, `"😀"`},
		{"half a surrogate pair", `"\ud83d"`, "error: byte 1: half a surrogate pair"},
		{"the wrong half first", `"\ude00\ud83d"`, "error: byte 1: half a surrogate pair"},
		{"half a pair and a letter", `"\ud83dx"`, "error: byte 1: half a surrogate pair"},
		{"an unknown escape", `"\x41"`, "error: byte 1: an unknown escape"},
		{"an escape cut off", `"\u12`, "error: byte 1: an unknown escape"},
		{"an escape with other digits", `"\u00g0"`, "error: byte 1: an unknown escape"},
		{"an escape with control characters", "\"\\u00\x10\x11\"", "error: byte 1: an unknown escape"},
		{"a line end in a string", "\"a\nb\"", "error: byte 2: control character"},
		{"a string without end", `"ab`, "error: byte 0: a string without end"},
		{"a string that is not UTF-8", "\"\xff\"", "error: byte 0: a string that is not UTF-8"},
		{"a number", " -1.5e+3 ", "-1.5e+3"},
		{"true", "true", "true"},
		{"a number with a plus", "+1", "error: byte 0: \"+1\", want a value"},
		{"a number with a leading zero", "01", "error: byte 0: \"01\", want a value"},
		{"Python's infinity", "Infinity", "error: byte 0: \"Infinity\", want a value"},
		{"nothing", "", "error: byte 0: \"\", want a value"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := jsonReader{data: []byte(tt.text)}
			got, err := r.scalar()
			if err == nil {
				err = r.end()
			}
			want, fails := strings.CutPrefix(tt.want, "error: ")
			switch {
			case fails != (err != nil):
				t.Errorf("%s: %q, error %v, want %s", tt.text, got, err, tt.want)
			case fails && !strings.Contains(err.Error(), want):
				t.Errorf("%s: error %v, want %s", tt.text, err, want)
			case !fails && got != want:
				t.Errorf("%s: %q, want %q", tt.text, got, want)
			}
		})
	}
}

// FuzzJSON compares with encoding/json, which is laxer in three things only.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{
		`{"a": [1, 2.5e-3, "x\u00e9\n\ud83d\ude00", true, null, {}, []]}`, `[[[[]]]]`, `"\`, `[1,]`, `{"a":1,}`, `{,}`, "\"\xff\"", `{"a" 1}`, "[1]x", "nul",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := jsonReader{data: data}
		_, err := r.skip()
		if err == nil {
			err = r.end()
		}
		valid := json.Valid(data)
		if err == nil && !valid {
			t.Errorf("%q: read, want an error", data)
		}
		lax := !utf8.Valid(data) || strings.Contains(string(data), `\u`) || strings.Count(string(data), "[")+strings.Count(string(data), "{") > maxDepth
		if err != nil && valid && !lax {
			t.Errorf("%q: %v, want it read", data, err)
		}
		var want string
		if err == nil && json.Unmarshal(data, &want) == nil && string(data) != "null" {
			r := jsonReader{data: data}
			if got, err := r.str(); err == nil && string(got) != want {
				t.Errorf("%q: string %q, want %q", data, got, want)
			}
		}
	})
}
