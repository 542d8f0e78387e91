package menu

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("update", false, "write the snapshots anew")

// base is a machine with the model and no engine.
func base() State {
	settings := Settings{MaxSeq: 65536, CacheEntries: 2, IdleUnload: 30 * time.Minute, StartEngine: true}
	return State{
		Host: Host{Name: "this Mac", FileManager: "Finder", Memory: 36 << 30},
		About: About{
			Version: "1.2.3 (0123456789ab)", Model: "example/Model-35B-4bit", Revision: "38740b847e4c", ModelBytes: 20_400_000_000,
		},
		Settings: settings,
		Choices: []Choice{
			{4096, 21 << 30, ""}, {8192, 21 << 30, ""}, {16384, 22 << 30, ""}, {32768, 22 << 30, ""},
			{65536, 23 << 30, ""}, {131072, 25 << 30, ""}, {262144, 30 << 30, "more than the 27.0 GiB there are"},
		},
		Files: Whole, Removable: true, Engine: Off,
	}
}

func running(e Engine) func(*State) {
	return func(s *State) {
		s.Engine, s.Running, s.URL = e, s.Settings.engine(), "http://127.0.0.1:11535"
		s.Status = Status{State: e, MemoryUsed: 20 << 30, MemoryNeeded: 23 << 30, Receipt: "Runs files verified on 2 May 2026, digest 0123456789ab"}
	}
}

var situations = []struct {
	name string
	set  func(*State)
}{
	{"looking for the model", func(s *State) { s.Files = Checking }},
	{"no model", func(s *State) { s.Files = Absent }},
	{"part of the model", func(s *State) { s.Files, s.FilesReason = Partial, "7.6 GB of 20.4 GB have arrived" }},
	{"downloading", func(s *State) {
		s.Files, s.Job = Downloading, Progress{7_600_000_000, 20_400_000_000, 85e6, 150 * time.Second, ""}
	}},
	{"a server that does not answer", func(s *State) {
		s.Files, s.Job = Downloading, Progress{Done: 7_600_000_000, Total: 20_400_000_000, Note: "no answer; trying again in 8 s"}
	}},
	{"verifying", func(s *State) {
		s.Files, s.Job = Verifying, Progress{3_500_000_000, 20_400_000_000, 2e9, 8 * time.Second, ""}
	}},
	{"removing", func(s *State) { s.Files = Removing }},
	{"damaged", func(s *State) {
		s.Files, s.FilesReason = Damaged, "model-00002-of-00004.safetensors: 16 MiB at 3.2 GB are wrong"
	}},
	{"stopped", func(*State) {}},
	{"stopped, files of another program", func(s *State) { s.Removable = false }},
	{"starting", func(s *State) { s.Engine, s.Running = Launching, s.Settings.engine() }},
	{"loading", func(s *State) {
		running(Loading)(s)
		s.Status.Loaded, s.Status.ToLoad = 12_000_000_000, 20_000_000_000
	}},
	{"ready", running(Ready)},
	{"ready after an answer", func(s *State) {
		running(Ready)(s)
		s.Status.Answered, s.Status.PrefillLast, s.Status.DecodeLast = true, 1820, 142.3
	}},
	{"reading a prompt", func(s *State) {
		running(Busy)(s)
		s.Status.PrefillNow, s.Status.QueueWaiting = 1835, 2
	}},
	{"answering", func(s *State) {
		running(Busy)(s)
		s.Status.PrefillNow, s.Status.DecodeNow = 1835, 141.7
	}},
	{"answering on a hot machine", func(s *State) {
		running(Busy)(s)
		s.Status.PrefillNow, s.Status.DecodeNow, s.Status.Hot = 1210, 88, true
	}},
	{"ready on a hot machine that saves power", func(s *State) {
		running(Ready)(s)
		s.Status.Hot, s.Status.Saving = true, true
	}},
	{"idle, unloaded, saving power", func(s *State) {
		running(Unloaded)(s)
		s.Status.Saving = true
	}},
	{"idle, unloaded", func(s *State) {
		running(Unloaded)(s)
		s.Status.MemoryUsed = 0
	}},
	{"stuck", func(s *State) {
		running(Stuck)(s)
		s.Reason = "the device has not answered for 5m0s"
	}},
	{"crashed, starting again", func(s *State) {
		running(Waiting)(s)
		s.URL, s.Reason, s.Try, s.Of = "", "the engine was ended by signal: killed (out of memory?)", 2, 4
		s.Errors = []Error{{clock, "the engine was ended by signal: killed (out of memory?)"}}
	}},
	{"stopping", func(s *State) { s.Engine = Stopping }},
	{"restarting", func(s *State) { s.Engine, s.Again = Stopping, true }},
	{"crashed for good", func(s *State) {
		s.Engine, s.Cause, s.Reason = Failed, Crash, "the engine stopped with exit status 2"
	}},
	{"settings refused", func(s *State) {
		s.Engine, s.Cause, s.Reason = Failed, Usage, "--max-seq is 300000, want 1 to 262144"
	}},
	{"port taken", func(s *State) {
		s.Engine, s.Cause, s.Reason = Failed, Port, "127.0.0.1:11535 is in use by another program, an HTTP server that is not Calla: process 4711, node"
	}},
	{"model refused", func(s *State) {
		s.Engine, s.Cause, s.Reason = Failed, Model, "config.json: model_type is llama"
	}},
	{"too little memory", func(s *State) {
		s.Engine, s.Cause, s.Reason = Failed, Memory, "max-seq 131072 needs 25.1 GiB, there are 24.0 GiB"
	}},
	{"restart needed", func(s *State) {
		running(Ready)(s)
		s.Settings.MaxSeq = 131072
	}},
	{"the demo runs while the model comes", func(s *State) {
		s.Settings.Demo = true
		running(Ready)(s)
		s.Status.MemoryUsed, s.Status.MemoryNeeded = 9<<20, 58<<20
		s.Files, s.Job = Downloading, Progress{7_600_000_000, 20_400_000_000, 85e6, 150 * time.Second, ""}
	}},
	{"own values, a key and mistakes", func(s *State) {
		s.Settings.MaxSeq, s.Settings.CacheEntries, s.Settings.IdleUnload, s.Settings.Key = 50000, 3, 10*time.Minute, true
		s.Mistakes = []string{"line 3: port is 99999, want 0–65535", "line 5: no preference is called prot"}
		s.Login = Login{On: true, Refused: "move Calla to the Applications folder first"}
	}},
	{"errors and trouble", func(s *State) {
		running(Ready)(s)
		s.Status.Errors = "14:02  engine: the device gave up (3 times)\n13:55  engine: out of memory\n"
		s.Errors = []Error{{clock, "the engine was ended by signal: killed"}}
		s.Note = "Could not copy: no program for the clipboard"
	}},
}

