package download

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestReceiptRoundTrip(t *testing.T) {
	s := newSite(t)
	s.Places = []string{s.copyTo(t.TempDir(), shard1)}
	want := s.pull()
	text, err := json.Marshal(want)
	s.must(err)
	got, err := parseReceipt(text)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read back %+v, %v, want %+v", got, err, want)
	}
}

func TestParseReceipt(t *testing.T) {
	const valid = `{"folder": "/m", "files": [{"name": "x", "size": 1, "piece": 1}]}`
	if _, err := parseReceipt([]byte(valid)); err != nil {
		t.Fatalf("the valid receipt: %v", err)
	}
	for _, tt := range []struct{ name, old, new string }{
		{"cut off", "]}", ""},
		{"no folder", `"/m"`, `""`},
		{"a relative folder", `"/m"`, `"m"`},
		{"a name that climbs", `"x"`, `"../x"`},
		{"no name", `"x"`, `""`},
		{"a negative size", `"size": 1`, `"size": -1`},
		{"pieces of nothing", `"piece": 1`, `"piece": 0`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parseReceipt([]byte(strings.Replace(valid, tt.old, tt.new, 1))); err == nil {
				t.Error("no error")
			}
		})
	}
}

// FuzzParseReceipt checks that a receipt names files of its folder alone, since
// files are removed by it.
func FuzzParseReceipt(f *testing.F) {
	f.Add([]byte(`{"folder": "/m", "files": [{"name": "x", "size": 1, "piece": 1, "states": "AAAA"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseReceipt(text)
		if err != nil {
			return
		}
		for _, p := range r.Files {
			if path := filepath.Join(r.Folder, p.Name); filepath.Dir(path) != filepath.Clean(r.Folder) {
				t.Errorf("a file at %s, outside %s", path, r.Folder)
			}
		}
	})
}
