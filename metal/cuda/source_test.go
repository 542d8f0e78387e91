package cuda

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// source parses testdata/kernels.ptx.
func source(t *testing.T) *Source {
	t.Helper()
	b, err := os.ReadFile("testdata/kernels.ptx")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(string(b))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParse(t *testing.T) {
	s := source(t)
	if got, want := s.Kernels(), []string{"faulty", "nonsense", "plain", "strange", "width"}; !slices.Equal(got, want) {
		t.Errorf("kernels %v, want %v", got, want)
	}
	if got := s.Params("plain"); got != 3 {
		t.Errorf("%d parameters, want 3", got)
	}
	for name, text := range map[string]string{
		"nothing":       "",
		"no kernel":     ".version 8.0\n",
		"a function":    ".version 8.0\n.func f(\n.visible .entry msl_x(\n)\n{\n}\n",
		"an entry torn": ".version 8.0\n.visible .entry msl_x(\n)\n{\n",
	} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestSpecialise(t *testing.T) {
	s := source(t)
	text, err := s.Specialise("width", [4]uint32{2048, 0, 7})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"mov.u32 \t%r1, 2048;", "mov.u64 \t%rd3, 7;", ".version 8.0", ".file\t1", "msl_width"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	for _, other := range []string{".entry msl_plain", "ld.const"} {
		if strings.Contains(text, other) {
			t.Errorf("%q is in:\n%s", other, text)
		}
	}
	for _, tt := range []struct {
		name, kernel string
		constants    [4]uint32
		want         string
	}{
		{"no such kernel", "none", [4]uint32{}, "no kernel none"},
		{"a constant without a value", "width", [4]uint32{2048}, "function constant 2 is 0"},
		{"a value without a constant", "plain", [4]uint32{0, 3}, "function constant 1 is 3"},
		{"a constant read otherwise", "strange", [4]uint32{5}, "in an unknown way"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := s.Specialise(tt.kernel, tt.constants); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
