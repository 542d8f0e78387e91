package menu

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// at is base with changes.
func at(changes ...func(*State)) State {
	s := base()
	for _, c := range changes {
		c(&s)
	}
	return s
}

func files(f Files) func(*State)   { return func(s *State) { s.Files = f } }
func engine(e Engine) func(*State) { return running(e) }
func demo(s *State)                { s.Settings.Demo = true }
func again(s *State)               { s.Again = true }
func manual(s *State)              { s.Settings.StartEngine = false }

var (
	started = StartEngine{base().Settings.engine()}
	long    = StartEngine{Settings{MaxSeq: 131072, CacheEntries: 2, IdleUnload: 30 * time.Minute}}
)

// Each line: in this state, on this message, these files and this engine with
// these effects.
func TestTransitions(t *testing.T) {
	for _, tt := range []struct {
		name   string
		in     State
		msg    Msg
		files  Files
		engine Engine
		want   []Effect
	}{
		// The model's files.
		{"none found at launch", at(files(Checking)), FilesFound{Files: Absent}, Absent, Off, nil},
		{"found at launch, engine wanted", at(files(Checking)), FilesFound{Files: Whole}, Whole, Launching, []Effect{started}},
		{"found at launch, engine not wanted", at(files(Checking), manual), FilesFound{Files: Whole}, Whole, Off, nil},
		{"demo wanted at launch, no model", at(files(Checking), demo), FilesFound{Files: Absent}, Absent, Launching, []Effect{StartEngine{at(demo).Settings.engine()}}},
		{"download", at(files(Absent)), Download{}, Downloading, Off, []Effect{StartDownload{}, KeepAwake{true}}},
		{"download again what is damaged", at(files(Damaged)), Download{}, Downloading, Off, []Effect{StartDownload{}, KeepAwake{true}}},
		{"download what is there", at(), Download{}, Whole, Off, nil},
		{"download twice", at(files(Downloading)), Download{}, Downloading, Off, nil},
		{"stop the download", at(files(Downloading)), Halt{}, Downloading, Off, []Effect{HaltJob{}}},
		{"stop it twice", at(files(Downloading), func(s *State) { s.Halting = true }), Halt{}, Downloading, Off, nil},
		{"download was stopped", at(files(Downloading)), FilesFound{Files: Partial}, Partial, Off, []Effect{KeepAwake{false}}},
		{"download ended well, engine wanted", at(files(Downloading)), FilesFound{Files: Whole}, Whole, Launching, []Effect{started, KeepAwake{false}}},
		{"verified", at(files(Verifying)), FilesFound{Files: Whole}, Whole, Off, []Effect{KeepAwake{false}}},
		{"verify", at(), Verify{}, Verifying, Off, []Effect{StartVerify{}, KeepAwake{true}}},
		{"verify under a running engine", at(engine(Ready)), Verify{}, Whole, Ready, nil},
		{"verify under the demo", at(demo, engine(Ready)), Verify{}, Verifying, Ready, []Effect{StartVerify{}, KeepAwake{true}}},
		{"remove, asked first", at(), AskRemove{}, Whole, Off, []Effect{Ask{
			"Remove the model's files?", "They take 20.4 GB. Calla can download them again.", "Remove", Remove{}}}},
		{"remove, confirmed", at(), Remove{}, Removing, Off, []Effect{StartRemove{}}},
		{"remove, confirmed after the engine was started", at(engine(Ready)), Remove{}, Whole, Ready, nil},
		{"remove what another program put there", at(func(s *State) { s.Removable = false }), Remove{}, Whole, Off, nil},
		{"show the files", at(), Reveal{}, Whole, Off, []Effect{RevealFiles{}}},
		{"show what is not there", at(files(Absent)), Reveal{}, Absent, Off, nil},

		// The engine.
		{"start", at(), Start{}, Whole, Launching, []Effect{started}},
		{"start without a model", at(files(Absent)), Start{}, Absent, Off, nil},
		{"start the demo without a model", at(files(Absent), demo), Start{}, Absent, Launching, []Effect{StartEngine{at(demo).Settings.engine()}}},
		{"start twice", at(engine(Launching)), Start{}, Whole, Launching, nil},
		{"bound its address", at(engine(Launching)), Listening{"http://127.0.0.1:1"}, Whole, Loading, []Effect{KeepAwake{true}}},
		{"loaded", at(engine(Loading)), Observed{Status{State: Ready}}, Whole, Ready, []Effect{KeepAwake{false}}},
		{"answers", at(engine(Ready)), Observed{Status{State: Busy}}, Whole, Busy, []Effect{KeepAwake{true}}},
		{"answered", at(engine(Busy)), Observed{Status{State: Ready}}, Whole, Ready, []Effect{KeepAwake{false}}},
		{"unloads", at(engine(Ready)), Observed{Status{State: Unloaded}}, Whole, Unloaded, nil},
		{"hangs", at(engine(Busy)), Observed{Status{State: Stuck}}, Whole, Stuck, []Effect{KeepAwake{false}}},
		{"says that it stops", at(engine(Ready)), Observed{Status{State: Stopping}}, Whole, Ready, nil},
		{"word of an engine that has crashed since", at(engine(Waiting)), Observed{Status{State: Ready}}, Whole, Waiting, nil},
		{"crashes", at(engine(Busy)), Crashed{Reason: "x", Try: 1, Of: 4}, Whole, Waiting, []Effect{KeepAwake{false}}},
		{"comes back", at(engine(Waiting)), Relaunched{}, Whole, Launching, nil},
		{"start while it waits", at(engine(Waiting)), Start{}, Whole, Launching, []Effect{started}},
		{"stop while it waits", at(engine(Waiting)), Stop{}, Whole, Stopping, []Effect{StopEngine{}}},
		{"crashed too often", at(engine(Waiting)), Ended{Cause: Crash, Reason: "x"}, Whole, Failed, nil},
		{"port taken", at(engine(Launching)), Ended{Cause: Port, Reason: "x"}, Whole, Failed, nil},
		{"start after a failure", at(engine(Failed)), Start{}, Whole, Launching, []Effect{started}},
		{"stop", at(engine(Ready)), Stop{}, Whole, Stopping, []Effect{StopEngine{}}},
		{"stop while it loads", at(engine(Loading)), Stop{}, Whole, Stopping, []Effect{StopEngine{}, KeepAwake{false}}},
		{"stop while it answers", at(engine(Busy)), Stop{}, Whole, Stopping, []Effect{StopEngine{}, KeepAwake{false}}},
		{"stop twice", at(engine(Stopping)), Stop{}, Whole, Stopping, nil},
		{"word from before the stop", at(engine(Stopping)), Observed{Status{State: Busy}}, Whole, Stopping, nil},
		{"stopped", at(engine(Stopping)), Ended{}, Whole, Off, nil},
		{"crashed while it was stopped", at(engine(Stopping)), Ended{Cause: Crash, Reason: "x"}, Whole, Off, nil},
		{"start while it stops", at(engine(Stopping)), Start{}, Whole, Stopping, nil},
		{"stopped, and wanted again", at(engine(Stopping), again), Ended{}, Whole, Launching, []Effect{started}},
		{"restart", at(engine(Ready)), Restart{}, Whole, Stopping, []Effect{StopEngine{}}},
		{"restart of an engine that is off", at(), Restart{}, Whole, Off, nil},
		{"ended twice", at(), Ended{Cause: Crash}, Whole, Off, nil},

		// Preferences.
		{"a longer context", at(engine(Ready)), SetMaxSeq{131072}, Whole, Ready, []Effect{Store{"max-seq", "131072"}}},
		{"the context that is set", at(), SetMaxSeq{65536}, Whole, Off, nil},
		{"more conversations", at(), SetEntries{4}, Whole, Off, []Effect{Store{"cache-entries", "4"}}},
		{"never unload", at(), SetIdle{0}, Whole, Off, []Effect{Store{"idle-unload", "never"}}},
		{"the demo", at(), ToggleDemo{}, Whole, Off, []Effect{Store{"demo", "true"}}},
		{"no engine at launch", at(), ToggleStart{}, Whole, Off, []Effect{Store{"start-engine", "false"}}},
		{"launch at login", at(), ToggleLogin{}, Whole, Off, []Effect{SetLogin{true}}},
		{"launch at login from a wrong place", at(func(s *State) { s.Login.Refused = "x" }), ToggleLogin{}, Whole, Off, nil},
		{"a key", at(), ToggleKey{}, Whole, Off, []Effect{SetKey{true}}},
		{"another key", at(), NewKey{}, Whole, Off, []Effect{MakeKey{}}},
		{"copy the key", at(func(s *State) { s.Settings.Key = true }), CopyKey{}, Whole, Off, []Effect{TakeKey{}}},
		{"copy no key", at(), CopyKey{}, Whole, Off, nil},
		{"copy the address", at(engine(Ready)), CopyAddress{}, Whole, Ready, []Effect{CopyText{"http://127.0.0.1:11535/v1"}}},
		{"open the chat", at(engine(Ready)), OpenChat{}, Whole, Ready, []Effect{OpenPage{"http://127.0.0.1:11535/"}}},
		{"open the chat while it loads", at(engine(Loading)), OpenChat{}, Whole, Loading, nil},
		{"copy no address", at(), CopyAddress{}, Whole, Off, nil},
		{"edit the file", at(), EditPreference{}, Whole, Off, []Effect{OpenPreferences{}}},
		{"show the log", at(), ShowLog{}, Whole, Off, []Effect{OpenLog{}}},

		// The end.
		{"quit", at(), Quit{}, Whole, Off, []Effect{Exit{}}},
		{"quit with an engine", at(engine(Ready)), Quit{}, Whole, Stopping, []Effect{StopEngine{Soon: true}}},
		{"quit in the middle of an answer", at(engine(Busy)), Quit{}, Whole, Stopping, []Effect{StopEngine{Soon: true}, KeepAwake{false}}},
		{"quit while it stops", at(engine(Stopping)), Quit{}, Whole, Stopping, []Effect{StopEngine{Soon: true}}},
		{"quit while it waits", at(engine(Waiting)), Quit{}, Whole, Stopping, []Effect{StopEngine{Soon: true}}},
		{"quit during a download", at(files(Downloading)), Quit{}, Downloading, Off, []Effect{HaltJob{}, Exit{}}},
		{"engine gone after quit", at(engine(Stopping), func(s *State) { s.Quitting = true }), Ended{}, Whole, Off, []Effect{Exit{}}},
		{"quit twice", at(engine(Stopping), func(s *State) { s.Quitting = true }), Quit{}, Whole, Stopping, []Effect{Exit{}}},
		{"start after quit", at(engine(Stopping), func(s *State) { s.Quitting = true }), Start{}, Whole, Stopping, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, effects := Update(tt.in, tt.msg)
			if got.Files != tt.files || got.Engine != tt.engine {
				t.Errorf("files %s, engine %s; want %s, %s", got.Files, got.Engine, tt.files, tt.engine)
			}
			if d := cmp.Diff(tt.want, effects); d != "" {
				t.Errorf("effects differ (-want +got):\n%s", d)
			}
		})
	}
}

