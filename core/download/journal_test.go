package download

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

var journalFile = File{Name: "x", Size: 25, SHA256: strings.Repeat("0", 64)}

func TestParseJournal(t *testing.T) {
	head := journalHead(journalFile, 10)
	none := []prefix{{}, {}, {}}
	for _, tt := range []struct {
		name, text string
		want       []prefix // nil: no journal of the file
	}{
		{"empty", "", nil},
		{"a torn head", head[:len(head)-1], nil},
		{"of another digest", strings.Replace(head, "sha256:0", "sha256:1", 1), nil},
		{"of other pieces", journalHead(journalFile, 11), nil},
		{"nothing yet", head, none},
		{"a piece", head + "1 10 0000beef\n", []prefix{{}, {10, 0xbeef}, {}}},
		{"a piece that grows", head + "1 4 00000001\n1 8 00000002\n", []prefix{{}, {8, 2}, {}}},
		{"the last, shorter piece", head + "2 5 00000003\n", []prefix{{}, {}, {5, 3}}},
		{"a torn last line", head + "0 10 00000001\n1 10 0000", []prefix{{10, 1}, {}, {}}},
		{"a damaged line", head + "0 10 00000001\n1 1x 00000001\n2 5 00000001\n", []prefix{{10, 1}, {}, {}}},
		{"a piece beyond the file", head + "3 1 00000001\n", none},
		{"a piece before the file", head + "-1 1 00000001\n", none},
		{"more than a piece has", head + "2 6 00000001\n", none},
		{"less than nothing", head + "2 -6 00000001\n", none},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := parseJournal(strings.NewReader(tt.text), journalFile, pieces{25, 10})
			if ok != (tt.want != nil) || !slices.Equal(got, tt.want) {
				t.Errorf("parseJournal = %v, %v, want %v", got, ok, tt.want)
			}
		})
	}
}

// FuzzParseJournal checks that no journal claims more than there is room for.
func FuzzParseJournal(f *testing.F) {
	f.Add([]byte(journalHead(journalFile, 10) + "1 4 00000001\n2 5 0000beef\n0"))
	f.Fuzz(func(t *testing.T, text []byte) {
		cut := pieces{25, 10}
		got, ok := parseJournal(bytes.NewReader(text), journalFile, cut)
		for i, p := range got {
			if !ok || p.n < 0 || p.n > cut.length(i) {
				t.Errorf("piece %d of %d bytes has a prefix of %d", i, cut.length(i), p.n)
			}
		}
	})
}