var clock = time.Date(2026, 3, 4, 13, 40, 0, 0, time.UTC)

// Every situation's menu is a text file, so that a change shows what people
// would see. "go test ./app/menu -update" writes them.
func TestSnapshots(t *testing.T) {
	for _, tt := range situations {
		t.Run(tt.name, func(t *testing.T) {
			s := base()
			tt.set(&s)
			got := drawing(View(s), "")
			name := strings.NewReplacer(" ", "_", ",", "").Replace(tt.name) + ".txt"
			path := filepath.Join("testdata", name)
			if *rewrite {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("menu differs (-want +got):\n%s", d)
			}
		})
	}
}

// drawing is a menu as text: what can't be clicked is in parentheses.
func drawing(items []Item, indent string) string {
	var b strings.Builder
	for _, it := range items {
		switch {
		case it.Hidden:
			continue
		case it.Separator:
			b.WriteString(indent + "---\n")
			continue
		}
		mark, title := "", it.Title
		if it.Checkable {
			mark = map[bool]string{true: "[x] ", false: "[ ] "}[it.Checked]
		}
		if !it.Enabled {
			title = "(" + title + ")"
		}
		fmt.Fprintf(&b, "%s%s%s\n%s", indent, mark, title, drawing(it.Sub, indent+"    "))
	}
	return b.String()
}

// The tree has one shape, and no separator stands first, last or beside
// another.
func TestShape(t *testing.T) {
	want := shape(View(base()))
	for _, tt := range situations {
		s := base()
		tt.set(&s)
		if d := cmp.Diff(want, shape(View(s))); d != "" {
			t.Errorf("%s: shape differs (-want +got):\n%s", tt.name, d)
		}
		checkLines(t, tt.name, View(s))
	}
}

func shape(items []Item) []string {
	var out []string
	for _, it := range items {
		out = append(out, fmt.Sprintf("%s separator=%v checkable=%v intent=%T", it.ID, it.Separator, it.Checkable, it.Intent))
		out = append(out, shape(it.Sub)...)
	}
	return out
}

func checkLines(t *testing.T, where string, items []Item) {
	t.Helper()
	separated := true
	for _, it := range items {
		switch {
		case it.Hidden:
			continue
		case it.Separator && separated:
			t.Errorf("%s: separator %s has nothing before it", where, it.ID)
		case !it.Separator && it.Title == "":
			t.Errorf("%s: line %s is shown without a title", where, it.ID)
		case it.Enabled && it.Intent == nil && len(it.Sub) == 0 && !it.Separator:
			t.Errorf("%s: line %s is enabled and does nothing", where, it.ID)
		}
		separated = it.Separator
		if len(it.Sub) > 0 {
			checkLines(t, where, it.Sub)
		}
	}
	if separated {
		t.Errorf("%s: a separator is last, or nothing is shown", where)
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "Ready", "Ready"},
		{"lines and a NUL", "a\nb\x00c\t d", "a b c d"},
		{"broken UTF-8", "a\xffb", "a?b"},
		{"escape codes", "\x1b[31mred\u009b", "[31mred"},
		{"long", strings.Repeat("ä", 200), strings.Repeat("ä", longest-1) + "…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := clip(tt.in); got != tt.want {
				t.Errorf("clip(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}