// run applies messages one after the other and returns all effects.
func run(s State, msgs ...Msg) (State, []Effect) {
	var all []Effect
	for _, m := range msgs {
		var effects []Effect
		s, effects = Update(s, m)
		all = append(all, effects...)
	}
	return s, all
}

func TestSequences(t *testing.T) {
	t.Run("two quick clicks on a check box are two changes", func(t *testing.T) {
		_, effects := run(base(), ToggleLogin{}, ToggleLogin{})
		if d := cmp.Diff([]Effect{SetLogin{true}, SetLogin{false}}, effects); d != "" {
			t.Error(d)
		}
	})
	t.Run("a change is offered, applied by a restart, and then no longer offered", func(t *testing.T) {
		s, _ := run(at(engine(Ready)), SetMaxSeq{131072})
		if !s.Stale() {
			t.Error("a changed context does not ask for a restart")
		}
		s, effects := run(s, Restart{}, Ended{})
		if d := cmp.Diff([]Effect{StopEngine{}, long}, effects); d != "" {
			t.Error(d)
		}
		if s.Stale() {
			t.Error("the new engine asks for a restart")
		}
	})
	t.Run("a change that is taken back needs no restart", func(t *testing.T) {
		s, _ := run(at(engine(Ready)), SetMaxSeq{131072}, SetMaxSeq{65536})
		if s.Stale() {
			t.Error("asks for a restart")
		}
	})
	t.Run("a stop during a restart is a stop", func(t *testing.T) {
		s, _ := run(at(engine(Ready)), Restart{}, Stop{}, Ended{})
		if s.Engine != Off {
			t.Errorf("engine %s, want off", s.Engine)
		}
	})
	t.Run("the same error twice has one line", func(t *testing.T) {
		s, _ := run(at(engine(Ready)), Crashed{Reason: "x"}, Relaunched{}, Crashed{Reason: "x"}, Ended{Cause: Crash, Reason: "y"})
		var texts []string
		for _, e := range s.Errors {
			texts = append(texts, e.Text)
		}
		if d := cmp.Diff([]string{"y", "x"}, texts); d != "" {
			t.Error(d)
		}
	})
	t.Run("the next wish clears the trouble of the last", func(t *testing.T) {
		s, _ := run(base(), Trouble{"x"}, ShowLog{})
		if s.Note != "" {
			t.Errorf("note %q", s.Note)
		}
	})
}

