package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
)

// oneTensor is the header of one tensor with the given description.
func oneTensor(description string) string { return `{"a":` + description + `}` }

func TestParseHeader(t *testing.T) {
	const text = ` {"dtype" : "BF16", "shape":[2, 3] ,"data_offsets":[0,12]}`
	for _, tt := range []struct {
		name, text string
		want       string // name dtype shape begin-end of each tensor
	}{
		{"nothing", `{}`, ""},
		{"white space", "{ \r\n\t}  \n", ""},
		{"only metadata", `{"__metadata__":{"format":"mlx","a":"\u00e9"}}`, ""},
		{"one tensor", oneTensor(text), "a BF16 [2 3] 0-12;"},
		{"fields in another order", oneTensor(`{"data_offsets":[1,2],"shape":[],"dtype":"U8"}`), "a U8 [] 1-2;"},
		{"tensors by name", `{"b":` + text + `,"__metadata__":{},"a":` + text + `}`, "a BF16 [2 3] 0-12;b BF16 [2 3] 0-12;"},
		{"a name with escapes", `{"\u0061\"\n\ud83d\ude00":` + text + `}`, "a\"\n😀 BF16 [2 3] 0-12;"},
		{"no elements", oneTensor(`{"dtype":"F32","shape":[0,9223372036854775807],"data_offsets":[7,7]}`), "a F32 [0 9223372036854775807] 7-7;"},
		{"half bytes", oneTensor(`{"dtype":"F4","shape":[6],"data_offsets":[0,3]}`), "a F4 [6] 0-3;"},
		{"beyond 32 bits", oneTensor(`{"dtype":"U32","shape":[3,1073741824],"data_offsets":[5000000000,17884901888]}`),
			"a U32 [3 1073741824] 5000000000-17884901888;"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			entries, err := parseHeader(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for i := range entries {
				e := &entries[i]
				got += fmt.Sprintf("%s %s %v %d-%d;", e.name, e.dtype, e.shape(), e.begin, e.end)
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParseHeaderRefuses(t *testing.T) {
	const good = `{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}`
	for _, tt := range []struct{ name, text, words string }{
		{"empty", ``, "no JSON object"},
		{"white space first", ` {}`, "no JSON object"},
		{"an array", `[]`, "no JSON object"},
		{"cut", `{"a":{"dtype":"BF1`, "a string without an end"},
		{"cut after a comma", `{"a":` + good + `,`, `the end`},
		{"a comma too many", `{"a":` + good + `,}`, `a comma before '}'`},
		{"no comma", `{"a":` + good + `"b":` + good + `}`, `want ',' or '}'`},
		{"more behind", `{}{}`, "after the end"},
		{"a zero byte behind", "{}\x00", "after the end"},
		{"a name twice", `{"a":` + good + `,"a":` + good + `}`, `"a" is there twice`},
		{"a name twice by an escape", `{"a":` + good + `,"\u0061":` + good + `}`, `"a" is there twice`},
		{"metadata twice", `{"__metadata__":{},"__metadata__":{}}`, "__metadata__ a second time"},
		{"metadata no object", `{"__metadata__":"mlx"}`, "__metadata__"},
		{"metadata with numbers", `{"__metadata__":{"a":1}}`, "__metadata__: byte 21"},
		{"metadata nested", `{"__metadata__":{"a":{}}}`, "__metadata__"},
		{"a tensor that is a list", oneTensor(`[]`), `tensor "a": byte 5: "[", want '{'`},
		{"a tensor that nests", oneTensor(strings.Repeat(`{"a":`, 1000)), `unknown field "a"`},
		{"no dtype", oneTensor(`{"shape":[],"data_offsets":[0,1]}`), "want dtype, shape and data_offsets"},
		{"no shape", oneTensor(`{"dtype":"U8","data_offsets":[0,1]}`), "want dtype, shape and data_offsets"},
		{"no offsets", oneTensor(`{"dtype":"U8","shape":[]}`), "want dtype, shape and data_offsets"},
		{"dtype twice", oneTensor(`{"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]}`), "dtype a second time"},
		{"shape twice", oneTensor(`{"dtype":"U8","shape":[],"shape":[],"data_offsets":[0,1]}`), "shape a second time"},
		{"offsets twice", oneTensor(`{"dtype":"U8","shape":[],"data_offsets":[0,1],"data_offsets":[0,1]}`), "data_offsets a second time"},
		{"an unknown field", oneTensor(`{"dtype":"U8","shape":[],"data_offsets":[0,1],"strides":[1]}`), `unknown field "strides"`},
		{"an unknown dtype", oneTensor(`{"dtype":"Q4_K","shape":[],"data_offsets":[0,1]}`), `unknown element type "Q4_K"`},
		{"dtype in lower case", oneTensor(`{"dtype":"bf16","shape":[1],"data_offsets":[0,2]}`), `unknown element type "bf16"`},
		{"dtype is a number", oneTensor(`{"dtype":4,"shape":[],"data_offsets":[0,1]}`), "dtype: byte"},
		{"a negative extent", oneTensor(`{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}`), ": -1, want an integer from 0"},
		{"a fraction", oneTensor(`{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}`), "1.0, want an integer"},
		{"an exponent", oneTensor(`{"dtype":"U8","shape":[1e0],"data_offsets":[0,1]}`), "1e0, want an integer"},
		{"a leading zero", oneTensor(`{"dtype":"U8","shape":[01],"data_offsets":[0,1]}`), `"1", want ',' or ']'`},
		{"an extent beyond 64 bits", oneTensor(`{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1]}`), "9223372036854775808, want an integer"},
		{"a product beyond 64 bits", oneTensor(`{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}`), "does not fit 64 bits"},
		{"a product that would wrap to the right size", oneTensor(`{"dtype":"U8","shape":[3074457345618258603,6],"data_offsets":[0,2]}`), "does not fit 64 bits"},
		{"nine axes", oneTensor(`{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}`), "more than 8 numbers"},
		{"text in a shape", oneTensor(`{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}`), "want a number"},
		{"one offset", oneTensor(`{"dtype":"U8","shape":[],"data_offsets":[0]}`), "1 numbers, want 2"},
		{"three offsets", oneTensor(`{"dtype":"U8","shape":[],"data_offsets":[0,1,2]}`), "more than 2 numbers"},
		{"a negative offset", oneTensor(`{"dtype":"U8","shape":[],"data_offsets":[-1,0]}`), "-1, want an integer from 0"},
		{"an offset beyond 64 bits with a header", oneTensor(fmt.Sprintf(`{"dtype":"U8","shape":[],"data_offsets":[%d,%d]}`, math.MaxInt64-1, math.MaxInt64)), "want an integer from 0"},
		{"ends before it begins", oneTensor(`{"dtype":"U8","shape":[],"data_offsets":[2,1]}`), "ends before it begins"},
		{"a byte too few", oneTensor(`{"dtype":"BF16","shape":[2,3],"data_offsets":[0,11]}`), "11 bytes, but BF16 [2 3] has 96 bits"},
		{"a byte too many", oneTensor(`{"dtype":"BF16","shape":[2,3],"data_offsets":[0,13]}`), "13 bytes, but BF16 [2 3] has 96 bits"},
		{"half a byte", oneTensor(`{"dtype":"F4","shape":[3],"data_offsets":[0,1]}`), "1 bytes, but F4 [3] has 12 bits"},
		{"not UTF-8", "{\"\xff\":" + good + "}", "not UTF-8"},
		{"half a surrogate pair", `{"\ud800":` + good + `}`, "half a surrogate pair"},
		{"two first halves", `{"\ud800\ud800":` + good + `}`, "half a surrogate pair"},
		{"an unknown escape", `{"\x41":` + good + `}`, "an unknown escape"},
		{"a cut escape", `{"\u12":` + good + `}`, "an unknown escape"},
		{"a line break in a name", "{\"a\nb\":" + good + "}", "a control character"},
		{"a line break after an escape", "{\"\\ta\nb\":" + good + "}", "a control character"},
		{"a byte order mark", "\ufeff{}", "no JSON object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			entries, err := parseHeader(tt.text)
			if err == nil {
				t.Fatalf("accepted as %d tensors", len(entries))
			}
			if !strings.Contains(err.Error(), tt.words) {
				t.Errorf("error %q, want the words %q", err, tt.words)
			}
		})
	}
}

func TestDataEnd(t *testing.T) {
	for _, tt := range []struct {
		name   string
		ranges [][2]int64
		want   int64
		words  string // of the error
	}{
		{"nothing", nil, 0, ""},
		{"in a row", [][2]int64{{0, 4}, {4, 6}, {6, 7}}, 7, ""},
		{"out of order", [][2]int64{{4, 6}, {6, 7}, {0, 4}}, 7, ""},
		{"empty ones between", [][2]int64{{4, 4}, {0, 4}, {4, 6}, {0, 0}, {6, 6}}, 6, ""},
		{"beyond 32 bits", [][2]int64{{1 << 33, 1<<33 + 1}, {0, 1 << 33}}, 1<<33 + 1, ""},
		{"one inside another", [][2]int64{{0, 8}, {2, 4}}, 0, "overlap: bytes 0 to 8 and 2 to 4"},
		{"the same range", [][2]int64{{0, 8}, {0, 8}}, 0, "overlap"},
		{"a byte shared", [][2]int64{{0, 5}, {4, 8}}, 0, "overlap: bytes 0 to 5 and 4 to 8"},
		{"a hole", [][2]int64{{0, 4}, {5, 8}}, 0, "begins at byte 5 of the data, want 4"},
		{"a hole before the first", [][2]int64{{2, 4}}, 0, "begins at byte 2 of the data, want 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var entries []entry
			for i, r := range tt.ranges {
				entries = append(entries, entry{name: fmt.Sprint("t", i), begin: r[0], end: r[1]})
			}
			got, err := dataEnd(entries)
			if (err != nil) != (tt.words != "") || err != nil && !strings.Contains(err.Error(), tt.words) {
				t.Fatalf("error %v, want the words %q", err, tt.words)
			}
			if got != tt.want {
				t.Errorf("ends at %d, want %d", got, tt.want)
			}
		})
	}
}

// TestHeaderMemory holds parsing to 16 bytes of memory for each byte of header,
// whatever the header is made of.
func TestHeaderMemory(t *testing.T) {
	const size = 256 << 10
	list := func(item string) string {
		return strings.TrimSuffix(strings.Repeat(item+",", size/(len(item)+1)), ",")
	}
	var tiny, long, escaped strings.Builder
	for i := range size / 55 {
		fmt.Fprintf(&tiny, `,"%x":{"dtype":"U8","shape":[],"data_offsets":[0,1]}`, i)
	}
	for i := range size / 1100 {
		fmt.Fprintf(&long, `,"%s%d":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1],"data_offsets":[0,1]}`, strings.Repeat("n", 1000), i)
		fmt.Fprintf(&escaped, `,"%s%d":{"dtype":"U8","shape":[],"data_offsets":[0,1]}`, strings.Repeat(`\u0061`, 170), i)
	}
	for _, tt := range []struct{ name, text string }{
		{"the smallest tensors", "{" + tiny.String()[1:] + "}"},
		{"long names", "{" + long.String()[1:] + "}"},
		{"names of escapes", "{" + escaped.String()[1:] + "}"},
		{"one long string of escapes", `{"__metadata__":{"a":"` + strings.Repeat(`\n`, size/2) + `"}}`},
		{"metadata of short escapes", `{"__metadata__":{` + list(`"\n":"\n"`) + `}}`},
		{"metadata of nothing", `{"__metadata__":{` + list(`"":""`) + `}}`},
		{"braces", strings.Repeat("{", size)},
		{"braces in a name", `{"` + strings.Repeat("{", size) + `":1}`},
		{"nested objects", strings.Repeat(`{"a":`, size/5)},
		{"nested arrays", `{"a":` + strings.Repeat("[", size)},
		{"a long shape", oneTensor(`{"shape":[` + list("1") + `]}`)},
		{"a long number", oneTensor(`{"shape":[` + strings.Repeat("9", size) + `]}`)},
		{"a long unknown field", oneTensor(`{"` + strings.Repeat("f", size) + `":1}`)},
		{"a long unknown dtype", oneTensor(`{"dtype":"` + strings.Repeat("D", size) + `","shape":[],"data_offsets":[0,1]}`)},
		{"a long name twice", `{"` + strings.Repeat("n", size/2) + `":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"` +
			strings.Repeat("n", size/2) + `":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`},
		{"no string end", `{"` + strings.Repeat("a", size)},
		{"white space", "{" + strings.Repeat(" ", size) + "}"},
		{"quotes", "{" + strings.Repeat(`"`, size)},
		{"noise", "{" + strings.Repeat("\xff\x00", size/2)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := allocated(func() { parseHeader(tt.text) })
			if most := 16 * uint64(len(tt.text)); got > most {
				t.Errorf("%d bytes allocated for %d of header, want at most %d", got, len(tt.text), most)
			}
			whole := string(binary.LittleEndian.AppendUint64(nil, uint64(len(tt.text)))) + tt.text
			src := Memory("test", map[string][]byte{"x": []byte(whole)})
			got = allocated(func() { openShard(src, "x") })
			if most := 16 * uint64(len(tt.text)); got > most {
				t.Errorf("opening: %d bytes allocated for %d of header, want at most %d", got, len(tt.text), most)
			}
		})
	}
}

// allocated returns the bytes that f allocates, of several runs the fewest:
// other goroutines of the test may allocate too.
func allocated(f func()) uint64 {
	least := uint64(math.MaxUint64)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// FuzzHeader checks what parseHeader promises, against encoding/json: what it
// accepts is JSON and says the same there, and memory stays bounded.
func FuzzHeader(f *testing.F) {
	f.Add(`{"__metadata__":{"format":"mlx"},"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}`)
	f.Add(`{"a":{"data_offsets":[0,3],"dtype":"F4","shape":[6]},"\u00e9\ud83d\ude00":{"dtype":"U8","shape":[],"data_offsets":[3,4]}}  `)
	f.Add(`{"a":{"dtype":"U8","shape":[3074457345618258603,6],"data_offsets":[0,2]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := parseHeader(text)
		if err != nil {
			return
		}
		var want map[string]struct {
			DType   string   `json:"dtype"`
			Shape   []int64  `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("accepted what is no JSON: %v", err)
		}
		delete(all, "__metadata__")
		rest, _ := json.Marshal(all)
		if err := json.Unmarshal(rest, &want); err != nil {
			t.Fatalf("accepted what is no header: %v", err)
		}
		if len(entries) != len(want) {
			t.Fatalf("%d tensors, want %d", len(entries), len(want))
		}
		for i := range entries {
			e := &entries[i]
			w, ok := want[e.name]
			if !ok || e.dtype != w.DType || e.begin != w.Offsets[0] || e.end != w.Offsets[1] ||
				fmt.Sprint(e.shape()) != fmt.Sprint(w.Shape) {
				t.Errorf("got %q %+v, want %+v", e.name, e, w)
			}
		}
		if end, err := dataEnd(entries); err == nil && end < 0 {
			t.Errorf("data ends at %d", end)
		}
	})
}
