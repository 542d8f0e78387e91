package schema

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"calla/core/grammar/dfa"
)

type suiteGroup struct {
	File, Description string
	Schema            json.RawMessage
	Tests             []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

func readSuite(t *testing.T) []suiteGroup {
	t.Helper()
	f, err := os.Open("testdata/suite.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var suite struct{ Groups []suiteGroup }
	if err := json.NewDecoder(z).Decode(&suite); err != nil {
		t.Fatal(err)
	}
	return suite.Groups
}

// otherForms are valid values of the suite that are not of the form in which
// answers are written: by file and a part of the case's description.
var otherForms = []struct{ file, of, why string }{
	{"type", "float with zero fractional part", "integers are written without a point"},
	{"type", "bignum", "numbers without bounds have 18 digits"},
	{"const", "float", "constants are written as in the schema"},
	{"const", "integer -2 is valid", "constants are written as in the schema"},
	{"enum", "float", "constants are written as in the schema"},
	{"enum", "[0.0]", "constants are written as in the schema"},
	{"enum", "[1.0]", "constants are written as in the schema"},
	{"date-time", "leap second", "no leap seconds"},
	{"date-time", "case-insensitive", "capital T and Z"},
	{"date-time", "fifteen nines", "nine digits of a second"},
	{"time", "leap second", "no leap seconds"},
	{"time", "case-insensitive", "capital T and Z"},
	{"duration", "many digits", "nine digits"},
	{"email", "quoted string", "no quoted local parts"},
	{"email", "address-literal", "names of hosts only"},
	{"hostname", "maximum label length", "shorter labels"},
	{"hostname", "A-label", "no encoded names"},
	{"hostname", "consecutive hyphens", "nothing like an encoded name"},
	{"ipv6", "ipv4", "groups only"},
	{"ipv6", "mixed format", "groups only"},
	{"ipv6", "long valid", "groups only"},
	{"uri", "URL", "names of hosts only"},
}

func otherForm(file, description string) bool {
	for _, f := range otherForms {
		if strings.HasSuffix(file, f.file) && strings.Contains(description, f.of) {
			return true
		}
	}
	return false
}

// TestSuite holds grammars against the cases of the JSON-Schema-Test-Suite: of a
// schema that is taken, each valid value has a text in the grammar, and no
// invalid one has.
func TestSuite(t *testing.T) {
	v := byteVocabulary(t)
	taken, refused, cases, forms := 0, 0, 0, 0
	for _, g := range readSuite(t) {
		gram, err := Output{Answer: g.Schema}.Grammar()
		if err != nil {
			var fault *Error
			if !errors.As(err, &fault) {
				t.Errorf("%s: %s: %v", g.File, g.Description, err)
			}
			for _, c := range g.Tests {
				if c.Valid && strings.Contains(err.Error(), "nothing fits") {
					t.Errorf("%s: %s: nothing fits, but %s does", g.File, g.Description, c.Data)
				}
			}
			t.Logf("refused: %s: %s: %v", g.File, g.Description, err)
			refused++
			continue
		}
		taken++
		a := bind(t, v, gram, nil)
		for _, c := range g.Tests {
			cases++
			got := slices.ContainsFunc(texts(t, c.Data), func(s string) bool { return reads(a, s) })
			if got == c.Valid {
				continue
			}
			if c.Valid && otherForm(g.File, g.Description+c.Description) {
				forms++
				continue
			}
			t.Errorf("%s: %s: %s: %s is read %v, valid %v", g.File, g.Description, c.Description, c.Data, got, c.Valid)
		}
	}
	if taken < 120 || cases < 800 || forms > 60 {
		t.Errorf("%d schemas taken with %d cases, %d of another form: the test sees too little", taken, cases, forms)
	}
	t.Logf("%d schemas taken with %d cases (%d valid ones of another form), %d refused", taken, cases, forms, refused)
}

// texts returns a value's text with the members of its objects in every order,
// as long as they are few.
func texts(t *testing.T, raw json.RawMessage) []string {
	t.Helper()
	v, err := parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return v.orders()
}

func (v *value) orders() []string {
	switch v.kind {
	case text:
		return []string{dfa.Quote(v.text)}
	case array:
		parts := []string{""}
		for _, item := range v.items {
			parts = crossed(parts, "", item.orders())
		}
		return wrapped("[", parts, "]")
	case object:
		var all []string
		for _, order := range permutations(v.members) {
			parts := []string{""}
			for _, m := range order {
				parts = crossed(parts, dfa.Quote(m.name)+":", m.value.orders())
			}
			all = append(all, wrapped("{", parts, "}")...)
		}
		return all
	}
	return []string{v.literal}
}

// crossed appends a name and each of some values to each of some beginnings.
func crossed(begun []string, name string, values []string) []string {
	var all []string
	for _, b := range begun {
		for _, v := range values {
			if b != "" {
				b = strings.TrimSuffix(b, ",") + ","
			}
			all = append(all, b+name+v)
		}
	}
	return all
}

func wrapped(open string, parts []string, end string) []string {
	for i, p := range parts {
		parts[i] = open + p + end
	}
	return parts
}

func permutations(m []member) [][]member {
	if len(m) < 2 || len(m) > 5 {
		return [][]member{m}
	}
	var all [][]member
	for i := range m {
		rest := slices.Delete(slices.Clone(m), i, i+1)
		for _, p := range permutations(rest) {
			all = append(all, append([]member{m[i]}, p...))
		}
	}
	return all
}
