package metal

import (
	"io/fs"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"calla/shaders"
)

// twins are the Go structs by the names that shaders/args.h has for them.
var twins = map[string]any{
	"EmbedArgs": embedArgs{}, "NormArgs": normArgs{}, "ProjectArgs": projectArgs{}, "HeadArgs": headArgs{},
	"ArgmaxArgs": argmaxArgs{}, "DeltaArgs": deltaArgs{}, "ChunkArgs": chunkArgs{}, "PrepareArgs": prepareArgs{},
	"AttendArgs": attendArgs{}, "ExpertsArgs": expertsArgs{}, "RouteArgs": routeArgs{}, "MatmulArgs": matmulArgs{},
	"GroupedArgs": groupedArgs{}, "CombineArgs": combineArgs{}, "CopyArgs": copyArgs{},
}

// field is a field of a struct: its name without case and underscores, its type
// and where it lies.
type field struct {
	name, kind string
	offset     uintptr
}

// TestArgsLayout compares every struct of args.h with its twin, field by field.
func TestArgsLayout(t *testing.T) {
	header, err := fs.ReadFile(shaders.Files(), "args.h")
	if err != nil {
		t.Fatal(err)
	}
	structs := parseStructs(t, string(header))
	if len(structs) != len(twins) {
		t.Errorf("args.h has %d structs, Go %d", len(structs), len(twins))
	}
	for name, want := range structs {
		twin, ok := twins[name]
		if !ok {
			t.Errorf("%s has no twin", name)
			continue
		}
		var got []field
		typ := reflect.TypeOf(twin)
		for i := range typ.NumField() {
			f := typ.Field(i)
			got = append(got, field{strings.ToLower(f.Name), f.Type.Kind().String(), f.Offset})
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\nGo     %v\nargs.h %v", name, got, want)
		}
		if n := len(argBytes(twin)); uintptr(n) != typ.Size() {
			t.Errorf("%s: laid out in %d bytes, want %d", name, n, typ.Size())
		}
	}
}

var (
	structText = regexp.MustCompile(`struct (\w+) \{([^}]*)\}`)
	comment    = regexp.MustCompile(`//[^\n]*`)
)

// parseStructs reads structs of uint and float, by C's rules of layout.
func parseStructs(t *testing.T, src string) map[string][]field {
	kinds := map[string]string{"uint": "uint32", "float": "float32"}
	out := map[string][]field{}
	for _, m := range structText.FindAllStringSubmatch(comment.ReplaceAllString(src, ""), -1) {
		var fields []field
		for decl := range strings.SplitSeq(m[2], ";") {
			typ, names, ok := strings.Cut(strings.TrimSpace(decl), " ")
			if !ok {
				continue
			}
			kind, ok := kinds[typ]
			if !ok {
				t.Fatalf("%s: a field of type %s, want uint or float", m[1], typ)
			}
			for name := range strings.SplitSeq(names, ",") {
				name = strings.ReplaceAll(strings.TrimSpace(name), "_", "")
				fields = append(fields, field{name, kind, uintptr(4 * len(fields))})
			}
		}
		out[m[1]] = fields
	}
	return out
}
