package checkpoint

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// decode turns a value into what encoding/json makes of it.
func (v value) decode() any {
	switch {
	case v.isObject():
		m := map[string]any{}
		for name, x := range v.members() {
			m[name] = x.decode()
		}
		return m
	case v.isArray():
		list := []any{}
		for x := range v.items() {
			list = append(list, x.decode())
		}
		return list
	case v.isNull():
		return nil
	}
	if t, ok := v.text(); ok {
		return t
	}
	if b, ok := v.boolean(); ok {
		return b
	}
	return json.Number(v)
}

func TestParseJSON(t *testing.T) {
	for _, text := range []string{
		`null`, `true`, ` false `, `0`, `-0`, `-12.50e+3`, `1E9`, `""`, `"a\/\b\f\n\r\t\\\""`, `"\u20ac\uD83D\uDE00é"`,
		`[]`, `[ ]`, `{}`, `[1,[2,{"a":[]}],"x"]`, `{"a":{"b":null},"c":[true,false],"":0}`, "\t{\r\n\"a\" : 1 , \"A\": 2 }\n",
		strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth),
	} {
		v, err := parseJSON(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if got := v.decode(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, want %#v", text, got, want)
		}
	}
}

func TestParseJSONRefuses(t *testing.T) {
	for _, tt := range []struct{ name, text, words string }{
		{"nothing", "", "byte 0: the end, want a value"},
		{"white space", " \n", "byte 2: the end"},
		{"a word", "nul", `byte 0: "n", want a value`},
		{"two values", "1 2", `byte 2: "2" after the end`},
		{"a comment", "{} // x", "after the end"},
		{"single quotes", "{'a':1}", `want '"'`},
		{"no colon", `{"a" 1}`, `"1", want ':'`},
		{"a trailing comma", `[1,]`, "a comma before ']'"},
		{"a leading comma", `[,1]`, `",", want a value`},
		{"no close", `{"a":[1}`, `"}", want ',' or ']'`},
		{"a plus", "+1", "want a value"},
		{"a leading zero", "-01", "after the end"},
		{"only a minus", "-", "want a number"},
		{"no fraction", "1.", "want a digit after the point"},
		{"no exponent", "1e+", "want a digit of the exponent"},
		{"hexadecimal", "0x10", "after the end"},
		{"not a number", "NaN", "want a value"},
		{"infinity", "-Infinity", "want a number"},
		{"a name twice", `{"a":1,"b":2,"a":3}`, `"a" is there twice`},
		{"a name twice, deeper", `[{"a":{"x":1,"\u0078":2}}]`, `"x" is there twice`},
		{"too deep", strings.Repeat("[", maxDepth+1), "deeper than 32 levels"},
		{"very deep", strings.Repeat(`{"a":`, 1<<20), "deeper than 32 levels"},
		{"a zero byte", "[\x00]", "want a value"},
		{"a zero byte behind", "1\x00", "after the end"},
		{"half a character", "\"\xc3\"", "not UTF-8"},
		{"half a character after an escape", "\"\\n\xc3\"", "not UTF-8"},
		{"a surrogate in UTF-8", "\"\xed\xa0\x80\"", "not UTF-8"},
		{"the second half of a pair", `"\udc00"`, "half a surrogate pair"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := parseJSON(tt.text)
			if err == nil {
				t.Fatalf("accepted as %q", string(v))
			}
			if !strings.Contains(err.Error(), tt.words) {
				t.Errorf("error %q, want the words %q", err, tt.words)
			}
		})
	}
}

// TestNumbers goes through what a number may be asked for.
func TestNumbers(t *testing.T) {
	for _, tt := range []struct {
		text      value
		isInteger bool
		isNumber  bool
	}{
		{"7", true, true}, {"-7", true, true}, {"7.0", false, true}, {"7e0", false, true}, {"1e999", false, false},
		{"9223372036854775808", false, true}, {`"7"`, false, false}, {"true", false, false}, {"", false, false},
	} {
		if _, got := tt.text.integer(); got != tt.isInteger {
			t.Errorf("%q is an integer: %v, want %v", string(tt.text), got, tt.isInteger)
		}
		if _, got := tt.text.number(); got != tt.isNumber {
			t.Errorf("%q is a number: %v, want %v", string(tt.text), got, tt.isNumber)
		}
	}
}

// TestShorten keeps messages to a line and whole characters.
func TestShorten(t *testing.T) {
	long := strings.Repeat("é", 100)
	if got, want := value(`"`+long).String(), `"`+strings.Repeat("é", 29)+"..."; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := quote(long), `"`+strings.Repeat("é", 60)+`"...`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzJSON compares with encoding/json: whatever we accept it accepts too, with
// the same content.
func FuzzJSON(f *testing.F) {
	f.Add(`{"a":[1,-2.5e3,"\u00e9\ud83d\ude00",{"b":null}],"c":true}`)
	f.Add(`["\"\\\/\b\f\n\r\t",0.1,{}]`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseJSON(text)
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var want any
		wantErr := d.Decode(&want)
		if err != nil {
			return
		}
		if wantErr != nil {
			t.Fatalf("accepted what is no JSON: %v", wantErr)
		}
		if got := v.decode(); !reflect.DeepEqual(got, want) {
			t.Errorf("got %#v, want %#v", got, want)
		}
		_ = slices.Collect(v.items())
	})
}