// A random walk over all messages: in each state that can be reached the menu
// keeps its shape, every line that is on does something, there is never a
// second engine, and quitting ends.
func TestWalk(t *testing.T) {
	want := strings.Join(shape(View(base())), "\n")
	r := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		w := &world{t: t, state: at(files(Checking))}
		for range 60 {
			w.step(messages[r.IntN(len(messages))])
			if got := strings.Join(shape(View(w.state)), "\n"); got != want {
				t.Fatalf("after %v the shape is\n%s", w.trace, got)
			}
			checkLines(t, fmt.Sprint(w.trace), View(w.state))
			w.checkIntents(View(w.state))
			if w.left || t.Failed() {
				break
			}
		}
		w.step(Quit{})
		w.step(Quit{})
		if !w.left {
			t.Fatalf("after %v two wishes to quit did not end it", w.trace)
		}
		if t.Failed() {
			return
		}
	}
}

// world counts engines and jobs as the executable would have them.
type world struct {
	t       *testing.T
	state   State
	trace   []string
	engines int
	jobs    int
	left    bool
}

func (w *world) step(m Msg) {
	switch m.(type) {
	case Ended:
		if w.engines == 0 {
			return // nothing to end
		}
		w.engines = 0
	case FilesFound:
		if w.jobs == 0 && w.state.Files != Checking {
			return
		}
		w.jobs = 0
	}
	w.trace = append(w.trace, fmt.Sprintf("%T", m))
	waiting := w.state.Engine == Waiting
	next, effects := Update(w.state, m)
	w.state = next
	for _, e := range effects {
		switch e.(type) {
		case StartEngine:
			if w.engines++; w.engines > 1 && !waiting {
				w.t.Errorf("after %v a second engine is started", w.trace)
			}
			w.engines = 1
		case StartDownload, StartVerify, StartRemove:
			if w.jobs++; w.jobs > 1 {
				w.t.Errorf("after %v a second job is started", w.trace)
			}
		case Exit:
			w.left = true
		}
	}
	if alive := next.Engine.alive(); !w.left && alive != (w.engines > 0) {
		w.t.Errorf("after %v the engine is %s with %d engines", w.trace, next.Engine, w.engines)
	}
}

