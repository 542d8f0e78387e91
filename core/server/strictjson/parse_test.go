package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

var limits = Limits{Depth: 8, Values: 100}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing", "", "end of input"},
		{"white space alone", " \n", "end of input"},
		{"byte order mark", "\ufeff{}", "want a value"},
		{"two values", "{} {}", "bytes after"},
		{"NUL after the value", "{}\x00", "bytes after"},
		{"word cut short", "tru", "want a value"},
		{"word in capitals", "True", "want a value"},
		{"NaN", "NaN", "want a value"},
		{"single quotes", "'a'", "want a value"},
		{"comment", "/**/{}", "want a value"},
		{"trailing comma in an array", "[1,]", "want a value"},
		{"trailing comma in an object", `{"a":1,}`, "want a name"},
		{"missing comma", `[1 2]`, "want ',' or ']'"},
		{"missing colon", `{"a" 1}`, "want ':'"},
		{"name without quotes", `{a:1}`, "want a name"},
		{"open array", `[1`, "want ',' or ']'"},
		{"open object", `{"a":1`, "want ',' or '}'"},
		{"open string", `"abc`, "end of input within"},
		{"leading zero", "01", "bytes after"},
		{"leading plus", "+1", "want a value"},
		{"bare minus", "-", "want a digit"},
		{"no digit after the point", "1.", "want a digit"},
		{"no digit before the point", ".5", "want a value"},
		{"no digit in the exponent", "1e+", "want a digit"},
		{"raw newline in a string", "\"a\nb\"", "control character"},
		{"raw NUL in a string", "\"a\x00b\"", "control character"},
		{"unknown escape", `"\x41"`, "unknown escape"},
		{"short escape", `"\u12"`, "four hexadecimal"},
		{"byte 0xFF", "\"\xff\"", "invalid UTF-8"},
		{"overlong slash", "\"\xc0\xaf\"", "invalid UTF-8"},
		{"surrogate in UTF-8", "\"\xed\xa0\x80\"", "invalid UTF-8"},
		{"beyond Unicode", "\"\xf4\x90\x80\x80\"", "invalid UTF-8"},
		{"half a character before an escape", "\"\xe6\\n\"", "invalid UTF-8"},
		{"lone high surrogate", `"\ud800"`, "lone surrogate"},
		{"lone low surrogate", `"\udc00"`, "lone surrogate"},
		{"high surrogate and a letter", `"\ud800\u0041"`, "lone surrogate"},
		{"high surrogate and another escape", `"\ud800\n"`, "lone surrogate"},
		{"lone surrogate in a name", `{"\ud800":1}`, "lone surrogate"},
		{"invalid UTF-8 in a name", "{\"\xff\":1}", "invalid UTF-8"},
		{"a name twice", `{"a":1,"b":2,"a":3}`, "has already"},
		{"a name twice, once escaped", `{"a":1,"\u0061":3}`, "has already"},
		{"a name twice, far below", `{"x":[{"a":1,"a":2}]}`, "has already"},
		{"the empty name twice", `{"":1,"":2}`, "has already"},
		{"too deep", strings.Repeat("[", 10000), "deeper than 8"},
		{"too deep in objects", strings.Repeat(`{"a":`, 10000), "deeper than 8"},
		{"too many values", "[" + strings.Repeat("1,", 100) + "1]", "more than 100 values"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.in), limits)
			var fault *Error
			if !errors.As(err, &fault) || !strings.Contains(fault.Fault, tt.want) {
				t.Errorf("Parse(%.40q) = %v, want a fault with %q", tt.in, err, tt.want)
			}
		})
	}
}

func TestParseTakes(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		kind     Kind
		text     string
	}{
		{"white space around", " \t\r\nnull\n", Null, ""},
		{"true", "true", Bool, ""},
		{"big number stays as it is", "123456789012345678901234567890e-5", Number, ""},
		{"minus zero", "-0", Number, ""},
		{"plain text", `"abc"`, String, "abc"},
		{"all escapes", `"\"\\\/\b\f\n\r\t\u0041"`, String, "\"\\/\b\f\n\r\tA"},
		{"pair of surrogates", `"\uD83D\ude00"`, String, "😀"},
		{"replacement character", `"\ufffd"`, String, "\ufffd"},
		{"escaped NUL", `"\u0000"`, String, "\x00"},
		{"DEL is text", "\"\x7f\"", String, "\x7f"},
		{"not a character, but valid", `"\uffff"`, String, "\uffff"},
		{"as deep as allowed", strings.Repeat("[", 8) + strings.Repeat("]", 8), Array, ""},
		{"names that differ in case", `{"a":1,"A":2}`, Object, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := Parse([]byte(tt.in), limits)
			if err != nil {
				t.Fatal(err)
			}
			if v.Kind != tt.kind || v.Text() != tt.text {
				t.Errorf("Parse(%q) = %v %q, want %v %q", tt.in, v.Kind, v.Text(), tt.kind, tt.text)
			}
			if got, want := string(v.Raw), strings.TrimSpace(tt.in); got != want {
				t.Errorf("raw %q, want %q", got, want)
			}
		})
	}
}

func TestManyNames(t *testing.T) {
	var b strings.Builder
	for i := range 3 * longList {
		b.WriteString(`"` + strings.Repeat("n", i+1) + `":1,`)
	}
	if _, err := Parse([]byte("{"+b.String()+`"last":1}`), limits); err != nil {
		t.Errorf("distinct names: %v", err)
	}
	if _, err := Parse([]byte("{"+b.String()+`"nn":1}`), limits); err == nil {
		t.Error("a long object took a name twice")
	}
}

func TestGet(t *testing.T) {
	v, err := Parse([]byte(`{"a":[1,{"b":"c"}]}`), limits)
	if err != nil {
		t.Fatal(err)
	}
	a, ok := v.Get("a")
	if !ok || len(a.Items) != 2 {
		t.Fatalf("a = %v, %t", a, ok)
	}
	if b, ok := a.Items[1].Get("b"); !ok || b.Text() != "c" {
		t.Errorf("b = %q, %t, want c", b.Text(), ok)
	}
	if _, ok := v.Get("A"); ok {
		t.Error("names are matched whatever their case")
	}
}

// FuzzParse holds Parse against encoding/json: what Parse takes is valid there
// and means the same; what is refused is either invalid there too, or one of
// the things that encoding/json lets pass.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,"x\n",null,true]}`, `"\ud83d\ude00"`, "\"\xff\"", `{"a":1,"a":2}`, "[[[[", "\ufeff1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Parse(data, Limits{Depth: 50, Values: 10000})
		if err == nil {
			if !json.Valid(data) || !utf8.Valid(data) {
				t.Fatalf("took %q", data)
			}
			if v.Kind == String {
				var s string
				if err := json.Unmarshal(data, &s); err != nil || s != v.Text() {
					t.Fatalf("text of %q is %q, want %q (%v)", data, v.Text(), s, err)
				}
			}
			return
		}
		fault := err.(*Error)
		lenient := []string{"invalid UTF-8", "lone surrogate", "has already", "deeper", "more than"}
		for _, l := range lenient {
			if strings.Contains(fault.Fault, l) {
				return
			}
		}
		if json.Valid(data) {
			t.Fatalf("refused %q: %v", data, err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	text := bytes.Repeat([]byte(`{"role":"user","content":"some words of a chat, 漢字, and more of them"},`), 1000)
	doc := append(append([]byte(`{"messages":[`), text[:len(text)-1]...), "]}"...)
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if _, err := Parse(doc, Limits{Depth: 100, Values: 1 << 20}); err != nil {
			b.Fatal(err)
		}
	}
}
