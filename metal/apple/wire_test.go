package apple

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// twins are the Go structs by the names that shim_darwin.h has for them.
var twins = map[string]any{
	"calla_facts": deviceFacts{}, "calla_pipeline_spec": pipelineSpec{}, "calla_record": record{},
	"calla_binding": binding{}, "calla_result": result{}, "calla_move": move{},
}

var (
	structText  = regexp.MustCompile(`typedef struct \{([^}]*)\} (\w+);`)
	comment     = regexp.MustCompile(`//[^\n]*`)
	declaration = regexp.MustCompile(`^(\w+) (\w+)(?:\[(\d)\])?$`)
)

// field is a field of a struct: its name without case and underscores, where it
// lies and its bytes.
type field struct {
	name         string
	offset, size uintptr
}

// TestLayout compares every struct that crosses to C with its twin, by C's rules
// of layout on arm64: each number on its own alignment.
func TestLayout(t *testing.T) {
	header, err := os.ReadFile("shim_darwin.h")
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]uintptr{"uint64_t": 8, "int64_t": 8, "double": 8, "uint32_t": 4, "int32_t": 4}
	seen := 0
	for _, m := range structText.FindAllStringSubmatch(comment.ReplaceAllString(string(header), ""), -1) {
		twin, ok := twins[m[2]]
		if !ok {
			if m[2] != "calla_error" { // read field by field
				t.Errorf("%s has no twin", m[2])
			}
			continue
		}
		seen++
		want, end := []field(nil), uintptr(0)
		for d := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(m[1]), ";"), ";") {
			f := declaration.FindStringSubmatch(strings.TrimSpace(d))
			if f == nil || sizes[f[1]] == 0 {
				t.Fatalf("%s: field %q, want a number or an array of them", m[2], d)
			}
			size, n := sizes[f[1]], uintptr(1)
			if f[3] != "" {
				n = uintptr(f[3][0] - '0')
			}
			at := (end + size - 1) / size * size
			want = append(want, field{strings.ReplaceAll(f[2], "_", ""), at, n * size})
			end = at + n*size
		}
		typ := reflect.TypeOf(twin)
		var got []field
		for i := range typ.NumField() {
			f := typ.Field(i)
			got = append(got, field{strings.ToLower(f.Name), f.Offset, f.Type.Size()})
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\nGo %v\nC  %v", m[2], got, want)
		}
		if typ.Size()%8 != 0 {
			t.Errorf("%s has %d bytes: C pads its end to a multiple of 8", m[2], typ.Size())
		}
	}
	if seen != len(twins) {
		t.Errorf("shim_darwin.h has %d of the %d twins", seen, len(twins))
	}
}

// TestFlags compares the flags of a record.
func TestFlags(t *testing.T) {
	header, err := os.ReadFile("shim_darwin.h")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"CALLA_BARRIER": "1", "CALLA_COMMAND": "2", "CALLA_ENCODER": "4", "CALLA_WAIT": "8", "CALLA_UPDATE": "16",
	} {
		if !strings.Contains(string(header), name+" = "+want+",") {
			t.Errorf("%s is not %s", name, want)
		}
	}
	if barrier != 1 || newCommand != 2 || newEncoder != 4 || waitsFence != 8 || updatesFence != 16 {
		t.Error("Go's flags are others")
	}
}