// checkIntents wants a change or an effect from every line that is on, but for
// a choice that is made already.
func (w *world) checkIntents(items []Item) {
	for _, it := range items {
		w.checkIntents(it.Sub)
		if it.Intent == nil || !it.Enabled || it.Hidden || it.Checked || w.state.Quitting {
			continue
		}
		next, effects := Update(w.state, it.Intent)
		if reflect.DeepEqual(w.state, next) && len(effects) == 0 {
			w.t.Errorf("after %v line %s is on and does nothing", w.trace, it.ID)
		}
	}
}

var messages = []Msg{
	Start{}, Stop{}, Restart{}, Download{}, Halt{}, Verify{}, Reveal{}, AskRemove{}, Remove{}, ToggleDemo{},
	SetMaxSeq{8192}, SetMaxSeq{131072}, SetEntries{4}, SetIdle{0}, ToggleStart{}, ToggleLogin{}, ToggleKey{}, NewKey{},
	CopyKey{}, CopyAddress{}, OpenChat{}, EditPreference{}, ShowLog{},
	FilesFound{Files: Absent}, FilesFound{Files: Partial, Reason: "x"}, FilesFound{Files: Whole, Removable: true},
	FilesFound{Files: Damaged, Reason: "x", Removable: true}, JobProgress{Progress{1, 2, 3, 4, "x"}},
	Listening{"http://127.0.0.1:1"}, Observed{Status{State: Loading}}, Observed{Status{State: Ready}}, Observed{Status{State: Busy}},
	Observed{Status{State: Unloaded}}, Observed{Status{State: Stuck}}, Observed{Status{State: Failed, Reason: "x"}},
	Crashed{Reason: "x", Try: 1, Of: 4}, Relaunched{}, Ended{}, Ended{Cause: Crash, Reason: "x"}, Ended{Cause: Port, Reason: "x"},
	PreferencesRead{Settings: Settings{MaxSeq: 1000}, Mistakes: []string{"x", "y"}}, LoginRead{Login{Refused: "x"}}, Trouble{"x"},
}
