package bench

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"calla/app/power"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file of testdata; go test -update writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, d)
	}
}

// runsOf are five runs about a prefill and a step in milliseconds.
func runsOf(tokens int, prefill, step float64) []Sample {
	var runs []Sample
	for i := range 5 {
		by := 1 + float64(i-2)/100
		ms := func(x float64) time.Duration { return time.Duration(x * by * float64(time.Millisecond)) }
		runs = append(runs, Sample{Prompt: tokens, Generated: 32, FirstToken: ms(prefill + 2), Prefill: ms(prefill), Decode: ms(31 * step)})
	}
	return runs
}

func sampleReport() *Report {
	r := &Report{
		Calla: "0.1.0", Revision: "a26759bf0541", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), System: "linux/amd64",
		Device: "CPU (2 threads)", Model: "calla-tiny", MaxSeq: 8192, PrefillChunk: 2048, Tokens: 32, MaxWait: 0.1,
		Load: 0.0123, Peak: 86_958_080, Traffic: Traffic{4_600_000, 1_200_000, 1536}, Bandwidth: 13.1e9,
	}
	for _, x := range []struct {
		tokens        int
		prefill, step float64
	}{{256, 200, 2.1}, {1024, 830, 2.5}, {4096, 3600, 4.1}} {
		r.Points = append(r.Points, Point{Tokens: x.tokens, Prompt: true, Context: true, Wanted: 5, Runs: runsOf(x.tokens, x.prefill, x.step)})
	}
	r.Points[1].Context = false
	r.Points[0].Rejected = []Rejected{{"the processor slowed down for heat: let it cool", 2}}
	r.Points = append(r.Points,
		Point{Tokens: 6000, Prompt: true, Context: true, Wanted: 5, Runs: runsOf(6000, 1, 1)[:1], Rejected: []Rejected{{"the device is gone", 2}}, Refused: "1 of 5 runs count; the device is gone"},
		Point{Tokens: 8000, Prompt: true, Context: true, Wanted: 5, Runs: runsOf(8000, 7900, 6)[:2]},
		Point{Tokens: 8100, Prompt: true, Context: true, Wanted: 5, Runs: []Sample{}})
	for i := range r.Points {
		r.Points[i].summarise()
	}
	r.Conclude()
	return r
}

func sampleComparison() *Comparison {
	pair := func(tokens, theirs int) Pair {
		x := Pair{Tokens: tokens, Wanted: 5,
			Ours: Side{Runs: runsOf(tokens, 100, 10)}, Theirs: Side{Runs: runsOf(theirs, 150, 12)}}
		x.summarise(true, true)
		return x
	}
	c := &Comparison{
		Calla: "0.1.0", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), System: "linux/amd64", Device: "CPU (2 threads)",
		Ours: Named{URL: "http://127.0.0.1:40001", Model: "calla-tiny"}, Theirs: Named{URL: "http://127.0.0.1:8080", Model: "tiny-f16"},
		API: "completions", Tokens: 32, Peak: 86_958_080, MaxWait: 0.1, Pairs: []Pair{pair(256, 256), pair(512, 560), pair(1024, 400)},
		Unknown: []string{"whether other clients used the other server: it does not tell"},
	}
	c.Pairs[0].Theirs.Rejected = []Rejected{{"tokens of the prompt came from a cache: turn the server's prompt cache off", 1}}
	c.Pairs = append(c.Pairs, Pair{Tokens: 2048, Wanted: 5})
	c.Conclude()
	return c
}

func TestGolden(t *testing.T) {
	type written interface {
		Print(io.Writer) error
		WriteCSV(io.Writer) error
	}
	for _, tt := range []struct {
		name string
		r    written
	}{{"report", sampleReport()}, {"comparison", sampleComparison()}} {
		t.Run(tt.name, func(t *testing.T) {
			var text, table bytes.Buffer
			if err := errors.Join(tt.r.Print(&text), tt.r.WriteCSV(&table)); err != nil {
				t.Fatal(err)
			}
			golden(t, tt.name+".txt", text.Bytes())
			golden(t, tt.name+".csv", table.Bytes())
			if rows, err := csv.NewReader(&table).ReadAll(); err != nil || len(rows) < 4 {
				t.Errorf("%d rows of CSV, %v", len(rows), err)
			}
			if b, err := json.Marshal(tt.r); err != nil || !json.Valid(b) {
				t.Errorf("JSON %s, %v", b, err)
			}
		})
	}
}

// slow reads nothing in a while.
type slow struct{ reads int }

func (s *slow) Read([]byte) uint32 {
	s.reads++
	time.Sleep(time.Millisecond)
	return 0
}

func TestBandwidth(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	looks := 0
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		watch Watch
		known bool
		why   string
	}{
		{"a quiet machine", context.Background(), Watch{}, true, ""},
		{"a hot machine", context.Background(), Watch{
			read: readCounters, now: time.Now, condition: func() power.Condition { return power.Condition{Thermal: power.Critical} },
		}, false, "the machine slowed down for heat: let it cool, or measure fewer lengths at once"},
		{"a machine that cooled down", context.Background(), Watch{
			read: func() counters { return counters{} }, now: time.Now, condition: func() power.Condition {
				looks++
				if looks < 10 {
					return power.Condition{Thermal: power.Critical}
				}
				return power.Condition{}
			},
		}, true, ""},
		{"it was stopped", canceled, Watch{}, false, "it was stopped"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, why := Bandwidth(tt.ctx, &slow{}, &tt.watch)
			if (got > 0) != tt.known || why != tt.why {
				t.Errorf("Bandwidth = %v, %q, want known: %t, %q", got, why, tt.known, tt.why)
			}
		})
	}
}

// Without a number there is a report, and no fit.
func TestReportOfNothing(t *testing.T) {
	r := Report{Points: []Point{{Tokens: 256, Wanted: 5, Refused: "0 of 5 runs count; why"}}, NoBandwidth: "it was stopped"}
	r.Conclude()
	var b bytes.Buffer
	if err := r.Print(&b); err != nil || r.DecodeFit != nil || r.PrefillFit != nil {
		t.Errorf("%v, fits %v and %v", err, r.DecodeFit, r.PrefillFit)
	}
	if err := r.WritePicture(io.Discard, "png"); err != nil {
		t.Errorf("a picture of nothing: %v", err)
	}
}

func TestPictures(t *testing.T) {
	for name, write := range map[string]func(io.Writer, string) error{
		"report": sampleReport().WritePicture, "comparison": sampleComparison().WritePicture,
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := write(&b, "png"); err != nil {
				t.Fatal(err)
			}
			p, err := png.Decode(&b)
			if err != nil || p.Bounds().Dx() < 400 || p.Bounds().Dy() < 400 {
				t.Errorf("a PNG of %v, %v", p, err)
			}
			b.Reset()
			if err := write(&b, "svg"); err != nil {
				t.Fatal(err)
			}
			for d := xml.NewDecoder(&b); err == nil; {
				_, err = d.Token()
			}
			if err != io.EOF {
				t.Errorf("an SVG: %v", err)
			}
			if err := write(io.Discard, "gif"); err == nil {
				t.Error("a GIF was drawn, want an error")
			}
		})
	}
}
